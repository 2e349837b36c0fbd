"""table: your own rows of a CSV or Parquet file with named columns.

Numbers are standardised with mean and deviation of the training rows, everything else is one-hot.
"""

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Doc

from study.data import cache, findings, holdout, label_files, odd_columns, table_columns, table_format, user_data
from study.data.cache import cached
from study.data.dataset import Dataset, Facts, Kind, Labels, Raw, Split
from study.data.findings import WITHOUT, Finding
from study.data.odd_columns import RowNumbers
from study.data.table_columns import Encoding, Faults
from study.data.table_format import Format
from study.data.telling import Telling, telling
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
    without: Annotated[tuple[str, ...], Doc("columns that are no inputs, whatever else says that they are")] = ()
    row_numbers: Annotated[
        RowNumbers,
        Doc(
            "columns that count or name the rows, as an id, are no inputs unless `features` names them; `even_steps`: "
            "whole numbers in even steps alone, as in studies of earlier versions"
        ),
    ] = "leave_out"
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
    """The file in the form in which it is used.

    Attributes:
        features: the columns of the inputs.
        splits: indices of each split's rows.
        fills: whether missing values are filled.
        left_out: columns that are not inputs because they count the rows.
        named: columns that count the rows but are inputs because `features` names them.
        same: the group of equal rows that each row is in; None where they may be in different splits.
        groups: the group of rows in one split that each row is in; None where each row is alone.
        unreadable: faults of each row that a model cannot take, by number in the file from 0; none of them is in
            `rows`.
    """

    path: Path
    rows: "pd.DataFrame"
    labels: user_data.Labels
    features: list[str]
    splits: dict[str, NDArray[np.int64]]
    fills: bool
    left_out: tuple[str, ...]
    named: tuple[str, ...]
    same: NDArray[np.int64] | None
    groups: NDArray[np.int64] | None
    unreadable: Faults

    @property
    def compared(self) -> list[str]:
        """Inputs by which rows are equal: those that do not count the rows."""
        return [name for name in self.features if name not in self.named] or self.features

    @cached_property
    def telling(self) -> tuple[Telling, ...]:
        """Inputs that predict the class alone."""
        train = self.splits["train"]
        values, words = odd_columns.values_of(self.rows.iloc[train], self.features)
        groups = None if self.groups is None else self.groups[train]
        return tuple(telling(values, words, self.labels.target[train], groups))


def describe(options: Options) -> Facts:
    """Read the facts from the file."""
    return _facts(_read(options))


def load(options: Options) -> Dataset:
    """Encode and split the rows."""
    places = files(options)
    with cache.unchanged(places):  # from before the rows are read until their content is known
        table = _read(options)
        _examined.cache_clear()  # a process that has loaded its data asks no more
        _typed.cache_clear()
        return cached("table", options, _facts(table), lambda: _splits(table, _fitted(table)), places)


def raw(options: Options) -> Raw:
    """Split the rows before anything is fitted to them; a text is its number among those of its column, by alphabet."""
    table = _read(options)
    columns, kinds = [np.zeros((len(table.rows), 0))], list[Kind]()
    for name in table.features:
        column = table.rows[name]
        if table_columns.is_number(column):
            kinds.append("number")
            columns.append(table_columns.numbers(column)[:, None])
        else:
            kinds.append("word")
            texts = column.astype(str).str.strip().to_numpy(str)
            columns.append(np.unique(texts, return_inverse=True)[1].astype(np.float64)[:, None])
    whole = Split(np.concatenate(columns, 1), table.labels.target, table.labels.bias, table.labels.condition)
    return Raw({name: holdout.take(whole, members) for name, members in table.splits.items()}, tuple(kinds))


def together(options: Options) -> NDArray[np.int64] | None:
    """Return a group label of each training and validation row, in this order: a group stays in one fold."""
    table = _read(options)
    return None if table.groups is None else table.groups[_learn(table)]


def files(options: Options) -> list[Path]:
    """List the table, and the file of conditions where there is one."""
    more = [label_files.locate(options.condition_file)] if options.condition_file else []
    return [label_files.locate(options.path), *more]


def encoding(options: Options) -> Encoding:
    """Fit how columns become inputs to the training rows.

    With folds these are all rows outside test, as in the final training.
    """
    table = _read(options)
    return _fitted(table if options.folds is None else replace(table, splits={"train": _learn(table)}))


def encoded(options: Options, encoding: Encoding) -> tuple[Dataset, Faults]:
    """Encode the rows with an encoding that was fitted to other rows, those that a model was trained on.

    Returns:
        The data set of the rows that it can encode, and the faults of the others, by row of the file from 0.
    """
    table = _read(replace(options, features=tuple(column.name for column in encoding)), encoding)
    facts = user_data.facts(table.labels, (table_columns.width(encoding),), table.splits)
    return Dataset(facts, _splits(table, encoding)), table.unreadable


