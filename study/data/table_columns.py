"""Columns of a user's table as inputs: read and checked, fitted to the training rows, then applied to later rows."""

import re
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from study.data import label_files
from study.data.label_files import FLOAT32_MAX
from study.data.positive_class import guess_positive_class_name
from study.data.table_findings import (
    LEFT_OUT_KEY,
    MISSING_MARKS_KEY,
    WORD_COLUMNS_KEY,
    ColumnFinding,
    key_with_values,
    leave_out_finding,
    raise_if_refused,
)
from study.data.table_format import (
    AMBIGUOUS_COMMA_PATTERN,
    MOSTLY_NUMBERS_SHARE,
    SPACED_NUMBER_PATTERN,
    decimal_mark_of,
    to_plain_number,
)
from study.text import list_few_names, pluralise, quoted

if TYPE_CHECKING:
    import pandas as pd


# Column names are checked as they stand in the file: pandas would rename one that is there twice.

UNNAMED_COLUMN_PATTERN = re.compile(r"\s*|Unnamed: \d+")
"""Name of a column that has none, in the file or as pandas has written it."""


def check_header(header: Sequence[str], used: Sequence[str], path: Path) -> None:
    """Raise a UserError for what `ambiguous_header_findings` finds."""
    raise_if_refused(path, ambiguous_header_findings(header, used))


def ambiguous_header_findings(
    header: Sequence[str], used: Sequence[str], inputs: Sequence[str] = ()
) -> Iterator[ColumnFinding]:
    """Find names that do not say which column is meant, or that may be one column twice.

    A second copy of a label column would be an input that gives the class away.

    Args:
        header: names of all columns, in the order of the file.
        used: columns that must be there, as labels.
        inputs: columns that may be left out.
    """
    places: dict[str, list[str]] = {}
    for place, name in enumerate(header, 1):
        places.setdefault(name, []).append(str(place))
    alike: dict[str, str] = {}
    for name in dict.fromkeys([*used, *inputs]):
        if len(twice := places.get(name, [])) > 1:
            told = name, f"is there {len(twice)} times, as column {' and '.join(twice)}", "Rename or remove all but one"
        elif (other := alike.setdefault(name.strip().casefold(), name)) != name:
            problem = f"columns {quoted(other)} and {quoted(name)} differ by spaces or case alone"
            told = "", problem, "Rename or remove one"
        else:
            continue
        about, problem, remedy = told
        if name not in used:
            remedy = f"{remedy}, or leave it out by {key_with_values(LEFT_OUT_KEY, (name,))}"
            yield ColumnFinding(about, problem, remedy, "refused", LEFT_OUT_KEY, (name,))
        else:
            yield ColumnFinding("", f"column {quoted(name)} {problem}" if about else problem, remedy)


def unnamed_column_findings(header: Sequence[str], names: Sequence[str]) -> Iterator[ColumnFinding]:
    """Find columns without a name: each is most likely the number of the row.

    Args:
        names: of the columns as pandas has written them.
    """
    for place, (written, name) in enumerate(zip(header, names, strict=True), 1):
        if UNNAMED_COLUMN_PATTERN.fullmatch(written):
            remedy = f"Give it one or remove it, or leave it out by {key_with_values(LEFT_OUT_KEY, (name,))}"
            yield ColumnFinding("", f"column {place} has no name", remedy, "refused", LEFT_OUT_KEY, (name,))


MISSING_CATEGORY = "(missing)"
"""Text that a missing text counts as, where missing values are filled."""

BOOLEAN_TEXTS = {"True", "False"}
"""Texts of true and false; a file may write them in other capitals."""


@dataclass(frozen=True)
class CellFault:
    """A cell that cannot be an input.

    Attributes:
        quoted_cell: its text in quotes; empty if it has none.
        reason: what is wrong with it.
        allowed_texts: texts that the column may have; empty for numbers.
    """

    column: str
    quoted_cell: str
    reason: str
    allowed_texts: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"column {quoted(self.column)}: {f'{self.quoted_cell} ' if self.quoted_cell else ''}is {self.reason}"


FaultsByRow = Mapping[int, Sequence[CellFault]]
"""Faults in the cells of some rows, by row from 0."""


