"""Test accuracy by alpha and lambda of FairKL, the shape of the paper's Table 12, read off recorded curves in seconds.

    python tests/benchmarks/alpha_effect.py [FILE.npz ...]

The curves are those of `epsilon_effect.py`: drawn configurations of eps-SupInfoNCE with FairKL, the images of
`selection_curves.npz` first. alpha acts once and the base temperature is the temperature, so that the paper's alpha a,
which the released code squares and multiplies by 0.1 / 0.07, is 1.43 a^2 here.

A cell: mean test value in points over the configurations drawn there, half its 95% interval (Student's t, over
configurations, each the mean over its seeds or splits), and how many they are. The last column is the mean of the first
two ranges of alpha less that of the last, with its interval (Welch).
"""

import argparse
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
from epsilon_effect import Numbers, of_file, own
from scipy import stats
from selection_rules import header, row

ALPHAS = (0.0, 0.003, 0.01, 0.03, 0.1, 0.3, 1.001)
LAMBDAS = (0.25, 1.0, 2.001)
IMAGES = ("digits", "mnist")


def cell(values: Numbers) -> str:
    """Mean, half its interval, and the count."""
    if len(values) < 2:
        return "-"
    return f"{values.mean():.1f} ± {stats.t.ppf(0.975, len(values) - 1) * stats.sem(values):.1f} ({len(values)})"


def apart(low: Numbers, high: Numbers) -> str:
    """The difference of two means with half its interval."""
    if min(len(low), len(high)) < 2:
        return "-"
    found = stats.ttest_ind(low, high, equal_var=False).confidence_interval()
    return f"{(found.low + found.high) / 2:+.1f} ± {(found.high - found.low) / 2:.1f}"


def ranges(bounds: Sequence[float]) -> list[str]:
    return [f"{low:g} to {high:.2g}" for low, high in pairwise(bounds)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path)
    given = parser.parse_args()
    header("data", "lambda", *(f"alpha {text}" for text in ranges(ALPHAS)), "small less large alpha")
    for title, params, values in [*(one for one in own() if one[0] in IMAGES), *map(of_file, given.files)]:
        alpha, weight = (np.array([one[key] for one in params]) for key in ("alpha", "lambda"))
        at = np.digitize(alpha, ALPHAS) - 1
        for place, text in enumerate(ranges(LAMBDAS)):
            here = np.digitize(weight, LAMBDAS) - 1 == place
            cells = [values[here & (at == index)] for index in range(len(ALPHAS) - 1)]
            row(title, text, *map(cell, cells), apart(np.concatenate(cells[:2]), cells[-1]))


if __name__ == "__main__":
    main()