def reading(options: Options) -> list[str]:
    """Describe how each column is read, in a few lines."""
    table = _read(options)
    known = table_format.given(vars(options))
    names = label_files.names(table.path, known)
    used = {*table.features, *table.left_out, *user_data.label_columns(options, names, table.path)}
    without = _without(options, label_files.header(table.path, known), names)
    dropped = [name for name in names if name in without]
    unnamed = [name for name in names if name not in used and name not in dropped]
    return [
        *table_format.told(table.path, known),
        *table_columns.reading(table.rows, table.features),
        *([f"  left out, as they count the rows: {some(table.left_out)}"] if table.left_out else []),
        *([f"  left out, as data.without names them: {some(dropped)}"] if dropped else []),
        *([f"  left out, as data.features does not name them: {some(unnamed)}"] if unnamed else []),
    ]


def labels(options: Options) -> dict[str, Labels]:
    """Return the labels of each split's rows."""
    table = _read(options)
    found = Labels(table.labels.target, table.labels.bias)
    return {name: holdout.take(found, members) for name, members in table.splits.items()}


def notes(options: Options) -> list[str]:
    """Say what was decided about the rows by no key."""
    table = _read(options)
    found = []
    if options.group:
        found += user_data.group_notes(options.group, table.rows[options.group].tolist(), table.splits)
    if repeated := table.rows.duplicated(table.compared).sum():
        across = user_data.copied(table.splits, table_columns.equal_rows(table.rows, table.compared))
        kept = "" if table.same is not None else "; so few values make rows equal by chance, they are not kept together"
        told = f"some are in several splits: {across}{kept}" if across else "they stay in one split"
        found.append(f"{repeated} of {len(table.rows)} rows have the inputs of another one: {told}")
    return found


def columns(options: Options) -> list[Finding]:
    """Find what is notable about the columns that are read: those that predict the class, are left out, or are odd."""
    return _found(_read(options), options)


def survey(options: Options) -> list[Finding]:
    """Find, before a study file is written, all that `columns` finds and all that would refuse the table.

    Rows without a class do not count, and other gaps are looked at as values of their own.
    """
    path = label_files.locate(options.path)
    form = table_format.given(vars(options))
    of_target = user_data.columns_of(options.target, label_files.names(path, form), path)
    labels = label_files.read(path, known=form, usecols=of_target)
    target = user_data.number_target(labels, options, path)
    thresholds = tuple(map(float, target.values)) if target else options.target_bins
    examined = _examined_now(replace(options, target_bins=thresholds), is_survey=True)
    found = [*([target] if target else []), *examined.findings]
    known = {one.column for one in found}
    return found + [one for one in (_found(examined.read, options) if examined.read else []) if one.column not in known]


def _found(table: _Read, options: Options) -> list[Finding]:
    found = [_of_telling(one, options) for one in table.telling]
    for key in ("target", "bias"):
        found += _copies(table, options, key, "odd")
    told = {one.column for one in found}
    found = [one for place, one in enumerate(found) if one.column not in {before.column for before in found[:place]}]
    found += [odd_columns.counts_rows(name) for name in table.left_out]
    found += [
        replace(odd_columns.counts_rows(name), problem="counts the rows and is an input, as data.features names it")
        for name in table.named
    ]
    found += [one for one in odd_columns.odd(table.rows, table.features) if one.column not in told]
    if table.labels.is_number:
        number = user_data.number_target(table.rows, options, table.path)
        found += [replace(number, kind="odd")] if number else []
    if options.features and options.split is None:
        found += [replace(one, kind="odd") for one in table_columns.of_split(table.rows, table.features)]
    found += odd_columns.small_groups(options.bias, table.labels) if options.bias else []
    return found


def _copies(table: _Read, options: Options, key: Literal["target", "bias"], kind: findings.Kind) -> list[Finding]:
    """Find the inputs that are another spelling of the class, or of the bias."""
    named = user_data.columns_of(getattr(options, key), table.rows.columns, table.path)
    codes = getattr(table.labels, key)
    return odd_columns.one_to_one(table.rows, table.features, codes, f"data.{key}", named, kind)


def _of_telling(one: Telling, options: Options) -> Finding:
    """Make the finding about a column that predicts the class alone.

    It is only a remark if the column is named as an input, or not far above the others.
    """
    if one.is_far and one.name not in options.features:
        return findings.out(one.name, str(one), "telling", "keep it by naming it in data.features")
    remedy = f"If it is known only after the class is: {findings.setting(WITHOUT, (one.name,))}"
    return Finding(one.name, str(one), remedy, "odd", WITHOUT, (one.name,))