def summarise_faults(faults: FaultsByRow) -> list[str]:
    """Write a sentence for each column and kind of fault: each text once, how many rows have it, and the first.

    Args:
        faults: by row from 0; the sentences count from 1.
    """
    found: dict[tuple[str, str], dict[str, list[int]]] = {}
    known: dict[str, tuple[str, ...]] = {}
    for row, cells in faults.items():
        for fault in cells:
            found.setdefault((fault.column, fault.reason), {}).setdefault(fault.quoted_cell, []).append(row + 1)
            known[fault.column] = fault.allowed_texts
    lines = []
    for (column, why), rows_of in found.items():
        counts = [
            f"{cell or 'a cell'} ({f'{len(places)} rows, first' if len(places) > 1 else 'row'} {places[0]})"
            for cell, places in sorted(rows_of.items(), key=lambda item: -len(item[1]))
        ]
        words = f". It has: {list_few_names(known[column])}" if known[column] else ""
        lines.append(
            f"column {quoted(column)}: {list_few_names(counts)} {'are' if len(counts) > 1 else 'is'} {why}{words}"
        )
    return lines


@dataclass(frozen=True)
class ColumnEncoding:
    """How a column becomes inputs.

    Attributes:
        values: texts that it may have, each with an input of its own, in their order; None: it holds numbers.
        mean, deviation: of the numbers of the training rows.
        fills: whether a missing number counts as `mean`. A missing text counts as `MISSING_CATEGORY`, where that is
            a value.
        decimal: decimal mark of its numbers in the training table, where some there need a comma; None: not known.
    """

    name: str
    values: tuple[str, ...] | None = None
    mean: float = 0.0
    deviation: float = 1.0
    fills: bool = False
    decimal: str | None = None

    @property
    def width(self) -> int:
        """Number of inputs that it becomes."""
        return 1 if self.values is None else len(self.values)

    @property
    def is_boolean(self) -> bool:
        """Whether its texts are true and false."""
        return self.values is not None and {*self.values} - {MISSING_CATEGORY} <= BOOLEAN_TEXTS

    def encode(self, column: "pd.Series", decimal: str = ".") -> tuple[NDArray[np.float32], dict[int, CellFault]]:
        """Encode a column (N,) as inputs (N, `width`), 0 for bad cells; return the faults of these, by row from 0.

        Args:
            decimal: decimal mark in texts.
        """
        if self.values is None:
            return self._encode_numbers(column, decimal)
        return self._encode_one_hot(column, self.values)

    def as_numbers(self, column: "pd.Series", decimal: str = ".") -> "pd.Series":
        """Convert a column to numbers, NaN where a cell is none.

        The mark of its texts is the one that they need; else that of the training column; else `decimal`.
        """
        import pandas as pd

        given = column.astype(str) if column.dtype.kind in "mM" else column  # a moment is no number
        if (is_text := given.map(lambda value: isinstance(value, str))).any():
            texts = given.astype(str).str.strip()
            numbers = (text for text in texts[is_text].unique() if SPACED_NUMBER_PATTERN.fullmatch(text))
            mark = decimal_mark_of(numbers) or self.decimal or decimal
            given = given.where(~is_text, rewrite_with_decimal_points(texts, mark))
        return pd.to_numeric(given, errors="coerce")

    def _encode_numbers(self, column: "pd.Series", decimal: str) -> tuple[NDArray[np.float32], dict[int, CellFault]]:
        parsed = self.as_numbers(column, decimal).to_numpy(np.float64, na_value=np.nan)
        empty = column.isna().to_numpy(bool) | np.isinf(parsed)
        values = np.where(empty, self.mean if self.fills else np.nan, parsed)
        with np.errstate(over="ignore"):
            scaled = (values - self.mean) / self.deviation
        problems = {}
        for row in np.flatnonzero(~(np.abs(scaled) <= FLOAT32_MAX)):
            cell = "" if empty[row] else quoted(str(column.iloc[row]))
            why = "empty, a number is needed" if empty[row] else "no number"
            if not np.isnan(scaled[row]):
                why = f"more than {FLOAT32_MAX:.1e} deviations of the training rows away from their mean"
            problems[int(row)] = CellFault(self.name, cell, why)
        scaled[[*problems]] = 0.0
        return scaled[:, None].astype(np.float32), problems

    def _encode_one_hot(
        self, column: "pd.Series", values: Sequence[str]
    ) -> tuple[NDArray[np.float32], dict[int, CellFault]]:
        cells = zip(column, column.isna(), strict=True)
        texts = np.array([MISSING_CATEGORY if absent else self._cell_text(value) for value, absent in cells], object)
        inputs = np.stack([texts == value for value in values], 1).astype(np.float32)
        problems = {}
        for row in np.flatnonzero(inputs.sum(1) == 0):
            is_empty = texts[row] == MISSING_CATEGORY
            why = "empty, as none of the training table is" if is_empty else "in no row of the training table"
            problems[int(row)] = CellFault(self.name, "" if is_empty else quoted(texts[row]), why, tuple(values))
        return inputs, problems

    def _cell_text(self, value: Hashable) -> str:
        text = str(value) if self.values and str(value) in self.values else str(value).strip()
        return text.capitalize() if self.is_boolean and text.capitalize() in BOOLEAN_TEXTS else text


