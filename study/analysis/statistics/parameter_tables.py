"""Tables of any parameters of any study: which values gave what, one cell for each place."""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, product
from statistics import fmean
from typing import Literal

import numpy as np
import pandas as pd

from study import metrics
from study.analysis.statistics import formatting
from study.errors import UserError, suggest_or_list
from study.home.events import ENDED_STATES
from study.ranking import SeedStatistics, seed_statistics
from study.training.config import TRIAL_SECTIONS

CELL_STATISTICS = ("mean", "sd", "n", "over", "seeds", "pruned", "failed", "open", "unread", "repeated", "values")
"""What a table has of each cell: `mean`, `sd`, `n` of its values (NaN and 0 without any), fields of `MetricCell`."""

TrialParams = tuple[Hashable, ...]
"""The values of a trial's parameters, in the order of their columns."""


@dataclass(frozen=True)
class MetricCell:
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
    def seed_statistics(self) -> SeedStatistics | None:
        """Mean, sample standard deviation and number of the values, None without any."""
        return seed_statistics(self.values)

    @property
    def value_by_seed(self) -> dict[int, float]:
        """The values of one configuration by seed; empty for several."""
        is_one = self.over == "seeds" and len(self.seeds) == len(self.values)
        return dict(zip(self.seeds, self.values, strict=True)) if is_one else {}

    def to_dict(self) -> dict[str, object]:
        """Return the cell's values by the names in `CELL_STATISTICS`."""
        spread = self.seed_statistics
        numbers = (spread.mean, spread.standard_deviation, spread.count) if spread else (None, None, 0)
        return dict(zip(("mean", "sd", "n"), numbers, strict=True)) | {
            name: getattr(self, name) for name in CELL_STATISTICS[3:]
        }


def metric_cell_of_trials(frame: pd.DataFrame, metric: str) -> MetricCell:
    """Return the cell of some trials, rows of a `trials_frame`.

    Where a configuration was confirmed on fresh seeds, only those seeds count: the trial by which it was chosen is the
    luckiest of many. Otherwise all its seeds count.
    """
    if frame.empty:
        return MetricCell(metric)
    complete = frame[frame["state"] == "complete"]
    measured = complete[np.isfinite(complete[metric])] if metric in complete else complete[:0]
    by_configuration = _metric_by_configuration_and_seed(measured, metric)
    several = len(by_configuration) > 1
    values = [[by_seed[seed] for seed in sorted(by_seed)] for by_seed in by_configuration.values()]
    states = frame["state"].value_counts().to_dict()
    ended = {state: int(states.get(state, 0)) for state in ENDED_STATES}
    return MetricCell(
        metric,
        tuple(map(fmean, values)) if several else tuple(chain.from_iterable(values)),
        "configurations" if several else "seeds",
        tuple(sorted(set(chain.from_iterable(by_configuration.values())))),
        pruned=ended["pruned"],
        failed=ended["failed"],
        open=len(frame) - sum(ended.values()),
        unread=len(complete) - len(measured),
        repeated=len(measured) - len(set(zip(_params_of_trials(measured), measured["seed"], strict=True))),
    )


def param_columns(frame: pd.DataFrame) -> list[str]:
    """Return the frame's columns that are parameters."""
    return [name for name in map(str, frame.columns) if "/" not in name and name.split(".")[0] in TRIAL_SECTIONS]


FRESH_SEED_STAGES = ("confirm", "rule")
"""Stages whose seeds the search did not see."""


def _metric_by_configuration_and_seed(measured: pd.DataFrame, metric: str) -> dict[TrialParams, dict[int, float]]:
    """Return the metric by seed of each configuration, from fresh seeds alone where it has some."""
    configurations: dict[TrialParams, dict[bool, dict[int, float]]] = {}
    values: Iterable[float] = measured[metric] if len(measured) else []
    trials = zip(_params_of_trials(measured), measured["stage"], measured["seed"], values, strict=True)
    for params, stage, seed, value in trials:
        by_stage = configurations.setdefault(params, {})
        by_stage.setdefault(stage in FRESH_SEED_STAGES, {}).setdefault(int(seed), float(value))
    return {each: by_stage.get(True) or by_stage[False] for each, by_stage in configurations.items()}


