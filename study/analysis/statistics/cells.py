"""Tables of any parameters of any study: each cell says what the trials at one place gave.

Only complete trials have a value. A trial that was stopped early never enters a mean: what it reached is the value of
a smaller budget. It is counted, as are trials that failed.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, product
from statistics import fmean
from typing import Any, Literal

import numpy as np
import pandas as pd

from study import metrics
from study.analysis.statistics.levels import levels
from study.errors import UserError, nearest
from study.home.record import ENDED
from study.ranking import Spread, spread
from study.training.config import SECTIONS

BINS = 5

STATISTICS = ("mean", "sd", "n", "over", "seeds", "stopped", "failed", "open", "unread", "repeated", "values")
"""Of each cell in a table: what `Cell` has, and `mean`, `sd` and `n` of its values (NaN and 0 where there are none)."""

Place = tuple[Hashable, ...]
"""The levels of a row or of a column, one per parameter."""


@dataclass(frozen=True)
class Cell:
    """What the trials at one place of a table gave.

    Attributes:
        metric: of the values.
        values: of one configuration the metric on each seed; of several configurations the mean of each over its seeds.
        over: which of these the values are, and so what their standard deviation is taken over.
        seeds: the training seeds behind the values, each once.
        stopped, failed: how many trials were stopped early, and failed.
        open: how many have not ended.
        unread: how many are complete without this metric, as a test metric that was not read.
        repeated: how many more trials had the same configuration and seed as another; these count once.
    """

    metric: str
    values: tuple[float, ...] = ()
    over: Literal["seeds", "configurations"] = "seeds"
    seeds: tuple[int, ...] = ()
    stopped: int = 0
    failed: int = 0
    open: int = 0
    unread: int = 0
    repeated: int = 0

    @property
    def spread(self) -> Spread | None:
        """Mean, sample standard deviation and number of the values, None without any."""
        return spread(self.values)

    def statistics(self) -> dict[str, Any]:
        """As `STATISTICS`."""
        found = self.spread
        numbers = (found.mean, found.deviation, found.count) if found else (None, None, 0)
        return dict(zip(("mean", "sd", "n"), numbers, strict=True)) | {
            name: getattr(self, name) for name in STATISTICS[3:]
        }


def cell(frame: pd.DataFrame, metric: str) -> Cell:
    """What some trials, rows of a `trials_frame`, gave.

    A configuration that was confirmed on fresh seeds has its value from these alone: the trial by which it was chosen
    is the luckiest of many. Any other has it from all its seeds.
    """
    if frame.empty:
        return Cell(metric)
    complete = frame[frame["state"] == "complete"]
    read = complete[np.isfinite(complete[metric])] if metric in complete else complete[:0]
    by_configuration = _by_configuration(read, metric)
    several = len(by_configuration) > 1
    values = [list(by_seed.values()) for by_seed in by_configuration]
    states = frame["state"].value_counts().to_dict()
    ended = {state: int(states.get(state, 0)) for state in ENDED}
    return Cell(
        metric,
        tuple(map(fmean, values)) if several else tuple(chain.from_iterable(values)),
        "configurations" if several else "seeds",
        tuple(sorted(set(chain.from_iterable(by_configuration)))),
        stopped=ended["pruned"],
        failed=ended["failed"],
        open=len(frame) - sum(ended.values()),
        unread=len(complete) - len(read),
        repeated=len(read) - len(set(zip(_configurations(read), read["seed"], strict=True))),
    )


def _by_configuration(read: pd.DataFrame, metric: str) -> list[dict[int, float]]:
    """The metric by seed of each configuration, of the confirm trials alone where it has some."""
    found: dict[Place, dict[bool, dict[int, float]]] = {}
    for params, stage, seed, value in zip(
        _configurations(read), read["stage"], read["seed"], read[metric] if len(read) else [], strict=True
    ):
        found.setdefault(params, {}).setdefault(stage == "confirm", {}).setdefault(int(seed), float(value))
    return [stages.get(True) or stages[False] for stages in found.values()]


def _configurations(frame: pd.DataFrame) -> list[Place]:
    """Each trial's parameters."""
    keys = param_columns(frame)
    return list(zip(*(map(_same, frame[key]) for key in keys), strict=True)) if keys else [()] * len(frame)


def ablation(frame: pd.DataFrame, by: str | Sequence[str], metric: str, bins: int | None = BINS) -> pd.DataFrame:
    """What each value of one parameter gives, or each combination of several that was tried.

    Args:
        frame: of `study.analysis.load` or `trials_frame`, or some of its rows.
        by: parameters' dotted keys.
        metric: as `val/accuracy`.
        bins: see `study.analysis.statistics.levels.levels`.

    Returns:
        Indexed by value (see `levels`), a column for each of `STATISTICS`; the columns' name is the metric.

    Raises:
        UserError: a parameter or the metric is not one of this study.
    """
    keys = _keys(by)
    rows, _, cells = _cells(frame, keys, [], metric, bins)
    table = pd.DataFrame([cells[row, ()].statistics() for row in rows], _index(rows, keys), list(STATISTICS))
    table.columns.name = metric
    return _typed(table)


