"""How many paired seeds make a difference clear."""

import math

POWER = 0.8
"""Chance with which a difference of the measured size is to come out as clear."""

BOUND = 0.8
"""Confidence of the upper bound of the standard deviation that is reckoned with: it is known from few seeds."""

MOST_SEEDS = 100


def seeds_needed(gap: float, deviation: float, freedom: float, among: int = 1, confidence: float = 0.95) -> int | None:
    """The paired seeds with which a difference is clear, if it truly is as large as it was measured.

    The interval is that of `study.analysis.statistics.difference`; its power is that of the noncentral t. A standard
    deviation of few values may be far too small by chance, so its upper 80% bound is taken for it (Browne 1995,
    Statistics in Medicine 14): at least 80% of such answers give at least the power that they promise.

    Args:
        gap: the difference of the means, not 0.
        deviation: sample standard deviation of the paired differences.
        freedom: degrees of freedom that it is known with.
        among: from how many configurations the better one was chosen.
        confidence: of the interval.

    Returns:
        At least 2; None where `MOST_SEEDS` are too few.
    """
    if gap == 0.0 or math.isnan(gap):
        return None
    from scipy.special import chdtri  # here, so that what needs no interval is told at once

    bound = deviation * math.sqrt(freedom / float(chdtri(freedom, BOUND)))
    if bound == 0.0:
        return 2
    low, high = 2, MOST_SEEDS
    if power(abs(gap) / bound, high, among, confidence) < POWER:
        return None
    while low < high:
        middle = (low + high) // 2
        if power(abs(gap) / bound, middle, among, confidence) >= POWER:
            high = middle
        else:
            low = middle + 1
    return low


def power(size: float, seeds: int, among: int = 1, confidence: float = 0.95) -> float:
    """The chance that a true difference is clear.

    Args:
        size: the difference in standard deviations of the paired differences.
        seeds: at least 2.
        among, confidence: as in `seeds_needed`.
    """
    from scipy.special import nctdtr

    from study.analysis.statistics.choice_quantile import chosen_quantile

    limit = chosen_quantile((1 + confidence) / 2, seeds - 1, among)
    return 1 - float(nctdtr(seeds - 1, math.sqrt(seeds) * size, limit))