def _learn(table: _Read) -> NDArray[np.int64]:
    """Return the training rows, then the validation rows."""
    return np.concatenate([table.splits["train"], table.splits["val"]])


def _facts(table: _Read) -> Facts:
    width = sum(
        1 if table_columns.is_number(table.rows[name]) else table.rows[name].nunique() for name in table.features
    )
    told = tuple(f"column {quoted(one.name)} {one}" for one in table.telling if one.is_far)
    return replace(user_data.facts(table.labels, (width,), table.splits), telling=told)


def _read(options: Options, encoding: Encoding = ()) -> _Read:
    examined = _examined_now(options, encoding)
    findings.check(examined.path, examined.findings)
    assert examined.read is not None  # nothing was refused
    return examined.read


@lru_cache(1)
def _typed(
    path: Path,
    types: tuple[tuple[str, type], ...],
    known: Format,
    marks: tuple[str, ...],
    states: tuple[cache.State | None, ...],
) -> "pd.DataFrame":
    """Cache the rows as pandas reads them: other keys may change meanwhile."""
    rows = label_files.read_typed(path, known, na_values=list(marks), dtype=dict(types))
    return label_files.without_marks(rows, marks)


@dataclass(frozen=True)
class _Examined:
    """A file with all findings that refuse it; `read` is None where nothing is left to be read."""

    path: Path
    findings: tuple[Finding, ...]
    read: _Read | None


def _examined_now(options: Options, encoding: Encoding = (), is_survey: bool = False) -> _Examined:
    return _examined(options, encoding, cache.states(files(options)), is_survey)


@lru_cache(1)
def _examined(
    options: Options,
    encoding: Encoding,
    states: tuple[cache.State | None, ...],
    is_survey: bool,
) -> _Examined:
    """Read the file as `_read` does, but collect what refuses it instead of raising it.

    Cached: a command asks several times, and a large file takes seconds.
    """
    path = label_files.locate(options.path)
    known = table_format.given(vars(options))
    names = label_files.names(path, known)
    used = user_data.label_columns(options, names, path)
    label_files.need(names, options.without, path)
    _check_keys(options, names, path)
    as_text = [name for name in used if name not in options.condition]
    dtype: dict[str, type] = {**table_columns.texts(encoding), **dict.fromkeys([*as_text, *options.words], str)}
    rows = _typed(path, tuple(dtype.items()), known, options.missing_marks, cache.states([path]))
    label_files.need(rows.columns, options.words, path)
    texts = {name: label_files.as_text(rows[name]) for name in dict.fromkeys([*as_text, *options.words])}
    rows = table_columns.with_columns(rows, texts)
    header = label_files.header(path, known)
    findings.check(path, table_columns.of_header(header, used))
    features = list(options.features) or [str(name) for name in rows.columns if name not in used]
    features = [name for name in features if name not in _without(options, header, names)]
    label_files.need(rows.columns, features, path)
    found = list(table_columns.of_header(header, used, features))
    features = _but(features, found)
    left_out = named = odd_columns.row_numbers(rows, features, options.row_numbers)
    if not options.features:
        found += table_columns.without_name(header, names)
        found = [one for one in found if one.values[0] not in options.without]
        found += table_columns.of_split(rows, features) if options.split is None else []
        left_out, named = (left_out, ()) if len(left_out) < len(features) else ((), left_out)  # the only one is meant
        features = [name for name in features if name not in left_out]
    else:
        left_out, named = (), named if options.row_numbers == "leave_out" else ()
    if not features and not found:
        raise UserError(f"{path}: no column is left for the inputs; name some in data.features")
    rows = rows[list(dict.fromkeys([*used, *features]))]
    if options.bias_gaps == "unknown":
        rows = _with_gaps(rows, user_data.columns_of(options.bias, rows.columns, path))
    features = _but(features, found)
    lacks_labels = not is_survey and options.missing != "drop" and bool(rows[used].isna().any(axis=None))
    rows, unreadable = _sound(rows, encoding, options, path)
    rows, doubts = _complete(rows, used, options, [name for name in features if name not in dtype], path, is_survey)
    found += doubts
    features = _but(features, found)
    found += [one for name in features for one in table_columns.no_input(rows[name])]
    if lacks_labels:
        return _Examined(path, tuple(found), None)
    try:
        read = _labelled(path, rows, options, _but(features, found), left_out, named, unreadable, is_survey)
    except UserError as error:
        if not found:
            raise
        return _Examined(path, (*found, Finding("", str(error).removeprefix(f"{path}: "), "")), None)
    if not options.features:
        found += _copies(read, options, "target", "refused")
    return _Examined(path, tuple(found), read)