def sensitivity(
    frame: pd.DataFrame,
    rows: str | Sequence[str],
    columns: str | Sequence[str],
    metric: str,
    bins: int | None = BINS,
) -> pd.DataFrame:
    """Two parameters, or groups of parameters, against each other: the form of FairKL paper Table 12.

    Args:
        frame, metric, bins: as for `ablation`.
        rows, columns: dotted keys.

    Returns:
        Indexed by the rows' values. Columns of several levels: one of `STATISTICS`, then the columns' values, so that
        `table["mean"]` is the matrix of means; the first level's name is the metric. Where no trial was, `n` is 0.

    Raises:
        UserError: a parameter or the metric is not one of this study.
    """
    down, across = _keys(rows), _keys(columns)
    if twice := set(down) & set(across):
        raise UserError(f"{', '.join(sorted(twice))} given for rows and for columns, one of them is needed")
    row_places, column_places, cells = _cells(frame, down, across, metric, bins)
    found = [[cells[row, column].statistics() for column in column_places] for row in row_places]
    table = pd.DataFrame(
        [[one[name] for name in STATISTICS for one in line] for line in found],
        _index(row_places, down),
        pd.MultiIndex.from_tuples(
            [(name, *column) for name in STATISTICS for column in column_places], names=[metric, *across]
        ),
    )
    return _typed(table)


def chosen(frame: pd.DataFrame, values: Mapping[str, Any]) -> pd.DataFrame:
    """The trials whose parameters have these values, by dotted key.

    Raises:
        UserError: a key is no parameter of this study.
    """
    _check_keys(frame, values)
    for key, value in values.items():
        frame = frame[[_same(given) == _same(value) for given in frame[key]]]
    return frame


def param_columns(frame: pd.DataFrame) -> list[str]:
    """The frame's parameters."""
    return [name for name in map(str, frame.columns) if "/" not in name and name.split(".")[0] in SECTIONS]


def _cells(
    frame: pd.DataFrame, down: list[str], across: list[str], metric: str, bins: int | None
) -> tuple[list[Place], list[Place], dict[tuple[Place, Place], Cell]]:
    """Places down and across a table, and the cell of every pair of them."""
    _check_keys(frame, [*down, *across])
    _check_metric(metric, [name for name in map(str, frame.columns) if "/" in name])
    given = {key: levels(frame[key], bins) for key in [*down, *across]}
    rows, of_row = _places([given[key] for key in down], len(frame))
    columns, of_column = _places([given[key] for key in across], len(frame))
    found: dict[tuple[Place, Place], list[int]] = {pair: [] for pair in product(rows, columns)}
    for position, pair in enumerate(zip(of_row, of_column, strict=True)):
        found[pair].append(position)
    return rows, columns, {pair: cell(frame.iloc[positions], metric) for pair, positions in found.items()}


def _places(given: list[pd.Categorical], length: int) -> tuple[list[Place], list[Place]]:
    """The places that there are, in order, and that of each trial; of one parameter also bins that no trial is in."""
    of_trial: list[Place] = list(zip(*given, strict=True)) if given else [()] * length
    if len(given) == 1:
        return [(level,) for level in given[0].categories], of_trial
    codes = dict(zip(zip(*(one.codes for one in given), strict=True), of_trial, strict=False))
    return [codes[code] for code in sorted(codes)] if given else [()], of_trial


def _check_metric(metric: str, present: Iterable[str]) -> None:
    """Refuse what is not a metric. A metric that no trial has yet is accepted: its cells are empty."""
    names = list(present)
    if metric not in names and ("/" not in metric or metrics.find(metric) is None):
        raise UserError(
            f"{metric!r} is not a metric. {nearest(metric, names)}There are: {', '.join(names) or 'none yet'}"
        )


def _check_keys(frame: pd.DataFrame, keys: Iterable[str]) -> None:
    known = param_columns(frame)
    for key in keys:
        if key not in known:
            raise UserError(
                f"{key!r} is no parameter that differs between trials of this study. {nearest(key, known)}"
                f"There are: {', '.join(known) or 'none'}"
            )


def _keys(given: str | Sequence[str]) -> list[str]:
    return [given] if isinstance(given, str) else list(given)


def _same(value: Any) -> Hashable:
    """A parameter's value such that equal values are equal, missing ones too."""
    if isinstance(value, list | tuple):
        return tuple(map(_same, value))
    return None if value is None or value != value else (isinstance(value, bool), value)


def _index(places: list[Place], keys: list[str]) -> pd.Index:
    if len(keys) == 1:
        return pd.Index([place[0] for place in places], name=keys[0])
    return pd.MultiIndex.from_tuples(places, names=keys)


def _typed(table: pd.DataFrame) -> pd.DataFrame:
    """Means and deviations as floats, NaN where there are none, counts as integers."""
    kinds = {"mean": float, "sd": float} | dict.fromkeys(
        ("n", "stopped", "failed", "open", "unread", "repeated"), "int64"
    )
    first = table.columns.get_level_values(0)
    return table.astype(
        {column: kinds[name] for column, name in zip(table.columns, first, strict=True) if name in kinds}
    )