def _params_of_trials(frame: pd.DataFrame) -> list[TrialParams]:
    """Return each trial's parameters."""
    keys = param_columns(frame)
    if not keys:
        return [()] * len(frame)
    return list(zip(*(map(_as_comparable_value, frame[key]) for key in keys), strict=True))


def _as_comparable_value(value: object) -> Hashable:
    """Return a parameter's value in a form in which equal values are equal, missing ones too, and true is not 1."""
    if isinstance(value, list | tuple):
        return tuple(map(_as_comparable_value, value))
    return None if value is None or value != value else (isinstance(value, bool), value)


MAX_EXACT_LEVELS = 8
"""Most different numbers that get a level each; more are put into bins."""


MIN_NONZERO_BIN_END = 1e-200
"""Size below which the end of a bin is 0: pandas writes it with so many decimals that larger numbers overflow."""


def assign_levels(values: Iterable[object], bins: int | None) -> pd.Categorical:
    """Return the level of each trial along one parameter.

    Args:
        values: of the parameter, one per trial.
        bins: how many at most, of equal counts, for more than `MAX_EXACT_LEVELS` different numbers; None: no bins.

    Returns:
        Categories in order: numbers, or bins as `[0.01, 0.1)` (with its lower end; the last one with both), then
        everything else as text in the order of its first appearance, `-` for no value.
    """
    by_trial = [_as_level(value) for value in values]
    numbers: list[float] | list[str] = sorted({value for value in by_trial if not isinstance(value, str)})
    if bins is not None and len(numbers) > MAX_EXACT_LEVELS:
        given = [value for value in by_trial if not isinstance(value, str)]
        quantiles = np.quantile(given, np.linspace(0.0, 1.0, bins + 1))
        ends = np.unique(np.where(np.abs(quantiles) < MIN_NONZERO_BIN_END, 0.0, quantiles))
        inside = np.clip(given, ends[0], np.nextafter(ends[-1], -np.inf))  # the largest is in the last bin
        binned = pd.cut(inside, ends.tolist(), right=False)
        numbers, places = list(map(str, binned.categories)), map(str, binned)
        by_trial = [value if isinstance(value, str) else next(places) for value in by_trial]
    texts = dict.fromkeys(value for value in by_trial if isinstance(value, str) and value not in numbers)
    return pd.Categorical(by_trial, categories=[*numbers, *texts], ordered=True)


def _as_level(value: object) -> float | str:
    """Return a number as it is, everything else as text."""
    value = value.item() if isinstance(value, np.number) else value
    if isinstance(value, int | float) and not isinstance(value, bool) and value == value:
        return value
    return formatting.format_setting(value)


DEFAULT_BINS = 5

IndexLevels = tuple[Hashable, ...]
"""The levels of a row or of a column, one per parameter."""


def ablation(
    frame: pd.DataFrame, by: str | Sequence[str], metric: str, bins: int | None = DEFAULT_BINS
) -> pd.DataFrame:
    """Return what each value of one parameter gives, or each combination of several that was tried.

    Args:
        frame: of `study.analysis.load` or `trials_frame`, or some of its rows.
        by: parameters' dotted keys.
        metric: as `val/accuracy`.
        bins: see `study.analysis.statistics.parameter_tables.assign_levels`.

    Returns:
        Indexed by value (see `assign_levels`), a column for each of `CELL_STATISTICS`; the columns' name is the metric.

    Raises:
        UserError: a parameter or the metric is not one of this study.
    """
    keys = _keys_as_list(by)
    rows, _, cells = _tabulate_cells(frame, keys, [], metric, bins)
    table = pd.DataFrame([cells[row, ()].to_dict() for row in rows], _levels_index(rows, keys), list(CELL_STATISTICS))
    table.columns.name = metric
    return _set_column_types(table)


