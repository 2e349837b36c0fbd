"""One cell of a table: what the trials at one place gave.

Only complete trials have a value: that of a pruned trial belongs to a smaller budget. As early stopping ends the worse
ones, the mean of the complete ones is mostly too good. Pruned and failed trials are counted.
"""

import math
from collections.abc import Collection, Hashable
from dataclasses import dataclass
from itertools import chain
from statistics import fmean
from typing import Any, Literal

import numpy as np
import pandas as pd

from study.home.events import ENDED
from study.ranking import Spread, spread
from study.training.config import SECTIONS

STATISTICS = ("mean", "sd", "n", "over", "seeds", "pruned", "failed", "open", "unread", "repeated", "values")
"""Of each cell in a table: what `Cell` has, and `mean`, `sd` and `n` of its values (NaN and 0 where there are none)."""

Configuration = tuple[Hashable, ...]
"""The values of a trial's parameters."""


@dataclass(frozen=True)
class Cell:
    """The values that the trials at one place of a table gave.

    Attributes:
        metric: of the values.
        values: of one configuration the metric on each seed, in the order of `seeds`; of several configurations the
            mean of each over its seeds.
        over: which of these the values are, and so what their standard deviation is taken over.
        seeds: the training seeds behind the values, each once.
        pruned, failed: how many trials were pruned, and failed.
        open: how many have not ended.
        unread: how many are complete without this metric, for example because their test split was not read.
        repeated: how many more trials had the same configuration and seed as another; these count once.
    """

    metric: str
    values: tuple[float, ...] = ()
    over: Literal["seeds", "configurations"] = "seeds"
    seeds: tuple[int, ...] = ()
    pruned: int = 0
    failed: int = 0
    open: int = 0
    unread: int = 0
    repeated: int = 0

    @property
    def spread(self) -> Spread | None:
        """Mean, sample standard deviation and number of the values, None without any."""
        return spread(self.values)

    @property
    def by_seed(self) -> dict[int, float]:
        """The values of one configuration by seed; empty for several."""
        is_one = self.over == "seeds" and len(self.seeds) == len(self.values)
        return dict(zip(self.seeds, self.values, strict=True)) if is_one else {}

    def statistics(self) -> dict[str, Any]:
        """As `STATISTICS`."""
        spread = self.spread
        numbers = (spread.mean, spread.deviation, spread.count) if spread else (None, None, 0)
        return dict(zip(("mean", "sd", "n"), numbers, strict=True)) | {
            name: getattr(self, name) for name in STATISTICS[3:]
        }


def cell(frame: pd.DataFrame, metric: str) -> Cell:
    """The cell of some trials, rows of a `trials_frame`.

    Where a configuration was confirmed on fresh seeds, only those seeds count: the trial by which it was chosen is the
    luckiest of many. Otherwise all its seeds count.
    """
    if frame.empty:
        return Cell(metric)
    complete = frame[frame["state"] == "complete"]
    measured = complete[np.isfinite(complete[metric])] if metric in complete else complete[:0]
    by_configuration = _by_configuration(measured, metric)
    several = len(by_configuration) > 1
    values = [[by_seed[seed] for seed in sorted(by_seed)] for by_seed in by_configuration.values()]
    states = frame["state"].value_counts().to_dict()
    ended = {state: int(states.get(state, 0)) for state in ENDED}
    return Cell(
        metric,
        tuple(map(fmean, values)) if several else tuple(chain.from_iterable(values)),
        "configurations" if several else "seeds",
        tuple(sorted(set(chain.from_iterable(by_configuration.values())))),
        pruned=ended["pruned"],
        failed=ended["failed"],
        open=len(frame) - sum(ended.values()),
        unread=len(complete) - len(measured),
        repeated=len(measured) - len(set(zip(_configurations(measured), measured["seed"], strict=True))),
    )


def param_columns(frame: pd.DataFrame) -> list[str]:
    """The frame's parameters."""
    return [name for name in map(str, frame.columns) if "/" not in name and name.split(".")[0] in SECTIONS]


FRESH = ("confirm", "rule")
"""Stages whose seeds the search did not see."""


def _by_configuration(measured: pd.DataFrame, metric: str) -> dict[Configuration, dict[int, float]]:
    """The metric by seed of each configuration, of those on fresh seeds alone where it has some."""
    configurations: dict[Configuration, dict[bool, dict[int, float]]] = {}
    for params, stage, seed, value in zip(
        _configurations(measured),
        measured["stage"],
        measured["seed"],
        measured[metric] if len(measured) else [],
        strict=True,
    ):
        by_stage = configurations.setdefault(params, {})
        by_stage.setdefault(stage in FRESH, {}).setdefault(int(seed), float(value))
    return {each: by_stage.get(True) or by_stage[False] for each, by_stage in configurations.items()}


def _configurations(frame: pd.DataFrame) -> list[Configuration]:
    """Each trial's parameters."""
    keys = param_columns(frame)
    return list(zip(*(map(_comparable, frame[key]) for key in keys), strict=True)) if keys else [()] * len(frame)


def _comparable(value: Any) -> Hashable:
    """A parameter's value in a form in which equal values are equal, missing ones too, and true is not 1."""
    if isinstance(value, list | tuple):
        return tuple(map(_comparable, value))
    return None if value is None or value != value else (isinstance(value, bool), value)


# The seed as a factor of a table: how much cells deviate once what a seed does to every cell is taken out.


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