TableEncoding = tuple[ColumnEncoding, ...]
"""Columns of a table that are inputs, in the order of the inputs."""


def fit_column_encoding(
    column: "pd.Series", train: NDArray[np.int64], fills: bool, decimal: str | None = None
) -> ColumnEncoding:
    """Fit how a column becomes inputs to its training rows; its texts are those of all rows, sorted.

    Args:
        train: indices of the training rows.
        fills: whether values may be missing.
        decimal: decimal mark of its numbers in the file, see `ColumnEncoding`.
    """
    name = str(column.name)
    if not is_numeric(column):
        return ColumnEncoding(name, tuple(sorted({str(text).strip() for text in column.unique()})), fills=fills)
    return ColumnEncoding(name, None, *mean_and_deviation(column_as_numbers(column)[train]), fills, decimal)


def mean_and_deviation(values: NDArray[np.float64]) -> tuple[float, float]:
    """Return mean and deviation of a column's training rows (N,); NaN, a missing value, counts as the mean.

    The deviation of a column that does not vary is 1.
    """
    there = values[~np.isnan(values)]
    varies = len(there) > 0 and there.min() < there.max()  # else rounding would leave a small deviation
    mean = float(there.mean()) if varies else float(there[0]) if len(there) else 0.0
    deviation = float(np.where(np.isnan(values), mean, values).std()) if varies else 0.0
    return mean, deviation or 1.0


def encode_rows(
    frame: "pd.DataFrame", encoding: TableEncoding, decimal: str = "."
) -> tuple[NDArray[np.float32], FaultsByRow]:
    """Encode a table's rows as inputs (N, F); return the faults of its rows, too, by row from 0.

    Inputs of a row with faults mean nothing.

    Args:
        decimal: decimal mark in texts.

    Raises:
        KeyError: a column is not there.
    """
    parts, problems = [], dict[int, list[CellFault]]()
    for column in encoding:
        part, wrong = column.encode(frame[column.name], decimal)
        parts.append(part)
        for row, problem in wrong.items():
            problems.setdefault(row, []).append(problem)
    return np.concatenate(parts, 1), {row: problems[row] for row in sorted(problems)}


def text_column_dtypes(encoding: TableEncoding) -> dict[str, type[str]]:
    """Return the columns to be read as text: `dtype` of `pandas.read_csv`."""
    return {column.name: str for column in encoding if column.values is not None}


def is_numeric(column: "pd.Series") -> bool:
    """Tell whether a column of the training table counts as numbers."""
    from pandas.api.types import is_bool_dtype, is_numeric_dtype

    return is_numeric_dtype(column) and not is_bool_dtype(column)


def column_as_numbers(column: "pd.Series") -> NDArray[np.float64]:
    """Return a column as numbers, NaN where a value is missing."""
    return column.to_numpy(np.float64, na_value=np.nan)


MIN_DISTINCT_ROWS, MAX_EQUAL_ROWS_SHARE = 50, 0.05
"""Least number of different rows, and largest share of all rows in one group of equal ones, for equal rows to count as
one sample.
"""

MAX_DISTINCT_TEXTS = 200
"""Different values that a column of text may have: more are names, or a number column with a stray word."""


