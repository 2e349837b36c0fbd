"""table: your own rows of a CSV or Parquet file with named columns.

Numbers are standardised with mean and deviation of the training rows, everything else is one-hot.
"""

from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Doc

from study.data import cache, holdout, label_files, table_columns, table_format, user_data
from study.data.cache import cached
from study.data.dataset import Dataset, Facts, Labels, Split
from study.data.table_columns import Encoding, Faults
from study.errors import UserError
from study.text import quoted, some

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, kw_only=True)
class Options(user_data.Options):
    """Keys of the `data` section."""

    path: Annotated[
        str,
        Doc(
            "the table: .csv, .tsv, .txt, .parquet, .pq or .xlsx (package openpyxl); absolute, or relative to the "
            "current folder or to the folder of all data sets"
        ),
    ]
    target: Annotated[str, Doc("column of the classes, whole numbers or names")]
    features: Annotated[tuple[str, ...], Doc("columns that are the inputs; empty: all that no other key names")] = ()
    key: Annotated[str | None, Doc("column of the keys by which `condition_file` names the rows")] = None
    missing: Annotated[
        Literal["error", "drop", "fill"],
        Doc(
            "rows with missing values: `error` refuses them, `drop` leaves them out, `fill` takes the mean "
            "of the training rows for a number and a value of its own for a text"
        ),
    ] = "error"
    words: Annotated[
        tuple[str, ...], Doc("inputs that are words although they look like numbers, as codes of regions")
    ] = ()


@dataclass(frozen=True)
class _Read:
    """The file as it is used.

    Attributes:
        features: the columns of the inputs.
        splits: indices of each split's rows.
        fills: whether missing values are filled.
        left_out: columns that are no inputs since they count the rows.
        same: the group of equal rows that each row is in, None where they need not be kept in one split.
        unreadable: by number in the file from 0 on, what is wrong with each row that a model cannot take; none of
            `rows`.
    """

    path: Path
    rows: "pd.DataFrame"
    labels: user_data.Labels
    features: list[str]
    splits: dict[str, NDArray[np.int64]]
    fills: bool
    left_out: tuple[str, ...]
    same: NDArray[np.int64] | None
    unreadable: Faults


def describe(options: Options) -> Facts:
    """As the file says."""
    return _facts(_read(options))


def load(options: Options) -> Dataset:
    """Encode and split the rows."""
    places = files(options)
    with cache.unchanged(places):  # from before the rows are read until their content is known
        table = _read(options)
        _read_once.cache_clear()  # a process that has loaded its data asks no more
        return cached("table", options, _facts(table), lambda: _splits(table, _fitted(table)), places)


def files(options: Options) -> list[Path]:
    """The table, and the file of conditions where there is one."""
    more = [label_files.locate(options.condition_file)] if options.condition_file else []
    return [label_files.locate(options.path), *more]


def encoding(options: Options) -> Encoding:
    """Return how columns become inputs, fitted to the training rows."""
    return _fitted(_read(options))


def encoded(options: Options, encoding: Encoding) -> tuple[Dataset, Faults]:
    """The rows as an encoding makes them inputs that was fitted elsewhere, to the rows that a model was trained on.

    Returns:
        The rows that it can, and by row of the file, from 0 on, what is wrong with each of the others.
    """
    table = _read(replace(options, features=tuple(column.name for column in encoding)), encoding)
    facts = replace(_facts(table), shape=(table_columns.width(encoding),))
    return Dataset(facts, _splits(table, encoding)), table.unreadable


def reading(options: Options) -> list[str]:
    """Return how each column is read, in a few lines."""
    table = _read(options)
    known = table_format.given(vars(options))
    names = label_files.names(table.path, known)
    used = {*table.features, *table.left_out, *user_data.label_columns(options, names, table.path)}
    unnamed = [name for name in names if name not in used]
    return [
        *table_format.told(table.path, known),
        *table_columns.reading(table.rows, table.features),
        *([f"  left out, as they count the rows: {some(table.left_out)}"] if table.left_out else []),
        *([f"  left out, as data.features does not name them: {some(unnamed)}"] if unnamed else []),
    ]


