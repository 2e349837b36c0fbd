"""Simultaneous confidence bands from independent draws, exact for every distribution.

Of the distribution function: the band of Learned-Miller and DeStefano (2008, "A probabilistic upper bound on
differential entropy"), which Lourie et al. (2024, "Show Your Work with Confidence", section 3) use for tuning curves. F
at the i-th of n ordered draws has a beta(i, n + 1 - i) distribution, and each gets the equal-tailed interval of one
level, chosen so that all of them hold at once. Of given quantiles alone the band is narrower: each lies between two
ordered draws, as many draws are below it as a binomial count says. Both levels are computed, not simulated:
`chance_to_stay` is the probability that the counts of a uniform sample stay within limits. A discrete distribution
(ties) is covered at least as often as a continuous one.
"""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, gammaln

Floats = NDArray[np.float64]
Places = NDArray[np.int64]

MOST_EXACT = 1000
"""Draws up to which the level is computed, in about 2 s at most; above, the band is that of Dvoretzky, Kiefer and
Wolfowitz with Massart's (1990) constant, which is wider."""

NEGLIGIBLE = 1e-16


@lru_cache(maxsize=64)
def band(draws: int, confidence: float) -> tuple[Floats, Floats]:
    """Limits of F between the ordered draws, that all hold at once with this probability.

    Returns:
        `low` and `high`, each of shape (draws + 1,): with i draws at or below x, F(x) is between `low[i]` and
        `high[i]`. Read only.
    """
    if draws > MOST_EXACT:
        reach = np.sqrt(np.log(2 / (1 - confidence)) / (2 * draws))
        share = np.arange(draws + 1) / draws
        low, high = np.clip(share - reach, 0, 1), np.clip(share + reach, 0, 1)
    else:
        lower, upper = limits(draws, pointwise_level(draws, confidence))
        low, high = np.concatenate([[0.0], lower]), np.concatenate([upper, [1.0]])
    low.flags.writeable = high.flags.writeable = False
    return low, high


def limits(draws: int, level: float) -> tuple[Floats, Floats]:
    """The equal-tailed intervals, each missed with probability `level`, of F at each of the ordered draws."""
    places = np.arange(1, draws + 1)
    lower, upper = (betaincinv(places, draws + 1 - places, tail) for tail in (level / 2, 1 - level / 2))
    return lower, upper


@lru_cache(maxsize=64)
def pointwise_level(draws: int, confidence: float) -> float:
    """The probability with which each limit alone may be missed, for all of them to hold with `confidence`."""

    from scipy.optimize import brentq  # here: loading it takes longer than the report of a study too small for a band

    def missing(log_level: float) -> float:
        return joint_coverage(*limits(draws, float(np.exp(log_level)))) - confidence

    miss = 1 - confidence
    return float(np.exp(brentq(missing, np.log(miss / (2 * draws)), np.log(miss), xtol=1e-4)))


@lru_cache(maxsize=64)
def quantile_places(draws: int, confidence: float, quantiles: tuple[float, ...]) -> tuple[Places, Places]:
    """Between which ordered draws quantiles lie, all at once with this probability.

    Args:
        quantiles: of which shares, ascending, above 0 and below 1.

    Returns:
        For each quantile the place of the draw below it, from 1 (0: none is), and of the one above it (draws + 1: none
        is).
    """
    from scipy.stats import binom  # here, as above

    times, miss = np.array(quantiles), 1 - confidence

    def places(level: float) -> tuple[Places, Places]:
        return binom.ppf(level / 2, draws, times).astype(int), binom.ppf(1 - level / 2, draws, times).astype(int)

    low, high = np.log(miss / (2 * len(times))), np.log(min(1.0, 2 * miss))  # Bonferroni's level holds, this one not
    while high - low > 1e-3:
        middle = (low + high) / 2
        holds = chance_to_stay(draws, times, *places(float(np.exp(middle)))) >= confidence
        low, high = (middle, high) if holds else (low, middle)
    least, most = places(float(np.exp(low)))
    return least, most + 1


def joint_coverage(lower: Floats, upper: Floats) -> float:
    """The probability that each ordered uniform draw lies between its limits; both ascend."""
    draws = len(lower)
    times = np.concatenate([lower, upper])
    least = np.concatenate([np.zeros(draws, int), np.arange(1, draws + 1)])  # draws that have come by an upper limit
    most = np.concatenate([np.arange(draws), np.full(draws, draws)])  # and may have come by a lower one
    order = np.argsort(times, kind="stable")
    return chance_to_stay(draws, times[order], least[order], most[order])


def chance_to_stay(draws: int, times: Floats, least: Places, most: Places) -> float:
    """The probability that at each of these times, ascending, `least` to `most` uniform draws are at or below it.

    Their number is followed from time to time as that of a Poisson process, given that it ends at n (Moscovich and
    Nadler, 2017, "Fast calculation of boundary crossing probabilities for Poisson processes").
    """
    chance, first, now = np.ones(1), 0, 0.0
    for time, low, high in zip(times, least, most, strict=True):
        chance, first = _later(chance, first, draws * (time - now))
        now = time
        begin, end = max(first, int(low)), min(first + len(chance) - 1, int(high))
        if end < begin:
            return 0.0
        chance, first = chance[begin - first : end + 1 - first], begin
    chance, first = _later(chance, first, draws * (1 - now))
    if not first <= draws < first + len(chance):
        return 0.0
    return float(chance[draws - first] / _poisson(draws, draws, draws)[0])


def _later(chance: Floats, first: int, rate: float) -> tuple[Floats, int]:
    """The distribution of the count after a further stretch; `chance[j]` is that of `first + j`."""
    if rate <= 0:
        return chance, first
    reach = 9 * np.sqrt(rate)
    begin = max(0, int(rate - reach))
    after = np.convolve(chance, _poisson(rate, begin, int(rate + reach + 25)))
    likely = np.flatnonzero(after > NEGLIGIBLE)
    return after[likely[0] : likely[-1] + 1], first + begin + int(likely[0])


def _poisson(rate: float, first: int, last: int) -> Floats:
    """The chances of `first` to `last` events."""
    counts = np.arange(first, last + 1)
    chances: Floats = np.exp(counts * np.log(rate) - rate - gammaln(counts + 1))
    return chances