def unusable_input_findings(column: "pd.Series") -> Iterator[ColumnFinding]:
    """Find numbers that are too large, and columns with too many different texts."""
    name = str(column.name)
    if is_numeric(column):
        values = column_as_numbers(column)
        wrong = np.flatnonzero(np.abs(values) > FLOAT32_MAX)
        if len(wrong):
            what = f"{values[wrong[0]]:g} is too large: numbers up to {FLOAT32_MAX:.1e} are allowed"
            problem = f"column {name!r}, row {wrong[0] + 1}: {what}"
            remedy = f"Mend it, or leave it out by {LEFT_OUT_KEY}"
            yield ColumnFinding("", problem, remedy, "refused", LEFT_OUT_KEY, (name,))
    elif (count := column.nunique()) > MAX_DISTINCT_TEXTS:
        problem = f"has {count} different texts, at most {MAX_DISTINCT_TEXTS} are allowed"
        yield leave_out_finding(name, problem, "no input", "make it numbers")


def describe_inputs(rows: "pd.DataFrame", features: Sequence[str]) -> list[str]:
    """Describe how each input is read, a line for each kind, and how many numbers a row becomes."""
    words = {name: sorted(rows[name].unique()) for name in features if not is_numeric(rows[name])}
    truths = [name for name, values in words.items() if guess_positive_class_name(values)]
    kinds = {
        "numbers": [name for name in features if name not in words],
        "yes or no": truths,
        "words": [
            f"{name} ({len(values)} words)"
            for name, values in sorted(words.items(), key=lambda item: -len(item[1]))
            if name not in truths
        ],
    }
    width = len(kinds["numbers"]) + sum(map(len, words.values()))
    return [
        f"inputs: {pluralise(len(features), 'column')}, which become {pluralise(width, 'number')} for the network",
        *(f"  {kind} ({len(names)}): {list_few_names(names)}" for kind, names in kinds.items() if names),
    ]


def split_as_input_findings(rows: "pd.DataFrame", features: Sequence[str]) -> Iterator[ColumnFinding]:
    """Find inputs, named by no key, that say the split of each row."""
    for name in features:
        if label_files.is_split_column(name, rows[name].dropna().unique().tolist()):
            problem = "says which split a row belongs to, and would be an input"
            remedy = f"Give {key_with_values('data.split', (name,))} to use it, or leave it out by data.without"
            yield ColumnFinding(name, problem, remedy, "refused", "data.split", (name,))


def group_likely_duplicates(rows: "pd.DataFrame", features: Sequence[str]) -> NDArray[np.int64] | None:
    """Group equal rows that are most likely one sample which is there several times.

    Returns:
        The group of each row, (N,); None where no rows are equal, or where they are equal by chance, since a table of
            so few values can have few different rows.
    """
    group = group_equal_rows(rows, features)
    counts = np.bincount(group)
    is_repeated = len(counts) < len(group)
    is_rare = len(counts) >= MIN_DISTINCT_ROWS and counts.max() <= MAX_EQUAL_ROWS_SHARE * len(group)
    return group if is_repeated and is_rare else None


def group_equal_rows(rows: "pd.DataFrame", features: Sequence[str]) -> NDArray[np.int64]:
    """Number rows by their inputs, (N,): equal rows have one number."""
    return rows.groupby(list(features), sort=False, dropna=False).ngroup().to_numpy().astype(np.int64)


MAX_CATEGORY_NUMBERS = 10
"""Number of different numbers above which a column counts as numbers with strays, or with units; fewer may be kinds, as
36 months and 60 months.
"""

RowLocator = Callable[[int], str]
"""Function that writes the place of a row of the file, counted from 0."""

MAX_TEXTS_TRIED_FIRST = 40
"""Texts of a column that are tried first, to see quickly that they do not match a pattern."""

MAX_SHOWN_STRAY_TEXTS = 3
"""Strays that a message shows."""

MIN_UNIQUE_TEXT_SHARE, MIN_UNIQUE_TEXTS = 0.5, 20
"""Share of the rows with different texts, and number of texts, above both of which a column holds names, not kinds."""

_NUMBER_DECORATIONS = re.escape("$€£¥%'\u00a0\u202f _")
DECORATED_NUMBER_PATTERN = rf"[{_NUMBER_DECORATIONS}]*[+-]?[{_NUMBER_DECORATIONS}]*\d[\d.,{_NUMBER_DECORATIONS}]*"
"""Pattern of numbers that were written for people."""

