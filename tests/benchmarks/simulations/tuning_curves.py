"""Tuning curves: whether the band of the median and of the mean holds the true curve at every number of trials."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta, norm, rv_continuous, uniform

from study.analysis.statistics.compare_studies import CONFIDENCE, compared
from study.analysis.statistics.tuning_curve import Draws, curve

from .row import Row

Floats = NDArray[np.float64]

METRIC = "val/accuracy"
SHAPES: dict[str, tuple[rv_continuous, int]] = {
    "uniform values": (uniform(), 0),
    "normal values, sd 2 points": (norm(0.8, 0.02), 0),
    "skewed values, beta(5, 2)": (beta(5, 2), 0),
    "most trials bad, beta(0.5, 3)": (beta(0.5, 3), 0),
    "accuracies on 50 samples": (norm(0.8, 0.02), 50),
    "accuracies on 10 samples": (beta(5, 2), 10),
}
"""The distribution of a trial's value, and the validation samples to whose share it is rounded, 0: none."""

COUNTS = (10, 24, 100)


def rows(draws: int) -> Iterator[Row]:
    """At most 2,000 simulations a row."""
    draws = min(draws, 2000)
    for name, (shape, samples) in SHAPES.items():
        for count in COUNTS:
            yield from bands(name, shape, samples, count, draws)
    for count in (24, 100):
        yield false_winners(count, draws)


def bands(name: str, shape: rv_continuous, samples: int, count: int, draws: int) -> Iterator[Row]:
    """How often the band holds the whole true curve of `count` trials."""
    generator = np.random.default_rng([count, *name.encode()])
    values = rounded(shape.ppf(generator.random((draws, count))), samples)
    medians, means = truth(shape, samples, count)
    held = np.array([_holds(one, medians, means) for one in values])
    for which, share in zip(("median", "mean"), held.mean(0), strict=True):
        statement = f"95% band of the {which} of the best of k trials, for all k at once"
        shown = f"{name}, {count} trials"
        yield Row(statement, "report, tuning_curve", shown, "at least 94%", 0.94, 1.0, float(share), draws)


def _holds(values: Floats, medians: Floats, means: Floats) -> tuple[bool, bool]:
    frame = curve(Draws(METRIC, values, 1.0, 0.0)) + 0.0
    low, high = frame["low"].to_numpy() - 1e-9, frame["high"].to_numpy() + 1e-9
    least, most = frame["mean_low"].to_numpy() - 1e-9, frame["mean_high"].to_numpy() + 1e-9
    return bool(((low <= medians) & (medians <= high)).all()), bool(((least <= means) & (means <= most)).all())


def rounded(values: Floats, samples: int) -> Floats:
    """Values as a metric gives them, between 0 and 1."""
    values = np.clip(values, 0, 1)
    return np.round(values * samples) / samples if samples else values


def truth(shape: rv_continuous, samples: int, count: int) -> tuple[Floats, Floats]:
    """(count,) each: the true median and mean of the best of k trials."""
    trials = np.arange(1, count + 1)
    medians = rounded(shape.ppf(0.5 ** (1 / trials)), samples)
    places = (np.arange(20_000) + 0.5) / 20_000  # of the best of k: its chance is that of one trial to the power k
    means = np.array([rounded(shape.ppf(places ** (1 / k)), samples).mean() for k in trials])
    return medians, means


def false_winners(count: int, draws: int) -> Row:
    """How often one of two equal searches is called better at some budget."""
    generator = np.random.default_rng(count)
    values = generator.normal(0.8, 0.02, (draws, 2, count))
    wrong = 0
    for pair in values:
        found = {name: Draws(METRIC, one, 1.0, 0.0) for name, one in zip("AB", pair, strict=True)}
        both = [compared(found, found, name, other) for name, other in ("AB", "BA")]
        wrong += any(one.first is not None for one in both)
    statement, shown = "A is better than B from k trials on", f"no difference, {count} trials each"
    return Row(statement, "compare", shown, f"at most {100 * (1 - CONFIDENCE):.0f}%", 0, 0.05, wrong / draws, draws)
