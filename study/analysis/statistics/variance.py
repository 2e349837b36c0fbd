"""Where the spread of a table's cells comes from: from search to search, and from seed to seed of one choice."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, harmonic_mean, variance

from scipy.special import fdtrc

Values = Sequence[Sequence[Sequence[float]]]
"""By cell and search the values on fresh seeds."""


@dataclass(frozen=True)
class Components:
    """Standard deviations of a one-way random model, pooled over cells.

    Attributes:
        search: of a search's true value around its cell's, 0 where the seeds explain all of it.
        seed: of a value around its search's mean.
        p: of the test that searches differ by no more than their seeds (F); None where there are no two searches.
        searches, seeds: degrees of freedom of both.
    """

    search: float | None
    seed: float | None
    p: float | None
    searches: int
    seeds: int


def components(cells: Values) -> Components:
    """The two components: of the means of searches, the variance less what the seeds bring into it."""
    searches = [search for cell in cells for search in cell]
    within = [(len(search) - 1, variance(search)) for search in searches if len(search) > 1]
    between = [(len(cell) - 1, variance(map(fmean, cell))) for cell in cells if len(cell) > 1]
    seeds, of_searches = sum(freedom for freedom, _ in within), sum(freedom for freedom, _ in between)
    seed = sum(freedom * square for freedom, square in within) / seeds if seeds else None
    if seed is None or not of_searches:
        return Components(None, None if seed is None else math.sqrt(seed), None, of_searches, seeds)
    means = sum(freedom * square for freedom, square in between) / of_searches
    each = harmonic_mean([len(search) for search in searches])
    search = math.sqrt(max(0.0, means - seed / each))
    return Components(search, math.sqrt(seed), _p(means, seed / each, of_searches, seeds), of_searches, seeds)


def _p(means: float, by_seeds: float, searches: int, seeds: int) -> float:
    if by_seeds == 0.0:
        return 1.0 if means == 0.0 else 0.0
    return float(fdtrc(searches, seeds, means / by_seeds))