def labels(options: Options) -> dict[str, Labels]:
    """The labels of each split's rows."""
    table = _read(options)
    found = Labels(table.labels.target, table.labels.bias)
    return {name: holdout.take(found, members) for name, members in table.splits.items()}


def notes(options: Options) -> list[str]:
    """Return what was decided about the file that no key says."""
    table = _read(options)
    found = []
    if table.left_out:
        names = some([quoted(name) for name in table.left_out])
        found.append(f"column {names} counts the rows and is no input: it may tell the class. With it: data.features")
    if options.group:
        found += user_data.group_notes(options.group, table.rows[options.group].tolist(), table.splits)
    if repeated := table.rows.duplicated(table.features).sum():
        across = user_data.copied(table.splits, table_columns.equal_rows(table.rows, table.features))
        kept = "" if table.same is not None else "; so few values make rows equal by chance, they are not kept together"
        told = f"some are in several splits: {across}{kept}" if across else "they stay in one split"
        found.append(f"{repeated} of {len(table.rows)} rows have the inputs of another one: {told}")
    for key, codes in (("target", table.labels.target), ("bias", table.labels.bias)):
        named = user_data.columns_of(getattr(options, key), table.rows.columns, table.path)
        found += table_columns.one_to_one(table.rows, table.features, codes, f"data.{key}", named)
    found += [
        note
        for doubt in (table_columns.spellings, table_columns.likely_dates, table_columns.likely_gaps)
        for note in doubt(table.rows, table.features)
    ]
    return found


def _facts(table: _Read) -> Facts:
    width = sum(
        1 if table_columns.is_number(table.rows[name]) else table.rows[name].nunique() for name in table.features
    )
    return user_data.facts(table.labels, (width,), table.splits)


def _read(options: Options, encoding: Encoding = ()) -> _Read:
    return _read_once(options, encoding, cache.states(files(options)))


@lru_cache(1)
def _read_once(options: Options, encoding: Encoding, states: tuple[cache.State | None, ...]) -> _Read:
    """As `_read`: a command asks several times, and a large file takes seconds."""
    path = label_files.locate(options.path)
    known = table_format.given(vars(options))
    names = label_files.names(path, known)
    used = user_data.label_columns(options, names, path)
    as_text = [name for name in used if name not in options.condition]
    dtype: dict[str, type] = {**table_columns.texts(encoding), **dict.fromkeys([*as_text, *options.words], str)}
    rows = label_files.read_rows(path, vars(options), dtype)
    label_files.need(rows.columns, options.words, path)
    rows = rows.assign(**{name: label_files.as_text(rows[name]) for name in [*as_text, *options.words]})
    features = list(options.features) or [str(name) for name in rows.columns if name not in used]
    label_files.need(rows.columns, features, path)
    header = label_files.header(path, rows, known)
    table_columns.check_header(header, [*used, *features], path)
    if not options.features:
        table_columns.check_named(header, path)
    left_out: tuple[str, ...] = ()
    if not options.features:
        table_columns.check_no_split(rows, features, options.split, path)
        left_out = table_columns.running_numbers(rows, features)
        left_out = left_out if len(left_out) < len(features) else ()  # the only inputs are meant
        features = [name for name in features if name not in left_out]
    if not features:
        raise UserError(f"{path}: no column is left for the inputs; name some in data.features")
    for column in user_data.columns_of(options.target, rows.columns, path):
        if column in features:
            raise UserError(f"data.features: has the target {column!r} in it")
    rows = rows[list(dict.fromkeys([*used, *features]))]
    if options.bias_gaps == "unknown":
        rows = _with_gaps(rows, user_data.columns_of(options.bias, rows.columns, path))
    free = [name for name in features if name not in dtype]
    rows, unreadable = _sound(rows, encoding, options, path)
    rows = _complete(rows, used, options, free, path)
    for name in features:
        table_columns.check_input(rows[name], path)
    samples = [str(name) for name in rows[options.key]] if options.key else None
    labels = user_data.labels(rows, path, options, samples)
    if not options.features:
        table_columns.check_copies(rows, features, labels, options.target, path)
    if options.group in features:
        raise UserError(f"data.features: has the group {options.group!r} in it, which is no input")
    same = table_columns.to_keep_together(rows, features)
    labels, splits = user_data.divided(rows, path, options, labels, same)
    return _Read(path, rows, labels, features, splits, options.missing == "fill", left_out, same, unreadable)


