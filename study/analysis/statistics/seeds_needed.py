"""How many seeds a difference needs to come out as clear: the power of its t test."""

import math
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from study.ranking.difference import CONFIDENCE_LEVEL, Difference, find_root, selection_adjusted_t

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

TARGET_POWER, TARGET_POWER_IN_WORDS = 0.8, "4 of 5 cases"
"""Chance with which a true difference is to come out as clear; the same in words."""

SEEDS_CONFIDENCE = 0.9
"""Confidence of the range of seeds needed: each of its ends is wrong in at most 5% of studies."""

MAX_SEEDS_NEEDED = 20
"""Largest number of seeds that anybody runs to tell two configurations apart."""

PROPOSED_CONFIRM_COUNT = 5
"""Number of configurations and of seeds that are proposed for a first confirmation."""


@dataclass(frozen=True)
class SeedsNeeded:
    """The seeds, in all, with which a difference that was not clear comes out as clear, by `TARGET_POWER`.

    Attributes:
        fewest, most: the ends of the range that holds the true number, or one more than there were, with confidence
            `SEEDS_CONFIDENCE`; None: more than `MAX_SEEDS_NEEDED`.
        middle: the number that is as likely too large as too small; None as before.
        next_batch: how many to run next, at most twice as many as there were, where these can be enough.
    """

    fewest: int | None
    middle: int | None
    most: int | None
    next_batch: int


def estimate_seeds_needed(gap: Difference, seeds: int) -> SeedsNeeded:
    """Estimate the seeds that a difference needs whose interval holds zero.

    Few seeds know neither the difference nor its spread, so both are taken as unknown: T = difference / standard error
    has the noncentral t distribution F, whose noncentrality over the root of the seeds is the effect. Its bounds solve
    F(T) = level (Hedges and Olkin 1985, ch. 5). That the difference was not clear shifts T: its largest effect solves
    F(T) / F(limit of clear) instead, which is right whenever it is asked. For the best of several, T is too large by
    luck; the lower bound takes that out by the ratio of the quantiles for one and for several.

    Args:
        gap: with an interval, not clear, its standard error above 0.
        seeds: number of seeds behind it.
    """
    assert gap.standard_error
    freedom = gap.degrees_of_freedom
    assert freedom is not None
    measured, root, miss = abs(gap.value) / gap.standard_error, math.sqrt(seeds), (1 - SEEDS_CONFIDENCE) / 2
    clear = selection_adjusted_t((1 + CONFIDENCE_LEVEL) / 2, freedom, gap.n_candidates)
    lucky = selection_adjusted_t(1 - miss, freedom, gap.n_candidates) / selection_adjusted_t(1 - miss, freedom)
    least = _noncentrality(measured / lucky, freedom, 1 - miss)
    middle = _noncentrality(measured, freedom, 0.5)
    largest = _noncentrality(measured, freedom, miss, clear)
    fewest, expected, most = (
        _fewest_sufficient_seeds(size / root, seeds, gap.n_candidates) for size in (largest, middle, least)
    )
    next_step = max(
        fewest or 0, min(expected or MAX_SEEDS_NEEDED, max(2 * seeds, PROPOSED_CONFIRM_COUNT), MAX_SEEDS_NEEDED)
    )
    return SeedsNeeded(fewest, expected, most, next_step)


def _fewest_sufficient_seeds(size: float, seeds: int, among: int) -> int | None:
    """Return the fewest seeds, more than these, whose power is enough; None: more than `MAX_SEEDS_NEEDED`."""
    return next(
        (more for more in range(seeds + 1, MAX_SEEDS_NEEDED + 1) if detection_power(size, more, among) >= TARGET_POWER),
        None,
    )


def _noncentrality(measured: float, freedom: float, level: float, limit: float = math.inf) -> float:
    """Return the noncentrality at which T is at most `measured` with chance `level`.

    The chance is conditional on T being below `limit`.
    """

    def beyond(noncentrality: float) -> float:
        return (
            _noncentral_t_cdf(measured, freedom, noncentrality) / _noncentral_t_cdf(limit, freedom, noncentrality)
            - level
        )

    largest = float(_standard_deviation_quantiles(freedom)[-1]) * measured + 4
    if beyond(0.0) <= 0:
        return 0.0
    return math.inf if beyond(largest) > 0 else find_root(beyond, 0.0, largest)


def detection_power(size: float, seeds: int, among: int = 1) -> float:
    """Return the chance that a true difference is clear.

    Args:
        size: the difference in standard deviations of the paired differences.
        seeds: at least 2.
        among: from how many configurations the better one was chosen.
    """
    limit = selection_adjusted_t((1 + CONFIDENCE_LEVEL) / 2, seeds - 1, among)
    return 1 - _noncentral_t_cdf(limit, seeds - 1, math.sqrt(seeds) * size)


def _noncentral_t_cdf(limit: float, freedom: float, noncentrality: float) -> float:
    """Return the noncentral t's distribution function, as the mean over its standard deviation.

    SciPy's fails where the noncentrality is large.
    """
    from scipy.special import ndtr

    return (
        1.0 if math.isinf(limit) else float(ndtr(limit * _standard_deviation_quantiles(freedom) - noncentrality).mean())
    )


@cache
def _standard_deviation_quantiles(freedom: float) -> "NDArray[np.float64]":
    """Return sample standard deviations of values with standard deviation 1, of equal chance, in order."""
    import numpy as np
    from scipy.special import chdtri

    return np.sqrt(chdtri(freedom, 1 - (np.arange(2000) + 0.5) / 2000) / freedom)
