"""Means with standard errors from few independent values, their averages, and which of several are told apart.

A value is what one search gave. Searches of one method on one data set are independent; those of two methods with the
same number share their seeds, so methods are compared by the differences within a search.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean, stdev

from scipy.special import stdtrit

from study.analysis.statistics import difference as by_seed

CONFIDENCE = 0.95

Searches = Mapping[int, float]
"""A value by the number of its search."""


@dataclass(frozen=True)
class Estimate:
    """A mean.

    Attributes:
        mean: of `count` values, or of other estimates.
        error: its standard error, None from a single value.
        freedom: degrees of freedom of the error, 0 without one.
        count: how many values it rests on.
    """

    mean: float
    error: float | None
    freedom: float
    count: int

    def interval(self, confidence: float = CONFIDENCE) -> tuple[float, float] | None:
        """By Student's t; None without a standard error."""
        if self.error is None:
            return None
        reach = float(stdtrit(self.freedom, (1 + confidence) / 2)) * self.error
        return self.mean - reach, self.mean + reach


def estimate(values: Iterable[float]) -> Estimate | None:
    """The mean of independent values; None without any."""
    numbers = list(values)
    if not numbers:
        return None
    error = stdev(numbers) / math.sqrt(len(numbers)) if len(numbers) > 1 else None
    return Estimate(fmean(numbers), error, len(numbers) - 1, len(numbers))


def average(parts: Sequence[Estimate | None]) -> Estimate | None:
    """The mean of independent estimates, one per data set: its error counts the searches, not how data sets differ.

    Its degrees of freedom are those of Welch (1947) and Satterthwaite (1946). None if a part is missing.
    """
    known = [part for part in parts if part is not None]
    if not known or len(known) < len(parts):
        return None
    mean, count = fmean(part.mean for part in known), sum(part.count for part in known)
    squares = [part.error**2 for part in known if part.error is not None]
    if len(squares) < len(known):
        return Estimate(mean, None, 0, count)
    total = sum(squares)
    freedoms = [part.freedom for part in known]
    if total == 0.0:
        return Estimate(mean, 0.0, sum(freedoms), count)
    freedom = 1 / sum((square / total) ** 2 / each for square, each in zip(squares, freedoms, strict=True))
    return Estimate(mean, math.sqrt(total) / len(known), freedom, count)


def difference(one: Sequence[Searches], other: Sequence[Searches]) -> Estimate | None:
    """How far one method is above another, averaged over data sets, by the searches that both have.

    Where the difference is the same in all of them, which small splits bring about by chance, its error is Welch's.

    Args:
        one, other: of each method the values on each data set, in the same order.
    """
    return average([_between(left, right) for left, right in zip(one, other, strict=True)])


def _between(one: Searches, other: Searches) -> Estimate | None:
    """`study.analysis.statistics.difference.difference` of the searches that both have, the number as the seed."""
    both = sorted(one.keys() & other.keys())
    gap = by_seed.difference({number: one[number] for number in both}, {number: other[number] for number in both})
    return Estimate(gap.value, gap.error, gap.freedom or 0, len(both)) if gap else None


def leaders(values: Mapping[str, Sequence[Searches]], better: float = 1.0) -> dict[str, bool | None]:
    """The best method, and of each other whether it is told from the best.

    All pairs could have been looked at, so each interval is at 1 - 0.05 / pairs (Bonferroni): under equal methods, any
    is told from the best in at most one of twenty tables.

    Args:
        values: of each method on each data set of a column, one, or several for their average.
        better: 1 where larger values are better, -1 where smaller ones are.

    Returns:
        By method: True for the best and for those not told from it, False for those told from it; None where there are
        no two searches to judge by. Methods without a value are left out.
    """
    means = {method: average([estimate(one.values()) for one in own]) for method, own in values.items()}
    known = {method: mean.mean * better for method, mean in means.items() if mean is not None}
    if not known:
        return {}
    best = max(known, key=lambda method: known[method])
    return {method: True if method == best else not_told(values[best], values[method], len(known)) for method in known}


def not_told(best: Sequence[Searches], other: Sequence[Searches], among: int) -> bool | None:
    """Whether the interval of the difference of two of `among` methods has 0 in it; None without an interval."""
    between = difference(best, other)
    interval = between.interval(simultaneous(among)) if between is not None else None
    return None if interval is None else interval[0] <= 0 <= interval[1]


def simultaneous(methods: int) -> float:
    """The confidence of one pair of methods at which the intervals of all pairs hold at once."""
    return 1 - (1 - CONFIDENCE) / max(1, math.comb(methods, 2))


def reach(values: Mapping[str, Sequence[Searches]]) -> tuple[float, float] | None:
    """How far two methods have to be apart to be told from each other: of the pair of which it is least, and of that of
    which it is most; None without any pair to judge."""
    widths = []
    for one, other in combinations(values, 2):
        between = difference(values[one], values[other])
        interval = between.interval(simultaneous(len(values))) if between is not None else None
        widths += [(interval[1] - interval[0]) / 2] if interval else []
    return (min(widths), max(widths)) if widths else None
