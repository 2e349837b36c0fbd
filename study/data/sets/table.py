"""table: your own rows of a CSV or Parquet file with named columns.

Numbers are standardised with mean and deviation of the training rows, everything else is one-hot.
"""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from study.data import cache, holdout, label_files, odd_columns, table_columns, table_findings, table_format, user_data
from study.data.cache import load_or_build_dataset
from study.data.dataset import ColumnKind, Dataset, Facts, RawTable, Split, SplitLabels
from study.data.leakage import PredictiveColumn, find_predictive_columns
from study.data.table_columns import FaultsByRow, TableEncoding
from study.data.table_findings import LEFT_OUT_KEY, ColumnFinding, FindingKind, key_with_values, leave_out_finding
from study.data.table_format import TableFormat
from study.errors import UserError
from study.text import list_few_names, quoted

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, kw_only=True)
class Options(user_data.UserDataOptions):
    """Keys of the `data` section.

    Attributes:
        path: the table: .csv, .tsv, .txt, .parquet, .pq or .xlsx (package openpyxl); absolute, or relative to the
            current folder or to the folder of all data sets.
        target: column of the classes, whole numbers or names.
        features: columns that are the inputs; empty: all that no other key names.
        without: columns that are no inputs, whatever else says that they are.
        key: column of the keys by which `condition_file` names the rows.
        missing: rows with missing values: `error` refuses them, `drop` leaves them out, `fill` takes the mean of the
            training rows for a number and a value of its own for a text.
        words: inputs that are words although they look like numbers, as codes of regions.
    """

    features: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    key: str | None = None
    missing: Literal["error", "drop", "fill"] = "error"
    words: tuple[str, ...] = ()


@dataclass(frozen=True)
class _PreparedTable:
    """The file in the form in which it is used.

    Attributes:
        features: the columns of the inputs.
        splits: indices of each split's rows.
        fills_missing: whether missing values are filled.
        left_out_columns: columns that are not inputs because they count the rows.
        columns_named_by_keys: columns that count the rows but are inputs because `features` names them.
        repeated_row_groups: the group of equal rows that each row is in; None where they may be in different splits.
        group_codes: the group of rows in one split that each row is in; None where each row is alone.
        faults_by_row: faults of each row that a model cannot take, by number in the file from 0; none of them is in
            `rows`.
    """

    path: Path
    rows: "pd.DataFrame"
    labels: user_data.TableLabels
    features: list[str]
    splits: dict[str, NDArray[np.int64]]
    fills_missing: bool
    left_out_columns: tuple[str, ...]
    columns_named_by_keys: tuple[str, ...]
    repeated_row_groups: NDArray[np.int64] | None
    group_codes: NDArray[np.int64] | None
    faults_by_row: FaultsByRow

    @property
    def columns_for_row_equality(self) -> list[str]:
        """Inputs by which rows are equal: those that do not count the rows."""
        return [name for name in self.features if name not in self.columns_named_by_keys] or self.features

    @cached_property
    def predictive_columns(self) -> tuple[PredictiveColumn, ...]:
        """Inputs that predict the class alone."""
        train = self.splits["train"]
        values, words = odd_columns.inputs_as_numbers(self.rows.iloc[train], self.features)
        groups = None if self.group_codes is None else self.group_codes[train]
        return tuple(find_predictive_columns(values, words, self.labels.target[train], groups))


def describe(options: Options) -> Facts:
    """Read the facts from the file."""
    return _table_facts(_read_table(options), options)


def load(options: Options) -> Dataset:
    """Encode and split the rows."""
    places = user_files(options)
    with cache.check_files_unchanged(places):  # from before the rows are read until their content is known
        table = _read_table(options)
        _examine_file_cached.cache_clear()  # a process that has loaded its data asks no more
        _read_rows_cached.cache_clear()
        return load_or_build_dataset(
            "table",
            options,
            _table_facts(table, options),
            lambda: _encoded_splits(table, _fit_encoding_of_table(table)),
            places,
        )


