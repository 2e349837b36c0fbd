"""Tables of any parameters of any study: which values gave what, one cell for each place."""

from collections.abc import Hashable, Iterable, Sequence
from itertools import product

import pandas as pd

from study import metrics
from study.analysis.statistics.cells import STATISTICS, Cell, cell, param_columns
from study.analysis.statistics.levels import levels
from study.errors import UserError, nearest

BINS = 5

Place = tuple[Hashable, ...]
"""The levels of a row or of a column, one per parameter."""


def ablation(frame: pd.DataFrame, by: str | Sequence[str], metric: str, bins: int | None = BINS) -> pd.DataFrame:
    """What each value of one parameter gives, or each combination of several that was tried.

    Args:
        frame: of `study.analysis.load` or `trials_frame`, or some of its rows.
        by: parameters' dotted keys, or the last part of one where no other ends so, as `lambda`.
        metric: as `val/accuracy`.
        bins: see `study.analysis.statistics.levels.levels`.

    Returns:
        Indexed by value (see `levels`), a column for each of `STATISTICS`; the columns' name is the metric.

    Raises:
        UserError: a parameter or the metric is not one of this study.
    """
    keys = full_keys(frame, by)
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
        rows, columns: keys as for `ablation`.

    Returns:
        Indexed by the rows' values. Columns of several levels: one of `STATISTICS`, then the columns' values, so that
        `table["mean"]` is the matrix of means; the first level's name is the metric. Where no trial was, `n` is 0.

    Raises:
        UserError: a parameter or the metric is not one of this study.
    """
    down, across = full_keys(frame, rows), full_keys(frame, columns)
    if both := set(down) & set(across):
        raise UserError(f"{', '.join(sorted(both))} given for rows and for columns: give it for one of them")
    row_places, column_places, cells = _cells(frame, down, across, metric, bins)
    by_row = [[cells[row, column].statistics() for column in column_places] for row in row_places]
    table = pd.DataFrame(
        [[statistics[name] for name in STATISTICS for statistics in row] for row in by_row],
        _index(row_places, down),
        pd.MultiIndex.from_tuples(
            [(name, *column) for name in STATISTICS for column in column_places], names=[metric, *across]
        ),
    )
    return _typed(table)


def _cells(
    frame: pd.DataFrame, down: list[str], across: list[str], metric: str, bins: int | None
) -> tuple[list[Place], list[Place], dict[tuple[Place, Place], Cell]]:
    """Places down and across a table, and the cell of every pair of them."""
    frame = frame[frame["stage"] != "ablation"]  # configurations between baseline and best, which nobody searched
    _check_keys(frame, [*down, *across])
    _check_metric(metric, [name for name in map(str, frame.columns) if "/" in name])
    by_key = {key: levels(frame[key], bins) for key in [*down, *across]}
    rows, row_of_trial = _places([by_key[key] for key in down], len(frame))
    columns, column_of_trial = _places([by_key[key] for key in across], len(frame))
    members: dict[tuple[Place, Place], list[int]] = {pair: [] for pair in product(rows, columns)}
    for position, pair in enumerate(zip(row_of_trial, column_of_trial, strict=True)):
        members[pair].append(position)
    return rows, columns, {pair: cell(frame.iloc[positions], metric) for pair, positions in members.items()}


def _places(by_key: list[pd.Categorical], trials: int) -> tuple[list[Place], list[Place]]:
    """All places in order, and that of each trial. Of one parameter also the bins that no trial is in."""
    of_trial: list[Place] = list(zip(*by_key, strict=True)) if by_key else [()] * trials
    if len(by_key) == 1:
        return [(level,) for level in by_key[0].categories], of_trial
    by_code = dict(zip(zip(*(column.codes for column in by_key), strict=True), of_trial, strict=False))
    return [by_code[code] for code in sorted(by_code)] if by_key else [()], of_trial


def _check_metric(metric: str, reported: Iterable[str]) -> None:
    """Refuse a name that is not a metric. A metric that no trial has reported yet is accepted: its cells are empty."""
    names = list(reported)
    if metric not in names and ("/" not in metric or metrics.find(metric) is None):
        there_are = ", ".join(names) or "none yet"
        raise UserError(f"{metric!r} is not a metric. {nearest(metric, names)}There are: {there_are}")


def full_keys(frame: pd.DataFrame, keys: str | Sequence[str]) -> list[str]:
    """Dotted keys of these parameters; the last part is enough where no other key ends so. Unknown ones stay."""
    params = param_columns(frame)
    return [_full_key(params, key) for key in _keys(keys)]


def _full_key(params: Sequence[str], key: str) -> str:
    ending = [param for param in params if param.rpartition(".")[2] == key]
    return ending[0] if key not in params and len(ending) == 1 else key


def _check_keys(frame: pd.DataFrame, keys: Iterable[str]) -> None:
    params = param_columns(frame)
    for key in keys:
        if key not in params:
            raise UserError(
                f"{key!r} is not a parameter that differs between trials of this study. {nearest(key, params)}"
                f"There are: {', '.join(params) or 'none'}"
            )


def _keys(keys: str | Sequence[str]) -> list[str]:
    return [keys] if isinstance(keys, str) else list(keys)


def _index(places: list[Place], keys: list[str]) -> pd.Index:
    if len(keys) == 1:
        return pd.Index([place[0] for place in places], name=keys[0])
    return pd.MultiIndex.from_tuples(places, names=keys)


def _typed(table: pd.DataFrame) -> pd.DataFrame:
    """Means, deviations and ends of intervals as floats, NaN where there are none, counts as integers."""
    kinds = dict.fromkeys(("mean", "sd"), "float64") | dict.fromkeys(
        ("n", "pruned", "failed", "open", "unread", "repeated"), "int64"
    )
    first = table.columns.get_level_values(0)
    return table.astype(
        {column: kinds[name] for column, name in zip(table.columns, first, strict=True) if name in kinds}
    )