def _sound(rows: "pd.DataFrame", encoding: Encoding, options: Options, path: Path) -> tuple["pd.DataFrame", Faults]:
    """The rows that an encoding makes inputs, and what is wrong with each of the others; rows with missing values that
    are dropped anyway do not count."""
    if not encoding:
        return rows, {}
    if options.missing == "drop":
        rows = rows.mask(rows.isin([np.inf, -np.inf])).dropna()
    problems = table_columns.rows(rows, encoding, user_data.decimal_of(options, path))[1]
    if len(problems) == len(rows):
        why = "; ".join(table_columns.summary(problems)) or "each has a missing value"
        raise UserError(f"{path}: the model can take none of its rows: {why}. Is it a table of the same kind?")
    numbers = {int(rows.index[place]): problem for place, problem in problems.items()}
    return rows.drop(index=[*numbers]), numbers


def _with_gaps(rows: "pd.DataFrame", labelled: list[str]) -> "pd.DataFrame":
    """The rows with labels as text in these columns, empty where they are missing."""
    labels = rows[labelled].convert_dtypes().astype(object)  # whole numbers stay whole beside a gap
    return rows.assign(**labels.where(labels.notna(), "").astype(str))


def _complete(
    rows: "pd.DataFrame", labels: list[str], options: Options, features: list[str], path: Path
) -> "pd.DataFrame":
    """The rows after the rule for missing values; infinite numbers are missing, too. Which inputs are numbers is
    decided by the rows that stay; `features`: those of which it is to be decided."""
    missing = options.missing
    must = list(dict.fromkeys(labels if missing == "fill" else rows))
    infinite = rows.isin([np.inf, -np.inf])
    kinds = {"missing": rows.isna(), "infinite": infinite}
    what = " or ".join(word for word, where in kinds.items() if where[must].any(axis=None))
    rows = rows.mask(infinite)
    if missing == "drop":
        rows = rows.dropna()
        if rows.empty:
            raise UserError(f"{path}: every row has a value that is {what}; data.missing: drop leaves none")
    decimal = user_data.decimal_of(options, path)
    rows = table_columns.with_numbers(rows, features, path, decimal).reset_index(drop=True)
    counts = {str(name): int(rows[name].isna().sum()) for name in must}
    gaps = [f"{quoted(name)} ({count})" for name, count in counts.items() if count]
    if gaps:
        remedy = "Labels are not filled; set data.missing to drop" if missing == "fill" else "Set data.missing"
        raise UserError(f"{path}: values are {what} in {some(gaps)} of {len(rows)} rows. {remedy}, or mend them")
    texts = [name for name in rows if not table_columns.is_number(rows[name])]
    filled = rows.astype(dict.fromkeys(texts, object)).fillna(dict.fromkeys(texts, table_columns.MISSING))
    return filled.astype(dict.fromkeys(texts, str))


def _fitted(table: _Read) -> Encoding:
    return tuple(table_columns.fitted(table.rows[name], table.splits["train"], table.fills) for name in table.features)


def _splits(table: _Read, encoding: Encoding) -> dict[str, Split]:
    rows, labels = table_columns.encoded(table.rows, encoding, str(table.path)), table.labels
    whole = Split(rows, labels.target, labels.bias, labels.condition)
    return {name: holdout.take(whole, members) for name, members in table.splits.items()}