def load_raw_table(options: Options) -> RawTable:
    """Split the rows before anything is fitted to them; a text is its number among those of its column, by alphabet."""
    table = _read_table(options)
    columns, kinds = [np.zeros((len(table.rows), 0))], list[ColumnKind]()
    for name in table.features:
        column = table.rows[name]
        if table_columns.is_numeric(column):
            kinds.append("number")
            columns.append(table_columns.column_as_numbers(column)[:, None])
        else:
            kinds.append("word")
            texts = column.astype(str).str.strip().to_numpy(str)
            columns.append(np.unique(texts, return_inverse=True)[1].astype(np.float64)[:, None])
    whole = Split(np.concatenate(columns, 1), table.labels.target, table.labels.bias, table.labels.condition)
    return RawTable(
        {name: holdout.select_samples(whole, members) for name, members in table.splits.items()}, tuple(kinds)
    )


def fold_groups(options: Options) -> NDArray[np.int64] | None:
    """Return a group label of each training and validation row, in this order: a group stays in one fold."""
    table = _read_table(options)
    return None if table.group_codes is None else table.group_codes[_train_then_val_rows(table)]


def user_files(options: Options) -> list[Path]:
    """List the table, and the file of conditions where there is one."""
    more = [label_files.find_user_path(options.condition_file)] if options.condition_file else []
    return [label_files.find_user_path(options.path), *more]


def fit_encoding(options: Options) -> TableEncoding:
    """Fit how columns become inputs to the training rows.

    With folds these are all rows outside test, as in the final training.
    """
    table = _read_table(options)
    marks = table_format.decimal_marks_by_column(table.path, table_format.format_from_keys(vars(options)))
    fitted_to = table if options.folds is None else replace(table, splits={"train": _train_then_val_rows(table)})
    return _fit_encoding_of_table(fitted_to, marks)


def load_encoded(options: Options, encoding: TableEncoding) -> tuple[Dataset, FaultsByRow]:
    """Encode the rows with an encoding that was fitted to other rows, those that a model was trained on.

    Returns:
        The data set of the rows that it can encode, and the faults of the others, by row of the file from 0.
    """
    table = _read_table(replace(options, features=tuple(column.name for column in encoding)), encoding)
    width = sum(column.width for column in encoding)
    facts = user_data.facts_of_labels(table.labels, (width,), table.splits)
    return Dataset(facts, _encoded_splits(table, encoding)), table.faults_by_row


def describe_reading(options: Options) -> list[str]:
    """Describe how each column is read, in a few lines."""
    table = _read_table(options)
    known = table_format.format_from_keys(vars(options))
    names = label_files.read_column_names(table.path, known)
    used = {*table.features, *table.left_out_columns, *user_data.columns_named_by_keys(options, names, table.path)}
    without = _left_out_columns(options, label_files.read_header(table.path, known), names)
    dropped = [name for name in names if name in without]
    unnamed = [name for name in names if name not in used and name not in dropped]
    left_out = {"they count the rows": table.left_out_columns, "data.without names them": dropped}
    left_out["data.features does not name them"] = unnamed
    lines = [f"  left out, as {why}: {list_few_names(columns)}" for why, columns in left_out.items() if columns]
    inputs = table_columns.describe_inputs(table.rows, table.features)
    return [*table_format.describe_format(table.path, known), *inputs, *_missing_values_lines(table, options), *lines]


MISSING_RULES_IN_WORDS = {
    "drop": "these rows are left out",
    "fill": "a number becomes the mean of the training rows, a word one of its own",
}


def _missing_values_lines(table: _PreparedTable, options: Options) -> list[str]:
    """Return which columns have missing values, and what happens to these rows; no line where none has."""
    if options.missing not in MISSING_RULES_IN_WORDS:
        return []
    rows = label_files.read_user_table(table.path, vars(options))[[*table.rows]]
    gaps = rows.isna() | rows.isin([np.inf, -np.inf])
    columns = [f"{name} ({count})" for name in gaps if (count := int(gaps[name].sum()))]
    told = f"{list_few_names(columns)}, in {int(gaps.any(axis=1).sum())} of {len(rows)} rows"
    return [f"  missing values: {told}: {MISSING_RULES_IN_WORDS[options.missing]}"] if columns else []


