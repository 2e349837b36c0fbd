"""The table of a suite: intervals of cells and averages, what is told apart by searches.

A simulated search tries configurations whose true values differ, picks by a validation split that errs, and reports
the mean over fresh seeds on a test split of finitely many samples. So what it gives is skewed and comes in steps, as in
a real suite. Methods share the seeds of a search, so their results of one search are correlated.
"""

from collections.abc import Iterator
from functools import cache

import numpy as np
from numpy.typing import NDArray

from study.analysis.statistics.suite_statistics import average_estimates, compare_with_best_method, estimate_mean

from .row import Row

Numbers = NDArray[np.float64]

TRIALS, SEEDS, SAMPLES = 8, 2, 360
SEED_SD = 0.02
WHERE = "study suite"


def searched(generator: np.random.Generator, shape: tuple[int, ...], shared: Numbers | None = None) -> Numbers:
    """What searches give on each fresh seed, of the shape (*shape, SEEDS), in steps of one test sample.

    Args:
        shared: what methods have in common in a search, of a shape that is broadcast to `shape`.
    """
    true = 0.75 + 0.08 * np.log(generator.beta(2.0, 2.0, (*shape, TRIALS)) + 0.1)
    seen = true + generator.normal(0.0, 0.03, true.shape)
    picked = np.take_along_axis(true, seen.argmax(axis=-1, keepdims=True), axis=-1)
    values = picked + generator.normal(0.0, SEED_SD, (*shape, SEEDS))
    if shared is not None:
        values = values + shared[..., None]
    return np.round(values * SAMPLES) / SAMPLES


@cache
def truth() -> float:
    """What a search gives on average."""
    return float(searched(np.random.default_rng(12345), (400_000,)).mean())


def rows(draws: int) -> Iterator[Row]:
    yield from intervals(draws)
    yield from told_by_searches(draws)


def intervals(draws: int) -> Iterator[Row]:
    """Intervals of cells and of averages."""
    for searches in (3, 5, 10):
        found = searched(np.random.default_rng(searches), (draws, searches)).mean(axis=-1)
        hits = [_covers(estimate_mean(values)) for values in found.tolist()]
        yield _coverage("interval of a cell", f"{searches} searches, each the pick of {TRIALS}", hits)
    for searches, sets in ((3, 3), (3, 6), (5, 3)):
        found = searched(np.random.default_rng((searches, sets)), (draws, sets, searches)).mean(axis=-1)
        centre = truth()
        factors = np.linspace(0.5, 3.0, sets)[None, :, None]
        spread = centre + (found - centre) * factors
        hits = [_covers(average_estimates([estimate_mean(values) for values in one])) for one in spread.tolist()]
        told = f"{sets} data sets of unequal spread, {searches} searches on each"
        yield _coverage("interval of an average", told, hits)


def told_by_searches(draws: int) -> Iterator[Row]:
    """Methods that are told from the best though all are equal."""
    for methods, sets, searches in ((3, 1, 2), (3, 1, 3), (5, 1, 5), (3, 3, 3), (10, 3, 3), (5, 5, 5)):
        found = correlated(np.random.default_rng((methods, sets, searches)), draws, methods, sets, searches)
        wrong = [False in compare_with_best_method(_by_method(one)).values() for one in found]
        column = "a column" if sets == 1 else f"the average of {sets} data sets"
        told = f"no difference; {methods} methods, {column}, {searches} searches"
        yield Row("not bold: told from the best", WHERE, told, "at most 5%", 0.0, 0.05, float(np.mean(wrong)), draws)
    for sets in (1, 3):
        found = searched(np.random.default_rng((11, sets)), (draws, 4, sets, 3)).mean(axis=-1)
        unequal = truth() + (found - truth()) * np.array([0.2, 1.0, 1.0, 3.0])[:, None, None]
        wrong = [False in compare_with_best_method(_by_method(one)).values() for one in unequal]
        column = "a column" if sets == 1 else f"the average of {sets} data sets"
        told = f"no difference; 4 methods of unequal spread, {column}, 3 searches"
        yield Row("not bold: told from the best", WHERE, told, "at most 5%", 0.0, 0.05, float(np.mean(wrong)), draws)


def correlated(generator: np.random.Generator, draws: int, methods: int, sets: int, searches: int) -> Numbers:
    """Equal methods on data sets of their own levels, of the shape (draws, methods, sets, searches)."""
    shared = generator.normal(0.0, 0.02, (draws, 1, sets, searches)) + generator.normal(0.0, 0.1, (draws, 1, sets, 1))
    return searched(generator, (draws, methods, sets, searches), shared).mean(axis=-1)


def _by_method(one: Numbers) -> dict[str, list[dict[int, float]]]:
    """Of an array (methods, sets, searches) what `leaders` takes."""
    return {
        str(method): [dict(enumerate(values)) for values in row] for method, row in enumerate(np.asarray(one).tolist())
    }


def _covers(found: object) -> bool:
    interval = found.interval()  # type: ignore[attr-defined]
    return bool(interval[0] <= truth() <= interval[1])


def _coverage(statement: str, told: str, hits: list[bool]) -> Row:
    return Row(statement, WHERE, told, "95%", 0.93, 0.97, float(np.mean(hits)), len(hits))
