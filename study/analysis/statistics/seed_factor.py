"""The seed as a factor of a table: how much cells deviate once what a seed does to every cell is taken out."""

import math
from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from study.analysis.statistics.cells import Cell


@dataclass(frozen=True)
class SeedFactor:
    """Deviations of the cells of one table that share their seeds.

    Attributes:
        cells: how many share the seeds.
        seeds: those that all of them have.
        within: the deviation within cells, pooled: sqrt(sum of squares about the cells' means / (cells (seeds - 1))).
        residual: of the two-way layout cell + seed: what is left about cell mean + seed mean - mean, with
            (cells - 1) (seeds - 1) degrees of freedom. Cells of one table are compared by this one.
    """

    cells: int
    seeds: tuple[int, ...]
    within: float
    residual: float

    @property
    def freedom(self) -> int:
        """Degrees of freedom of the residual deviation."""
        return (self.cells - 1) * (len(self.seeds) - 1)


def seed_factor(cells: Collection[Cell]) -> SeedFactor | None:
    """The seed as a factor of these cells, all of one metric.

    Returns:
        None unless every cell with values is of one configuration, and two or more of them share two or more seeds.
    """
    measured = [cell for cell in cells if cell.values]
    by_cell = [cell.by_seed for cell in measured]
    if len({cell.metric for cell in measured}) != 1 or not all(by_cell):
        return None
    seeds = tuple(sorted(set.intersection(*(set(by_seed) for by_seed in by_cell))))
    if len(by_cell) < 2 or len(seeds) < 2:
        return None
    values = np.array([[by_seed[seed] for seed in seeds] for by_seed in by_cell])
    about_cells = values - values.mean(axis=1, keepdims=True)
    left = about_cells - about_cells.mean(axis=0, keepdims=True)
    within, residual = (float((part**2).sum()) for part in (about_cells, left))
    freedom = len(by_cell) * (len(seeds) - 1)
    without = (len(by_cell) - 1) * (len(seeds) - 1)
    return SeedFactor(len(by_cell), seeds, math.sqrt(within / freedom), math.sqrt(residual / without))