def sensitivity(
    frame: pd.DataFrame,
    rows: str | Sequence[str],
    columns: str | Sequence[str],
    metric: str,
    bins: int | None = DEFAULT_BINS,
) -> pd.DataFrame:
    """Tabulate two parameters, or groups of parameters, against each other, as FairKL paper Table 12.

    Args:
        frame, metric, bins: as for `ablation`.
        rows, columns: keys as for `ablation`.

    Returns:
        Indexed by the rows' values. Columns of several levels: one of `CELL_STATISTICS`, then the columns' values, so
        that `table["mean"]` is the matrix of means; the first level's name is the metric. Where no trial was, `n` is 0.

    Raises:
        UserError: a parameter or the metric is not one of this study.
    """
    down, across = _keys_as_list(rows), _keys_as_list(columns)
    if both := set(down) & set(across):
        raise UserError(f"{', '.join(sorted(both))} given for rows and for columns: give it for one of them")
    row_levels, column_levels, cells = _tabulate_cells(frame, down, across, metric, bins)
    by_row = [[cells[row, column].to_dict() for column in column_levels] for row in row_levels]
    table = pd.DataFrame(
        [[statistics[name] for name in CELL_STATISTICS for statistics in row] for row in by_row],
        _levels_index(row_levels, down),
        pd.MultiIndex.from_tuples(
            [(name, *column) for name in CELL_STATISTICS for column in column_levels], names=[metric, *across]
        ),
    )
    return _set_column_types(table)


def _tabulate_cells(
    frame: pd.DataFrame, down: list[str], across: list[str], metric: str, bins: int | None
) -> tuple[list[IndexLevels], list[IndexLevels], dict[tuple[IndexLevels, IndexLevels], MetricCell]]:
    """Return the levels of each row and of each column, and the cell of every pair of them."""
    frame = frame[frame["stage"] != "ablation"]  # configurations between baseline and best, which nobody searched
    _check_param_keys(frame, [*down, *across])
    _check_metric_name(metric, [name for name in map(str, frame.columns) if "/" in name])
    by_key = {key: assign_levels(frame[key], bins) for key in [*down, *across]}
    rows, row_of_trial = _index_levels_of_trials([by_key[key] for key in down], len(frame))
    columns, column_of_trial = _index_levels_of_trials([by_key[key] for key in across], len(frame))
    members: dict[tuple[IndexLevels, IndexLevels], list[int]] = {pair: [] for pair in product(rows, columns)}
    for position, pair in enumerate(zip(row_of_trial, column_of_trial, strict=True)):
        members[pair].append(position)
    return (
        rows,
        columns,
        {pair: metric_cell_of_trials(frame.iloc[positions], metric) for pair, positions in members.items()},
    )


def _index_levels_of_trials(by_key: list[pd.Categorical], trials: int) -> tuple[list[IndexLevels], list[IndexLevels]]:
    """Return the levels of all rows, or columns, in order, and those of each trial.

    Of one parameter also the bins that no trial is in are rows, or columns.
    """
    of_trial: list[IndexLevels] = list(zip(*by_key, strict=True)) if by_key else [()] * trials
    if len(by_key) == 1:
        return [(level,) for level in by_key[0].categories], of_trial
    by_code = dict(zip(zip(*(column.codes for column in by_key), strict=True), of_trial, strict=False))
    return [by_code[code] for code in sorted(by_code)] if by_key else [()], of_trial


def _check_metric_name(metric: str, reported: Iterable[str]) -> None:
    """Refuse a name that is not a metric. A metric that no trial has reported yet is accepted: its cells are empty."""
    names = list(reported)
    if metric not in names and ("/" not in metric or metrics.find_metric(metric) is None):
        raise UserError(f"{metric!r} is not a metric. {suggest_or_list(metric, names, 'There are')}")


def _check_param_keys(frame: pd.DataFrame, keys: Iterable[str]) -> None:
    params = param_columns(frame)
    for key in keys:
        if key not in params:
            there = suggest_or_list(key, params, "There are")
            raise UserError(f"{key!r} is not a parameter that differs between trials of this study. {there}")


def _keys_as_list(keys: str | Sequence[str]) -> list[str]:
    return [keys] if isinstance(keys, str) else list(keys)


def _levels_index(levels: list[IndexLevels], keys: list[str]) -> pd.Index:
    if len(keys) == 1:
        return pd.Index([level for (level,) in levels], name=keys[0])
    return pd.MultiIndex.from_tuples(levels, names=keys)


def _set_column_types(table: pd.DataFrame) -> pd.DataFrame:
    """Convert means and deviations to floats, NaN where there are none, and counts to integers."""
    counts = ("n", "pruned", "failed", "open", "unread", "repeated")
    kinds = dict.fromkeys(("mean", "sd"), "float64") | dict.fromkeys(counts, "int64")
    columns = zip(table.columns, table.columns.get_level_values(0), strict=True)
    return table.astype({column: kinds[name] for column, name in columns if name in kinds})