MONTH_PATTERN = r"(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?"
DATE_PATTERN = re.compile(
    r"\d{4}(?P<a>[-/.])\d{1,2}(?P=a)\d{1,2}([T ].*)?|\d{4}[-/]\d{1,2}([T ].*)?"
    r"|\d{1,2}(?P<b>[/.-])\d{1,2}(?P=b)\d{2,4}([T ].*)?|\d{1,2}:\d{2}(:\d{2}.*)?"
    rf"|\d{{1,2}}\.?[ -]{MONTH_PATTERN}[ ,-]+\d{{2,4}}.*|{MONTH_PATTERN}[ -]?\d{{1,2}},? "
    rf"\d{{4}}.*|{MONTH_PATTERN}[ -]\d{{4}}",
    re.IGNORECASE,
)

NUMBER_WITH_UNIT_PATTERN = r"[+-]?\d[\d.,]*\s*([A-Za-zµ°%²³/]+)\.?"


def parse_number_columns(
    rows: "pd.DataFrame", features: Sequence[str], where: RowLocator, decimal: str
) -> tuple["pd.DataFrame", list[ColumnFinding]]:
    """Turn each input whose texts are all numbers into numbers, and find those that cannot be.

    Found are numbers with a few texts among them, numbers written for people, dates and names, each with its place and
    what to do. pandas may have read a column as text because of rows that were then dropped; it becomes numbers here.
    The index of `rows` counts the rows of the file from 0.

    Args:
        features: inputs that may be numbers.
        where: writes the place of a row of the file, counted from 0.
        decimal: decimal mark, `.` or `,`.
    """
    import pandas as pd

    found: dict[str, pd.Series] = {}
    doubts: list[ColumnFinding] = []
    for name in features:
        column = rows[name]
        if column.dtype.kind in "mM" or isinstance(column.dtype, pd.PeriodDtype):
            doubts.append(leave_out_finding(name, "holds dates", "no input", "make it a number"))
            continue
        there = column[column.notna()]
        is_object = pd.api.types.is_object_dtype(column)
        is_text = is_object or pd.api.types.is_string_dtype(column)
        if not is_text or isinstance(column.dtype, pd.CategoricalDtype) or there.empty:
            continue
        if is_object and there.map(lambda value: isinstance(value, bool)).any():
            continue
        place, kinds = pd.factorize(there.astype(str))  # each text is looked at once
        texts = pd.Series(kinds).astype(str).str.strip()
        numeric = pd.to_numeric(rewrite_with_decimal_points(texts, decimal), errors="coerce")
        plain, parsed = (one.take(place).set_axis(there.index) for one in (texts, numeric))
        if parsed.notna().all():
            found[name] = parsed.astype(np.float64).reindex(rows.index)
            continue
        if doubt := _not_categories_finding(plain, parsed.notna().to_numpy(bool), name, where, decimal):
            doubts.append(doubt)
        found[name] = plain.reindex(rows.index)  # without the blanks around them
    return replace_columns(rows, found), doubts


def replace_columns(rows: "pd.DataFrame", columns: Mapping[str, "pd.Series"]) -> "pd.DataFrame":
    """Replace some columns of the rows; pandas' own way is slow for hundreds of columns."""
    import pandas as pd

    parts = [columns.get(str(name), rows.iloc[:, place]) for place, name in enumerate(rows)]
    return pd.concat(parts, axis=1).set_axis(rows.columns, axis=1) if columns else rows


def rewrite_with_decimal_points(texts: "pd.Series", decimal: str) -> "pd.Series":
    """Rewrite texts of numbers with a decimal point, see `table_format.to_plain_number`."""
    return (
        texts if decimal == "." else texts.map(lambda text: to_plain_number(text.strip(), decimal), na_action="ignore")
    )


MAX_MISSING_MARK_TEXTS = 3
"""Number of different texts among numbers up to which they may mark missing values; more are codes, or typing errors.
"""