def load_labels(options: Options) -> dict[str, SplitLabels]:
    """Return the labels of each split's rows."""
    table = _read_table(options)
    found = SplitLabels(table.labels.target, table.labels.bias)
    return {name: holdout.select_samples(found, members) for name, members in table.splits.items()}


def user_file_notes(options: Options) -> list[str]:
    """Say what was decided about the rows by no key."""
    table = _read_table(options)
    found = []
    if options.group:
        found += user_data.group_split_notes(options.group, table.rows[options.group].tolist(), table.splits)
    if repeated := table.rows.duplicated(table.columns_for_row_equality).sum():
        equal = table_columns.group_equal_rows(table.rows, table.columns_for_row_equality)
        across = user_data.copies_across_splits_text(table.splits, equal)
        chance = "; so few values make rows equal by chance, they are not kept together"
        kept = "" if table.repeated_row_groups is not None else chance
        told = f"some are in several splits: {across}{kept}" if across else "they stay in one split"
        found.append(f"{repeated} of {len(table.rows)} rows have the inputs of another one: {told}")
    return found


def column_findings(options: Options) -> list[ColumnFinding]:
    """Find what is notable about the columns that are read: those that predict the class, are left out, or are odd."""
    return _findings_of_table(_read_table(options), options)


def findings_before_study_file(options: Options) -> list[ColumnFinding]:
    """Find, before a study file is written, all that `column_findings` finds and all that would refuse the table.

    Rows without a class do not count, and other gaps are looked at as values of their own.
    """
    path = label_files.find_user_path(options.path)
    form = table_format.format_from_keys(vars(options))
    of_target = user_data.parse_column_names(options.target, label_files.read_column_names(path, form), path)
    labels = label_files.read_table_as_text(path, known=form, usecols=of_target)
    target = user_data.number_target_finding(labels, options, path)
    thresholds = tuple(map(float, target.remedy_values)) if target else options.target_bins
    examined = _examine_current_file(replace(options, target_bins=thresholds), is_survey=True)
    found = [*([target] if target else []), *examined.findings]
    known = {one.column for one in found}
    return found + [
        one
        for one in (_findings_of_table(examined.table, options) if examined.table else [])
        if one.column not in known
    ]


def _findings_of_table(table: _PreparedTable, options: Options) -> list[ColumnFinding]:
    predictive = [one for one in table.predictive_columns if one.is_leak or options.bias is None]
    found = [_predictive_column_finding(one, options) for one in predictive]
    for key in ("target", "bias"):
        found += _label_copy_findings(table, options, key, "odd")
    told = {one.column for one in found}
    found = [one for place, one in enumerate(found) if one.column not in {before.column for before in found[:place]}]
    found += [odd_columns.row_number_finding(name) for name in table.left_out_columns]
    named = "counts the rows and is an input, as data.features names it"
    found += [replace(odd_columns.row_number_finding(name), problem=named) for name in table.columns_named_by_keys]
    found += [one for one in odd_columns.find_odd_columns(table.rows, table.features) if one.column not in told]
    if table.labels.is_target_number:
        number = user_data.number_target_finding(table.rows, options, table.path)
        found += [replace(number, kind="odd")] if number else []
    if options.features and options.split is None:
        found += [replace(one, kind="odd") for one in table_columns.split_as_input_findings(table.rows, table.features)]
    found += odd_columns.find_small_groups(options.bias, table.labels, options.folds) if options.bias else []
    return found


def _label_copy_findings(
    table: _PreparedTable, options: Options, key: Literal["target", "bias"], kind: FindingKind
) -> list[ColumnFinding]:
    """Find the inputs that are another spelling of the class, or of the bias."""
    named = user_data.parse_column_names(getattr(options, key), table.rows.columns, table.path)
    codes = getattr(table.labels, key)
    return odd_columns.find_inputs_one_to_one_with_label(table.rows, table.features, codes, f"data.{key}", named, kind)


