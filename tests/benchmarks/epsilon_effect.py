"""Does the margin epsilon change test accuracy? Read off recorded curves of drawn configurations, in seconds.

    python tests/benchmarks/epsilon_effect.py [FILE.npz ...]

Beside the curves of `selection_curves.npz`, of drawn configurations of eps-SupInfoNCE with FairKL, each FILE is a table
of recorded curves: `params` (JSON lines), `metrics`, `values` (seeds, configurations, epochs, metrics). Test values are
those of the last epoch in points, mean over splits or seeds: accuracy, on tables of people the mean over (class, bias)
cells.

Least squares over the configurations: the test value on the other parameters (scaled to mean 0 and deviation 1, of the
logarithm where they are drawn so), their squares and products, on epsilon, and on epsilon times each of them. What is
printed is the change from epsilon 0 to 0.5 with its 95% interval (HC3, which allows for unequal noise): at the mean of
the other parameters, and where one of them is 1.5 deviations above or below, the others at their mean.
"""

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from selection_curves import COLUMNS, configurations
from selection_rules import header, recorded, row, test_values

Numbers = NDArray[np.float64]
NORMAL, STEP, FAR = 1.96, 0.5, 1.5
LOGARITHMIC = ("alpha", "temperature", "learning_rate")
SETS = ("digits", "mnist", "compas", "adult")


def own() -> Iterator[tuple[str, list[dict[str, float]], Numbers]]:
    """Title, parameters and test values of each set of `selection_curves.npz`, without the plain loss."""
    for name in SETS:
        values = np.mean([test_values(name, found)[:, -1] for found in recorded(name).values()], axis=0)
        yield name, configurations()[1:], 100 * values


def of_file(path: Path) -> tuple[str, list[dict[str, float]], Numbers]:
    """The same of a table of recorded curves: the parameters that are numbers."""
    with np.load(path) as file:
        params = [json.loads(text) for text in file["params"]]
        column = list(file["metrics"]).index("test/accuracy")
        values = 100 * file["values"][:, :, -1, column].astype(float).mean(0)
    numbers = [{key.split(".")[1]: value for key, value in one.items() if key != "method.name"} for one in params]
    shared = set.intersection(*(set(one) for one in numbers))
    return path.stem, [{key: float(one[key]) for key in sorted(shared)} for one in numbers], values


def fitted(params: Sequence[Mapping[str, float]], values: Numbers) -> tuple[list[str], Numbers, Numbers, float]:
    """Names of the other parameters; coefficients of epsilon and of its products; their covariance; deviation left."""
    names = [key for key in params[0] if key != "epsilon"]
    raw = np.array([[np.log(one[key]) if key in LOGARITHMIC else one[key] for key in names] for one in params])
    scaled = (raw - raw.mean(0)) / raw.std(0)
    epsilon = np.array([one["epsilon"] for one in params])[:, None]
    pairs = [scaled[:, i : i + 1] * scaled[:, j : j + 1] for i in range(len(names)) for j in range(i, len(names))]
    design = np.hstack([epsilon, epsilon * scaled, np.ones_like(epsilon), scaled, *pairs])
    inverse = np.linalg.pinv(design.T @ design)
    left = values - design @ (inverse @ design.T @ values)
    weight = (left / (1 - np.einsum("ij,jk,ik->i", design, inverse, design))) ** 2
    covariance = inverse @ (design.T * weight) @ design @ inverse
    ours = 1 + len(names)
    spare = len(values) - design.shape[1]
    return names, (inverse @ design.T @ values)[:ours], covariance[:ours, :ours], float(np.sqrt(left @ left / spare))


def change(coefficients: Numbers, covariance: Numbers, at: Numbers) -> str:
    """The change of the test value from epsilon 0 to 0.5 at a place, with half its interval."""
    return f"{STEP * at @ coefficients:+.1f} ± {STEP * NORMAL * np.sqrt(at @ covariance @ at):.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path)
    given = parser.parse_args()
    places = [f"{key} {word}" for key in ("alpha", "temperature", "lambda") for word in ("low", "high")]
    header("data", "configurations", "deviation left, points", "at the mean", *places)
    assert "test/accuracy" in COLUMNS
    for title, params, values in [*own(), *map(of_file, given.files)]:
        kept = np.isfinite(values) & (values >= 0)
        names, coefficients, covariance, left = fitted(
            [one for one, keep in zip(params, kept, strict=True) if keep], values[kept]
        )
        cells = []
        for key in ("alpha", "temperature", "lambda"):
            for side in (-FAR, FAR):
                at = np.array([1.0, *(side if name == key else 0.0 for name in names)])
                cells.append(change(coefficients, covariance, at) if key in names else "-")
        middle = np.array([1.0, *np.zeros(len(names))])
        row(title, int(kept.sum()), f"{left:.1f}", change(coefficients, covariance, middle), *cells)


if __name__ == "__main__":
    main()
