"""Ways to judge the best of several against a baseline by the seeds that chose it: false "better", and power.

    python tests/benchmarks/best_of_several.py [--draws N] [--every]

Prints how often each way calls the best better where none is (the worst over `TRUTHS`, for 2, 3, 5 and 10 seeds and the
best of 2, 5 and 10), and how often it calls the best of 5 better where one of them is, by 1, 2 or 3 residual
deviations. The promise is 2.5%. With `--every` it is the way that was taken alone, for each top of 1 to 10 and 2 to 10
seeds, with and without what a seed does to all. The table is in results/statistics.md.
"""

import argparse
from collections.abc import Mapping
from itertools import product

import numpy as np
from scipy.special import stdtrit

from study.ranking.difference import selection_adjusted_t

LEVEL = 0.975
SEEDS, TOPS = (2, 3, 5, 10), (2, 5, 10)

TRUTHS = {
    "all alike": (1.0, 1.0, 0),
    "the baseline steadier": (0.2, 1.0, 0),
    "the baseline wilder": (3.0, 1.0, 0),
    "one configuration wilder": (1.0, 3.0, 1),
    "one configuration wilder, the baseline steadier": (0.3, 3.0, 1),
    "half of them wilder, the baseline steadier": (0.2, 3.0, 2),
}
"""Residual deviation of the baseline, that of the wild configurations, and how many these are: none, one, half."""

WAYS = {
    "paired t, no allowance": "plain",
    "Bonferroni on paired t": "bonferroni",
    "the chosen one's t": "chosen",
    "Dunnett, variance pooled over all": "pooled",
    "variance pooled over the configurations": "apart",
    "the same, or the pair's own if larger": "larger",
    "chosen on half of the seeds, judged on the others": "halves",
}


def found(values: np.ndarray) -> Mapping[str, np.ndarray]:
    """Which studies call the best better, by each way; `values` is (studies, seeds, 1 + top), the baseline first."""
    studies, seeds, columns = values.shape
    top, baseline, others = columns - 1, values[:, :, 0], values[:, :, 1:]
    every = np.arange(studies)
    gaps = others[every, :, others.mean(axis=1).argmax(axis=1)] - baseline
    gain, own = gaps.mean(axis=1), gaps.var(axis=1, ddof=1)
    alone = gain / np.sqrt(own / seeds)
    pooled = _residual(values)
    of_others = _residual(others) * (1 - 1 / top)
    of_baseline = (baseline - others.mean(axis=2)).var(axis=1, ddof=1)
    apart = of_baseline + of_others
    freedom = apart**2 / (of_baseline**2 / (seeds - 1) + of_others**2 / ((top - 1) * (seeds - 1)))
    quantile = _between(freedom, top)
    half = seeds // 2
    by_half = others[every, half:, others[:, :half].mean(axis=1).argmax(axis=1)] - baseline[:, half:]
    with np.errstate(invalid="ignore"):
        judged = by_half.mean(axis=1) / np.sqrt(by_half.var(axis=1, ddof=1) / (seeds - half)) if seeds > 2 else None
    return {
        "plain": alone > stdtrit(seeds - 1, LEVEL),
        "bonferroni": alone > -stdtrit(seeds - 1, (1 - LEVEL) / top),
        "chosen": alone > selection_adjusted_t(LEVEL, seeds - 1, top),
        "pooled": gain > selection_adjusted_t(LEVEL, (seeds - 1) * top, top) * np.sqrt(2 * pooled / seeds),
        "apart": gain > quantile * np.sqrt(apart / seeds),
        "larger": gain > quantile * np.sqrt(np.maximum(apart, own) / seeds),
        "halves": np.zeros(studies, bool) if judged is None else judged > stdtrit(seeds - half - 1, LEVEL),
    }


def _residual(values: np.ndarray) -> np.ndarray:
    """The residual variance of the two-way layout configuration + seed of each study."""
    _, seeds, columns = values.shape
    left = values - values.mean(axis=1, keepdims=True) - values.mean(axis=2, keepdims=True)
    left += values.mean(axis=(1, 2), keepdims=True)
    squares: np.ndarray = (left**2).sum(axis=(1, 2)) / ((seeds - 1) * (columns - 1))
    return squares


def _between(freedom: np.ndarray, top: int) -> np.ndarray:
    """`selection_adjusted_t` for many degrees of freedom, drawn through some."""
    known = np.geomspace(1, 400, 25)
    quantiles = np.log([selection_adjusted_t(LEVEL, float(each), top) for each in known])
    drawn: np.ndarray = np.exp(np.interp(np.log(np.clip(freedom, 1, 400)), np.log(known), quantiles))
    return drawn


def simulated(
    draws: int, seeds: int, top: int, truth: str = "all alike", gain: float = 0.0, shared: float = 0.0
) -> np.ndarray:
    """Studies in which the first configuration is better by `gain`, (draws, seeds, 1 + top).

    `shared` is the correlation over seeds; what a seed does is as large as each configuration's own deviation.
    """
    generator = np.random.default_rng([seeds, top, list(TRUTHS).index(truth)])
    baseline, wild, many = TRUTHS[truth]
    scale = np.ones(1 + top)
    scale[0] = baseline
    scale[1 : 1 + (0, 1, top // 2)[many]] = wild
    own, of_seed = generator.normal(size=(draws, seeds, 1 + top)), generator.normal(size=(draws, seeds, 1))
    values: np.ndarray = ((1 - shared) ** 0.5 * own + shared**0.5 * of_seed) * scale
    values[:, :, 1] += gain
    return values


def every(draws: int) -> tuple[float, int]:
    """The worst share of false "better" of the way that was taken, and the number of cases."""
    shares = []
    for seeds, top, truth, shared in product(range(2, 11), range(1, 11), TRUTHS, (0.0, 0.9)):
        values = simulated(draws, seeds, top, truth, shared=shared)
        others = values[:, :, 1:]
        gaps = others[np.arange(draws), :, others.mean(axis=1).argmax(axis=1)] - values[:, :, 0]
        alone = gaps.mean(axis=1) / np.sqrt(gaps.var(axis=1, ddof=1) / seeds)
        shares.append(float(np.mean(alone > selection_adjusted_t(LEVEL, seeds - 1, top))))
    return max(shares), len(shares)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=20_000)
    parser.add_argument("--every", action="store_true")
    chosen = parser.parse_args()
    draws: int = chosen.draws
    if chosen.every:
        worst_share, cases = every(draws)
        print(f"{100 * worst_share:.1f}% at worst of {cases} cases, {draws} studies each")
        return
    worst: dict[str, float] = dict.fromkeys(WAYS.values(), 0.0)
    for seeds in SEEDS:
        for top in TOPS:
            for truth in TRUTHS:
                for way, called in found(simulated(draws, seeds, top, truth)).items():
                    worst[way] = max(worst[way], float(called.mean()))
    powers = {
        (seeds, gain): found(simulated(draws, seeds, 5, gain=gain)) for seeds in (3, 5, 10) for gain in (1.0, 2.0, 3.0)
    }
    print("| way | false better, at worst |", *(f"{seeds} seeds, gain {gain:g} |" for seeds, gain in powers))
    print("|---" * (2 + len(powers)) + "|")
    for name, way in WAYS.items():
        shares = (f"{100 * called[way].mean():.0f}% |" for called in powers.values())
        print(f"| {name} | {100 * worst[way]:.1f}% |", *shares)


if __name__ == "__main__":
    main()