def _check_keys(options: Options, names: list[str], path: Path) -> None:
    """Refuse inputs that another key excludes."""
    if both := [name for name in options.features if name in options.without]:
        raise UserError(f"data.features: has {both[0]!r} in it, which data.without leaves out")
    for column in user_data.columns_of(options.target, names, path):
        if column in options.features:
            raise UserError(f"data.features: has the target {column!r} in it")
    if options.group in options.features:
        raise UserError(f"data.features: has the group {options.group!r} in it, which is no input")


def _without(options: Options, header: list[str], names: list[str]) -> set[str]:
    """Return the columns of `data.without`, and those that pandas has renamed since their name is there twice."""
    named = {name for written, name in zip(header, names, strict=True) if written in options.without}
    return {*options.without, *named}


def _but(features: list[str], found: list[Finding]) -> list[str]:
    """Return the inputs without those that are refused."""
    refused = {one.column for one in found} | {name for one in found if one.key == WITHOUT for name in one.values}
    return [name for name in features if name not in refused]


def _labelled(
    path: Path,
    rows: "pd.DataFrame",
    options: Options,
    features: list[str],
    left_out: tuple[str, ...],
    named: tuple[str, ...],
    unreadable: Faults,
    is_survey: bool,
) -> _Read:
    """Add labels and splits to the rows."""
    samples = [str(name) for name in rows[options.key]] if options.key else None
    labels = user_data.labels(rows, path, options, samples)
    inputs = [name for name in features if name not in named]
    same = table_columns.to_keep_together(rows, inputs or features) if features else None
    labels, splits = user_data.divided(rows, path, options, labels, same)
    fills = is_survey or options.missing == "fill"
    groups = holdout.together(user_data.group_codes(rows, options, path), same)
    return _Read(path, rows, labels, features, splits, fills, left_out, named, same, groups, unreadable)


def _sound(rows: "pd.DataFrame", encoding: Encoding, options: Options, path: Path) -> tuple["pd.DataFrame", Faults]:
    """Return the rows that an encoding can encode, and the faults of the others.

    Rows with missing values that are dropped anyway do not count.
    """
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
    """Write labels in these columns as text, empty where they are missing."""
    labels = rows[labelled].convert_dtypes().astype(object)  # whole numbers stay whole beside a gap
    return rows.assign(**labels.where(labels.notna(), "").astype(str))


def _complete(
    rows: "pd.DataFrame", labels: list[str], options: Options, features: list[str], path: Path, is_survey: bool
) -> tuple["pd.DataFrame", list[Finding]]:
    """Apply the rule for missing values to the rows, and find what refuses some; infinite numbers count as missing.

    Which of `features` are numbers is decided by the rows that stay.
    """
    missing = "fill" if is_survey else options.missing
    must = list(dict.fromkeys(labels if missing == "fill" else rows))
    infinite = rows.isin([np.inf, -np.inf])
    kinds = {"missing": rows.isna(), "infinite": infinite}
    what = " or ".join(word for word, where in kinds.items() if where[must].any(axis=None))
    rows = whole = rows.mask(infinite)
    if missing == "drop" or is_survey:
        rows = rows.dropna(subset=labels if is_survey else None)
        if rows.empty:
            empty = [quoted(str(name)) for name in whole if whole[name].isna().all()]
            why = f". Empty in every row: {some(empty)}; leave them out by data.without" if empty else ""
            raise UserError(f"{path}: every row has a value that is {what}; data.missing: drop leaves none{why}")
    decimal = user_data.decimal_of(options, path)
    known = table_format.given(vars(options))
    rows, found = table_columns.with_numbers(rows, features, lambda row: label_files.place(path, row, known), decimal)
    rows = rows.reset_index(drop=True)
    counts = {str(name): int(rows[name].isna().sum()) for name in must}
    if gaps := [f"{quoted(name)} ({count})" for name, count in counts.items() if count]:
        remedy = "Labels are not filled; set data.missing to drop" if missing == "fill" else "Set data.missing"
        problem = f"values are {what} in {some(gaps)} of {len(rows)} rows"
        found.append(Finding("", problem, f"{remedy}, or mend them", key="data.missing", values=("drop",)))
    texts = [name for name in rows if not table_columns.is_number(rows[name])]
    filled = rows.astype(dict.fromkeys(texts, object)).fillna(dict.fromkeys(texts, table_columns.MISSING))
    return filled.astype(dict.fromkeys(texts, str)), found


def _fitted(table: _Read) -> Encoding:
    return tuple(table_columns.fitted(table.rows[name], table.splits["train"], table.fills) for name in table.features)


def _splits(table: _Read, encoding: Encoding) -> dict[str, Split]:
    rows, labels = table_columns.encoded(table.rows, encoding, str(table.path)), table.labels
    whole = Split(rows, labels.target, labels.bias, labels.condition)
    return {name: holdout.take(whole, members) for name, members in table.splits.items()}