def _not_categories_finding(
    texts: "pd.Series", is_number: "np.ndarray", name: str, where: RowLocator, decimal: str
) -> ColumnFinding | None:
    """Find a reason why texts, some of which are numbers, are most likely not kinds of something."""
    words = f"{key_with_values(WORD_COLUMNS_KEY, (name,))} if these are words that you want"
    if is_number.mean() >= MOSTLY_NUMBERS_SHARE or texts[is_number].nunique() > MAX_CATEGORY_NUMBERS:
        strays = texts[~is_number]
        shown = [
            f"{quoted(text)} ({where(row)})"
            for row, text in zip(strays.index.tolist()[:MAX_SHOWN_STRAY_TEXTS], strays, strict=False)
        ]
        more = f" and {len(strays) - MAX_SHOWN_STRAY_TEXTS} more" if len(strays) > MAX_SHOWN_STRAY_TEXTS else ""
        problem = f"holds numbers but for {', '.join(shown)}{more}"
        if strays.nunique() > MAX_MISSING_MARK_TEXTS:
            left_out = leave_out_finding(name, problem, more=f"mend them, or give {words}")
            return replace(left_out, may_be_words=True)
        marks = tuple(sorted(set(strays)))
        given = key_with_values(MISSING_MARKS_KEY, marks)
        remedy = f"Mend them, or give {given} if they mean that the value is missing, or {words}"
        return ColumnFinding(name, problem, remedy, "refused", MISSING_MARKS_KEY, marks, may_be_words=True)
    if date := _first_matching_text_if_frequent(texts, where, DATE_PATTERN):
        return leave_out_finding(name, f"holds dates, as {date}", "no input", f"make it a number, or give {words}")
    if decimal == "," and (point := _first_matching_text_if_frequent(texts, where, r"[+-]?\d[\d.]*")):
        problem = f"holds numbers with a point, as {point}, but data.decimal is a comma"
        return ColumnFinding(name, problem, f"Write all numbers of the table in one way, or give {words}")
    thousands = _first_matching_text_if_frequent(texts, where, r"[+-]?[1-9]\d{0,2}(,\d{3})+")
    if not thousands and (comma := _first_matching_text_if_frequent(texts, where, r"[+-]?\d+[.,]\d+|[+-]?\d+")):
        problem = f"holds numbers with a decimal comma, as {comma}"
        return ColumnFinding(name, problem, f'Give data.decimal: ",", or {words}', "refused", "data.decimal", (",",))
    if decimal == "." and (comma := _first_matching_text_if_frequent(texts, where, AMBIGUOUS_COMMA_PATTERN, 1.0)):
        problem = f"holds numbers whose comma may mark decimals or thousands, as {comma}"
        remedy = f'If decimals, give data.decimal: ",". If thousands, write them without it, or give {words}'
        return ColumnFinding(name, problem, remedy, "refused", "data.decimal", (",",))
    if money := _first_matching_text_if_frequent(texts, where, DECORATED_NUMBER_PATTERN):
        remedy = f"Write them without signs of money, per cent and thousands, or give {words}"
        return ColumnFinding(name, f"holds numbers written for people, as {money}", remedy)
    if measured := _first_matching_text_if_frequent(texts, where, NUMBER_WITH_UNIT_PATTERN):
        units = {found.group(1) for text in texts.unique() if (found := re.fullmatch(NUMBER_WITH_UNIT_PATTERN, text))}
        if len(units) < MAX_CATEGORY_NUMBERS < texts.nunique():
            problem = f"holds numbers with a unit, as {measured}"
            return ColumnFinding(name, problem, f"Write the numbers alone, all in one unit, or give {words}")
    if (values := texts.nunique()) > max(MIN_UNIQUE_TEXTS, MIN_UNIQUE_TEXT_SHARE * len(texts)):
        example = f"{quoted(texts.iloc[0])} ({where(texts.index[0])})"
        problem = f"has {values} different texts in {len(texts)} rows: names, not kinds, as {example}"
        return leave_out_finding(name, problem, "no input", f"give {words}")
    return None


def _first_matching_text_if_frequent(
    texts: "pd.Series", where: RowLocator, pattern: str | re.Pattern[str], share: float = MOSTLY_NUMBERS_SHARE
) -> str | None:
    """Return the first text that matches a pattern, with its place; None unless this share of the texts matches."""
    glance = texts.iloc[:: max(1, len(texts) // MAX_TEXTS_TRIED_FIRST)].tolist()
    if not any(re.fullmatch(pattern, text) for text in dict.fromkeys(glance)):
        return None
    found = texts.isin([text for text in texts.unique() if re.fullmatch(pattern, text)])
    if found.mean() < share:
        return None
    row = int(found[found].index[0])
    return f"{quoted(texts.loc[row])} ({where(row)})"