def _predictive_column_finding(one: PredictiveColumn, options: Options) -> ColumnFinding:
    """Make the finding about a column that tells the class, or the remark that it may be a bias.

    It is only a remark, too, if the column is named as an input, or not far above the others.
    """
    as_bias = f"{key_with_values('data.bias', (one.name,))} (study init: --bias {shlex.quote(one.name)})"
    if not one.is_leak:
        return ColumnFinding(one.name, str(one), f"If it will not in use, it is a bias: {as_bias}", "odd")
    if one.stands_out and one.name not in options.features:
        may_be_bias = f", or name it as the bias by {as_bias}" if one.has_few_values and options.bias is None else ""
        return leave_out_finding(one.name, str(one), "telling", f"keep it by naming it in data.features{may_be_bias}")
    remedy = f"If it is known only after the class is: {key_with_values(LEFT_OUT_KEY, (one.name,))}"
    return ColumnFinding(one.name, str(one), remedy, "odd", LEFT_OUT_KEY, (one.name,))


def _train_then_val_rows(table: _PreparedTable) -> NDArray[np.int64]:
    """Return the training rows, then the validation rows."""
    return np.concatenate([table.splits["train"], table.splits["val"]])


def _table_facts(table: _PreparedTable, options: Options) -> Facts:
    columns = [table.rows[name] for name in table.features]
    width = sum(1 if table_columns.is_numeric(column) else column.nunique() for column in columns)
    leaks = (one for one in table.predictive_columns if one.stands_out and one.is_leak)
    told = tuple(f"column {quoted(one.name)} {one}" for one in leaks)
    ties = ((one.name, one.accuracy) for one in table.predictive_columns if not one.is_leak)
    facts = user_data.facts_of_labels(table.labels, (width,), table.splits)
    return replace(facts, telling=told, shortcut=next(ties, None) if options.bias is None else None)


def _read_table(options: Options, encoding: TableEncoding = ()) -> _PreparedTable:
    examined = _examine_current_file(options, encoding)
    table_findings.raise_if_refused(examined.path, examined.findings)
    assert examined.table is not None  # nothing was refused
    return examined.table


@lru_cache(1)
def _read_rows_cached(
    path: Path,
    types: tuple[tuple[str, type], ...],
    known: TableFormat,
    marks: tuple[str, ...],
    states: tuple[cache.FileState | None, ...],
) -> "pd.DataFrame":
    """Cache the rows as pandas reads them: other keys may change meanwhile."""
    rows = label_files.read_typed_table(path, known, na_values=list(marks), dtype=dict(types))
    return label_files.blank_missing_marks(rows, marks)


@dataclass(frozen=True)
class _TableExamination:
    """A file with all findings that refuse it; `table` is None where nothing is left to be read."""

    path: Path
    findings: tuple[ColumnFinding, ...]
    table: _PreparedTable | None


def _examine_current_file(options: Options, encoding: TableEncoding = (), is_survey: bool = False) -> _TableExamination:
    return _examine_file_cached(options, encoding, cache.file_states(user_files(options)), is_survey)


