"""Average ranks of methods over data sets, and which of them differ: Friedman's test and Nemenyi's critical difference.

Demsar (2006, JMLR 7) has both. A block is a data set, on which methods are ranked by their means: searches on one data
set are repetitions and no further blocks, so they say nothing of other data sets.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

LEVEL = 0.05

PERMUTATIONS = 20_000
"""Of the ranks within blocks: the share of them that decides at 0.05 is off by 0.0015 (standard error)."""


@dataclass(frozen=True)
class Ranks:
    """Average ranks over the data sets on which every method has a value, 1 is best; ties share theirs.

    Attributes:
        average: by method.
        blocks: how many data sets these are.
        p: of Friedman's test that all methods are equal, by permutation within data sets.
        critical: Nemenyi's critical difference of two average ranks, all pairs at once.
    """

    average: Mapping[str, float]
    blocks: int
    p: float
    critical: float

    @property
    def apart(self) -> list[tuple[str, str]]:
        """The pairs that are told apart, the better one first: at least the critical difference apart, after Friedman's
        test has told that not all are equal."""
        if self.p > LEVEL:
            return []
        pairs = combinations(sorted(self.average, key=self.average.__getitem__), 2)
        return [pair for pair in pairs if self.average[pair[1]] - self.average[pair[0]] >= self.critical - 1e-12]

    @property
    def can_tell(self) -> bool:
        """Whether any outcome on so many data sets could tell two methods apart."""
        return self.critical <= len(self.average) - 1


def ranks(means: Mapping[str, Mapping[str, float]], better: float = 1.0) -> Ranks | None:
    """The ranks of methods; None for fewer than two methods or data sets that all have.

    Args:
        means: by method and data set.
        better: 1 where larger values are better, -1 where smaller ones are.
    """
    if len(means) < 2:
        return None
    own = list(means.values())
    shared = [label for label in own[0] if all(label in one for one in own)]
    if len(shared) < 2:
        return None
    from scipy.stats import rankdata

    table = rankdata([[-better * one[label] for one in own] for label in shared], axis=1)
    average = dict(zip(means, map(float, table.mean(axis=0)), strict=True))
    return Ranks(average, len(shared), friedman(table), critical_difference(len(means), len(shared)))


def friedman(table: NDArray[np.float64]) -> float:
    """The p-value of Friedman's test by permutation: his statistic grows with the squares of the rank sums.

    Args:
        table: ranks, a row per data set.
    """
    null = _squares(tuple(tuple(sorted(map(float, row))) for row in table))
    found = (table.sum(axis=0) ** 2).sum()
    return float((1 + np.sum(null >= found - 1e-9)) / (1 + PERMUTATIONS))


@lru_cache(maxsize=8)
def _squares(rows: tuple[tuple[float, ...], ...]) -> NDArray[np.float64]:
    """The sum of squared rank sums of each permutation; without ties it depends on the table's form alone."""
    generator = np.random.default_rng(0)
    drawn = generator.permuted(np.broadcast_to(rows, (PERMUTATIONS, len(rows), len(rows[0]))), axis=2)
    squares: NDArray[np.float64] = (drawn.sum(axis=1) ** 2).sum(axis=1)
    return squares


def critical_difference(methods: int, blocks: int) -> float:
    """Nemenyi's: q / sqrt(2) * sqrt(k (k + 1) / (6 N)), q of the studentized range (Demsar 2006, Section 3.2.2)."""
    return _studentized(methods) / math.sqrt(2) * math.sqrt(methods * (methods + 1) / (6 * blocks))


@cache
def _studentized(methods: int) -> float:
    from scipy.stats import studentized_range

    return float(studentized_range.ppf(1 - LEVEL, methods, np.inf))
