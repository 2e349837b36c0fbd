"""How many paired seeds make a difference clear."""

import math

POWER = 0.8
"""Chance with which a difference of the measured size is to come out as clear."""

BOUND = 0.8
"""Confidence of the upper bound of the standard deviation that is reckoned with: it is known from few seeds."""

MOST_SEEDS = 100


def seeds_needed(
    gap: float, deviation: float, freedom: float, confidence: float = 0.95, comparisons: int = 1
) -> int | None:
    """The paired seeds with which a difference is clear, if it truly is as large as it was measured.

    The interval of the mean of n paired differences is Student's; its power is that of the noncentral t. A standard
    deviation of few values may be far too small by chance, so its upper 80% bound is taken for it (Browne 1995,
    Statistics in Medicine 14): at least 80% of such answers give at least the power that they promise.

    Args:
        gap: the difference of the means, not 0.
        deviation: sample standard deviation of the paired differences.
        freedom: degrees of freedom that it is known with.
        confidence: of the interval.
        comparisons: among how many the interval holds at once (Bonferroni).

    Returns:
        At least 2; None where `MOST_SEEDS` are too few.
    """
    from scipy.special import chdtri, nctdtr, stdtrit  # here, so that what needs no interval is told at once

    if gap == 0.0 or math.isnan(gap):
        return None
    bound = deviation * math.sqrt(freedom / float(chdtri(freedom, BOUND)))
    if bound == 0.0:
        return 2
    for seeds in range(2, MOST_SEEDS + 1):
        limit = float(stdtrit(seeds - 1, 1 - (1 - confidence) / (2 * comparisons)))
        shift = math.sqrt(seeds) * abs(gap) / bound
        if 1 - float(nctdtr(seeds - 1, shift, limit)) >= POWER:
            return seeds
    return None