@lru_cache(1)
def _examine_file_cached(
    options: Options, encoding: TableEncoding, states: tuple[cache.FileState | None, ...], is_survey: bool
) -> _TableExamination:
    """Read the file as `_read_table` does, but collect what refuses it instead of raising it.

    Cached: a command asks several times, and a large file takes seconds.
    """
    path = label_files.find_user_path(options.path)
    known = table_format.format_from_keys(vars(options))
    names = label_files.read_column_names(path, known)
    used = user_data.columns_named_by_keys(options, names, path, (column.name for column in encoding))
    label_files.check_columns_exist(names, options.without, path)
    _check_feature_keys(options, names, path)
    as_text = [name for name in used if name not in options.condition]
    dtype: dict[str, type] = {
        **table_columns.text_column_dtypes(encoding),
        **dict.fromkeys([*as_text, *options.words], str),
    }
    rows = _read_rows_cached(path, tuple(dtype.items()), known, options.missing_marks, cache.file_states([path]))
    label_files.check_columns_exist(rows.columns, options.words, path)
    texts = {name: label_files.column_as_text(rows[name]) for name in dict.fromkeys([*as_text, *options.words])}
    rows = table_columns.replace_columns(rows, texts)
    header = label_files.read_header(path, known)
    table_columns.check_header(header, used, path)
    features = list(options.features) or [str(name) for name in rows.columns if name not in used]
    features = [name for name in features if name not in _left_out_columns(options, header, names)]
    label_files.check_columns_exist(rows.columns, features, path)
    found = list(table_columns.ambiguous_header_findings(header, used, features))
    features = _drop_refused_inputs(features, found)
    counting = odd_columns.row_number_columns(rows, features)
    are_meant = bool(options.features) or len(counting) == len(features)
    left_out, named = ((), counting) if are_meant else (counting, ())
    features = [name for name in features if name not in left_out]
    if not options.features:
        found += table_columns.unnamed_column_findings(header, names)
        found = [one for one in found if one.remedy_values[0] not in options.without]
        found += table_columns.split_as_input_findings(rows, features) if options.split is None else []
    if not features and not found:
        raise UserError(f"{path}: no column is left for the inputs; name some in data.features")
    rows = rows[list(dict.fromkeys([*used, *features]))]
    if options.bias_gaps == "unknown":
        rows = _convert_labels_to_text(rows, user_data.parse_column_names(options.bias, rows.columns, path))
    features = _drop_refused_inputs(features, found)
    lacks_labels = not is_survey and options.missing != "drop" and bool(rows[used].isna().any(axis=None))
    rows, unreadable = _select_encodable_rows(rows, encoding, options, path)
    rows, doubts = _apply_missing_rule(
        rows, used, options, [name for name in features if name not in dtype], path, is_survey
    )
    found += doubts
    features = _drop_refused_inputs(features, found)
    found += [one for name in features for one in table_columns.unusable_input_findings(rows[name])]
    if lacks_labels:
        return _TableExamination(path, tuple(found), None)
    try:
        usable = _drop_refused_inputs(features, found)
        read = _add_labels_and_splits(path, rows, options, usable, left_out, named, unreadable, is_survey, not encoding)
    except UserError as error:
        if not found:
            raise
        return _TableExamination(path, (*found, ColumnFinding("", str(error).removeprefix(f"{path}: "), "")), None)
    if not options.features:
        found += _label_copy_findings(read, options, "target", "refused")
    return _TableExamination(path, tuple(found), read)


def _check_feature_keys(options: Options, names: list[str], path: Path) -> None:
    """Refuse inputs that another key excludes."""
    if both := [name for name in options.features if name in options.without]:
        raise UserError(f"data.features: has {both[0]!r} in it, which data.without leaves out")
    for column in user_data.parse_column_names(options.target, names, path):
        if column in options.features:
            raise UserError(f"data.features: has the target {column!r} in it")
    if options.group in options.features:
        raise UserError(f"data.features: has the group {options.group!r} in it, which is no input")


def _left_out_columns(options: Options, header: list[str], names: list[str]) -> set[str]:
    """Return the columns of `data.without`, and those that pandas has renamed since their name is there twice."""
    named = {name for written, name in zip(header, names, strict=True) if written in options.without}
    return {*options.without, *named}


def _drop_refused_inputs(features: list[str], found: list[ColumnFinding]) -> list[str]:
    """Return the inputs without those that are refused."""
    refused = {one.column for one in found}
    refused |= {name for one in found if one.remedy_key == LEFT_OUT_KEY for name in one.remedy_values}
    return [name for name in features if name not in refused]


def _add_labels_and_splits(
    path: Path,
    rows: "pd.DataFrame",
    options: Options,
    features: list[str],
    left_out: tuple[str, ...],
    named: tuple[str, ...],
    unreadable: FaultsByRow,
    is_survey: bool,
    is_for_training: bool,
) -> _PreparedTable:
    """Add labels and splits to the rows.

    Rows that are only judged may lack a class that `positive` or `aligned` names: the model knows both.
    """
    options = options if is_for_training else replace(options, positive=None, aligned=None)
    samples = [str(name) for name in rows[options.key]] if options.key else None
    labels = user_data.read_table_labels(rows, path, options, samples, is_for_training=is_for_training)
    inputs = [name for name in features if name not in named]
    same = table_columns.group_likely_duplicates(rows, inputs or features) if features else None
    labels, splits, groups = user_data.divide_rows_into_splits(
        rows, path, options, labels, same, is_for_training=is_for_training
    )
    fills = is_survey or options.missing == "fill"
    return _PreparedTable(path, rows, labels, features, splits, fills, left_out, named, same, groups, unreadable)


