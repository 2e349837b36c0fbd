"""The difference between two configurations, with its interval.

Configurations that ran on the same seeds share what these seeds do to any configuration: the order of the samples, the
first weights. So they are compared seed by seed. The best was chosen by the values that it is then judged by, and the
interval allows for that, see `selection_adjusted_t`.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import chain

from study.knobs import Value
from study.metrics.intervals import NORMAL_DEGREES_OF_FREEDOM
from study.ranking.trial_statistics import (
    RELATIVE_TOLERANCE,
    SeedStatistics,
    seed_statistics,
)

# Student's t of the best of several: how far its mean lies from its true one, in its own standard errors.
#
# The best of m configurations was chosen by the means of values whose luck is still in them: its own mean is too high.
# With normal values, the means over the seeds are independent of the standard deviations, so the chosen one's standard
# error has n - 1 degrees of freedom whatever was chosen, and its luck is at most the largest of m. So
#
#     P(T > c) <= 1 - E[Phi(c S)^m], S^2 = chi^2(n - 1) / (n - 1),
#
# with equality where the m are alike and independent. Positive correlation, as by a shared baseline and shared seeds,
# makes the largest smaller (Slepian 1962), and no variance has to equal another. The value at which the right side is
# 2.5% takes the place of Student's quantile. It is below Bonferroni's, and its equal for m = 1.

MAX_LUCK_STANDARD_ERRORS = 12.0
"""Largest luck of a mean, in standard errors, that is counted; below zero it cannot pass for better."""


@cache
def selection_adjusted_t(level: float, degrees_of_freedom: float, n_candidates: int = 1) -> float:
    """Return the t that the best of `n_candidates` equal configurations exceeds with probability 1 - `level` at most.

    Args:
        level: above 0.5.
        degrees_of_freedom: degrees of freedom of a single one's standard error.
        n_candidates: 1: Student's quantile.
    """
    import numpy as np  # here: what has no interval is told at once
    from scipy.special import chdtr, ndtr, stdtrit

    student = float(stdtrit(degrees_of_freedom, level))
    if n_candidates == 1:
        return student
    bonferroni = -float(stdtrit(degrees_of_freedom, (1 - level) / n_candidates))
    luck = np.linspace(0.0, MAX_LUCK_STANDARD_ERRORS, 6001)
    density = n_candidates * np.exp(-(luck**2) / 2) / np.sqrt(2 * np.pi) * ndtr(luck) ** (n_candidates - 1)

    def beyond(quantile: float) -> float:
        probability = chdtr(degrees_of_freedom, degrees_of_freedom * (luck / quantile) ** 2)
        return float(np.trapezoid(density * probability, luck)) - (1 - level)

    return find_root(beyond, student * 0.99, bonferroni * 1.01)


def find_root(function: Callable[[float], float], low: float, high: float) -> float:
    """Return where a function that falls or rises all the way is zero, to ten digits, by the Illinois method.

    Importing scipy.optimize for it would take most of a second.

    Args:
        low, high: its signs differ there.
    """
    before, at, of_before, of_at = low, high, function(low), function(high)
    while of_at and abs(at - before) > 1e-12:
        found = at - of_at * (at - before) / (of_at - of_before)
        of_found = function(found)
        if (of_found > 0) == (of_at > 0):
            of_before /= 2  # the same end a second time would make it slow
        else:
            before, of_before = at, of_at
        if abs(found - at) <= 1e-10 * max(1.0, abs(found)):
            return found
        at, of_at = found, of_found
    return at


CONFIDENCE_LEVEL = 0.95


@dataclass(frozen=True)
class Difference:
    """A difference of means and its interval, None where there are too few values for one.

    Attributes:
        value: 0 where it is the noise of rounding (`study.ranking.RELATIVE_TOLERANCE`).
        is_paired: whether it is the mean over shared seeds of the difference on each.
        n_candidates: from how many configurations the first was chosen, which the interval allows for.
        standard_error, degrees_of_freedom: of the value; None without an interval.
    """

    value: float
    interval: tuple[float, float] | None
    is_paired: bool = False
    n_candidates: int = 1
    standard_error: float | None = None
    degrees_of_freedom: float | None = None

    @property
    def is_clear(self) -> bool | None:
        """Whether zero lies outside the interval; None without an interval."""
        return None if self.interval is None else self.interval[0] > 0 or self.interval[1] < 0

    @property
    def is_over_samples(self) -> bool:
        """Whether it is of the samples of all folds together, any interval over such samples drawn anew, not seeds."""
        return self.degrees_of_freedom == NORMAL_DEGREES_OF_FREEDOM

    @property
    def has_zero_width(self) -> bool:
        """Whether every seed, or every draw of the samples, gave the same values, so that the interval has no width."""
        return self.interval is not None and self.interval[0] == self.interval[1]

    @property
    def is_unclear_for_few_seeds(self) -> bool:
        """Whether an interval with fewer than 2 degrees of freedom holds zero.

        With two seeds Student's t is 12.7, and the interval may reach over more than all values that the metric has.
        """
        return self.is_clear is False and self.degrees_of_freedom is not None and self.degrees_of_freedom < 2

    def to_dict(self) -> dict[str, Value]:
        """Return plain values for JSON: difference, interval, paired, among."""
        interval = list(self.interval) if self.interval else None
        return {"difference": self.value, "interval": interval, "paired": self.is_paired, "among": self.n_candidates}

    def to_document_value(self) -> dict[str, Value]:
        """Return plain values for a document: also whether it rests on too few seeds to judge."""
        return {**self.to_dict(), "too_few_seeds": self.is_unclear_for_few_seeds}


ArmValues = Mapping[int, float] | SeedStatistics | None


def mean_difference(
    one: ArmValues, other: ArmValues, n_candidates: int = 1, confidence: float = CONFIDENCE_LEVEL
) -> Difference | None:
    """Return `one` minus `other`, with the paired t interval by the seeds that both have.

    Where that is not possible, it is the difference of the means with Welch's interval: of spreads, as those of printed
    numbers, with fewer than two seeds in common, or where the difference is the same on all of them, which small splits
    bring about by chance.

    Args:
        one, other: a metric by seed, or its spread alone.
        n_candidates: from how many configurations `one` was chosen by these values, or by others of the same trials.

    Returns:
        None if either has no value. Without an interval where an arm has a single value.
    """
    if not isinstance(one, Mapping) or not isinstance(other, Mapping):
        return _welch_difference(_to_statistics(one), _to_statistics(other), n_candidates, confidence)
    by_seed = seed_statistics(one[seed] - other[seed] for seed in one if seed in other)
    noise = RELATIVE_TOLERANCE * max(map(abs, chain(one.values(), other.values())), default=0.0)
    if by_seed is None or by_seed.standard_deviation is None or by_seed.standard_deviation <= noise:
        return _welch_difference(_to_statistics(one), _to_statistics(other), n_candidates, confidence)
    error, value = by_seed.standard_deviation / math.sqrt(by_seed.count), by_seed.mean
    return difference_from_error(
        value if abs(value) > noise else 0.0, error, by_seed.count - 1, confidence, True, n_candidates
    )


def _to_statistics(values: ArmValues) -> SeedStatistics | None:
    return seed_statistics(values.values()) if isinstance(values, Mapping) else values


def _welch_difference(
    one: SeedStatistics | None, other: SeedStatistics | None, n_candidates: int, confidence: float
) -> Difference | None:
    if one is None or other is None:
        return None
    value = one.mean - other.mean
    if abs(value) <= RELATIVE_TOLERANCE * max(abs(one.mean), abs(other.mean)):
        value = 0.0
    if one.standard_deviation is None or other.standard_deviation is None:
        return Difference(value, None, False, n_candidates)
    variances = [arm.standard_deviation**2 / arm.count for arm in (one, other) if arm.standard_deviation is not None]
    total = sum(variances)
    if total == 0.0:
        return Difference(value, (value, value), False, n_candidates, 0.0, math.inf)
    shares = [variance / total for variance in variances]  # squares of these cannot vanish, as those of variances can
    freedom = 1 / sum(share**2 / (arm.count - 1) for share, arm in zip(shares, (one, other), strict=True))
    return difference_from_error(value, math.sqrt(total), freedom, confidence, False, n_candidates)


def difference_from_error(
    value: float, error: float, freedom: float, confidence: float, is_paired: bool, n_candidates: int
) -> Difference:
    """Return a difference of this value and standard error, with its interval."""
    reach = selection_adjusted_t((1 + confidence) / 2, freedom, max(1, n_candidates)) * error
    return Difference(value, (value - reach, value + reach), is_paired, n_candidates, error, freedom)