def _select_encodable_rows(
    rows: "pd.DataFrame", encoding: TableEncoding, options: Options, path: Path
) -> tuple["pd.DataFrame", FaultsByRow]:
    """Return the rows that an encoding can encode, and the faults of the others.

    Rows with missing values that are dropped anyway do not count.
    """
    if not encoding:
        return rows, {}
    if options.missing == "drop":
        rows = rows.mask(rows.isin([np.inf, -np.inf])).dropna()
    decimal = user_data.decimal_mark_of_table(options, path)
    problems = table_columns.encode_rows(rows, encoding, decimal)[1]
    if len(problems) == len(rows):
        why = "; ".join(table_columns.summarise_faults(problems)) or "each has a missing value"
        raise UserError(f"{path}: the model can take none of its rows: {why}. Is it a table of the same kind?")
    numbers = {int(rows.index[place]): problem for place, problem in problems.items()}
    sound = rows.drop(index=[*numbers])
    parsed = {one.name: one.as_numbers(sound[one.name], decimal) for one in encoding if one.values is None}
    return table_columns.replace_columns(sound, parsed), numbers


def _convert_labels_to_text(rows: "pd.DataFrame", labelled: list[str]) -> "pd.DataFrame":
    """Convert labels in these columns to text, empty where they are missing."""
    labels = rows[labelled].convert_dtypes().astype(object)  # whole numbers stay whole beside a gap
    return rows.assign(**labels.where(labels.notna(), "").astype(str))


def _apply_missing_rule(
    rows: "pd.DataFrame", labels: list[str], options: Options, features: list[str], path: Path, is_survey: bool
) -> tuple["pd.DataFrame", list[ColumnFinding]]:
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
            why = f". Empty in every row: {list_few_names(empty)}; leave them out by data.without" if empty else ""
            raise UserError(f"{path}: every row has a value that is {what}; data.missing: drop leaves none{why}")
    decimal = user_data.decimal_mark_of_table(options, path)
    known = table_format.format_from_keys(vars(options))
    rows, found = table_columns.parse_number_columns(
        rows, features, lambda row: label_files.row_location(path, row, known), decimal
    )
    rows = rows.reset_index(drop=True)
    counts = {str(name): int(rows[name].isna().sum()) for name in must}
    if gaps := [f"{quoted(name)} ({count})" for name, count in counts.items() if count]:
        remedy = "Labels are not filled; set data.missing to drop" if missing == "fill" else "Set data.missing"
        problem = f"values are {what} in {list_few_names(gaps)} of {len(rows)} rows"
        found.append(ColumnFinding("", problem, f"{remedy}, or mend them", "refused", "data.missing", ("drop",)))
    for name in (name for name in rows if not table_columns.is_numeric(rows[name])):
        rows[name] = rows[name].astype(object).where(rows[name].notna(), table_columns.MISSING_CATEGORY).astype(str)
    return rows, found


def _fit_encoding_of_table(table: _PreparedTable, marks: Mapping[str, str] | None = None) -> TableEncoding:
    """Fit the encoding to the training rows.

    Args:
        marks: decimal marks by column, for tables that are read later.
    """
    marks, train = marks or {}, table.splits["train"]
    return tuple(
        table_columns.fit_column_encoding(table.rows[name], train, table.fills_missing, marks.get(name))
        for name in table.features
    )


def _encoded_splits(table: _PreparedTable, encoding: TableEncoding) -> dict[str, Split]:
    inputs, faults = table_columns.encode_rows(table.rows, encoding)
    if faults:
        what = "; ".join(table_columns.summarise_faults(faults))
        raise UserError(f"{table.path}: {what}. Is it a table of the same kind?")
    whole = Split(inputs, table.labels.target, table.labels.bias, table.labels.condition)
    return {name: holdout.select_samples(whole, members) for name, members in table.splits.items()}
