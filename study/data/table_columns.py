"""Columns of a user's table as inputs: read and checked, fitted to the training rows, then the same for every row that
comes after.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from study.data import label_files, user_data
from study.data.label_files import LARGEST
from study.data.table_format import plain_number
from study.errors import UserError
from study.text import quoted, some

if TYPE_CHECKING:
    import pandas as pd


# Names of the columns in a user's table as they are in the file: pandas would rename those that are there twice.

NAMELESS = re.compile(r"\s*|Unnamed: \d+")
"""A column without a name, in the file or as pandas has written it."""


def check_header(header: Sequence[str], used: Sequence[str], path: Path) -> None:
    """Refuse names that do not say which column is meant, or which may be one column twice.

    A second column of a label would be an input, and the class would be known from it.

    Args:
        header: names of all columns, in the order of the file.
        used: those that are labels or inputs.

    Raises:
        UserError: one of them is there twice, or two of them differ by spaces or case alone.
    """
    places: dict[str, list[str]] = {}
    for place, name in enumerate(header, 1):
        places.setdefault(name, []).append(str(place))
    alike: dict[str, str] = {}
    for name in dict.fromkeys(used):
        if len(twice := places.get(name, [])) > 1:
            problem = f"column {quoted(name)} is there {len(twice)} times, as column {' and '.join(twice)}"
            raise UserError(f"{path}: {problem}. Rename or remove all but one")
        if (other := alike.setdefault(name.strip().casefold(), name)) != name:
            problem = f"columns {quoted(other)} and {quoted(name)} differ by spaces or case alone"
            raise UserError(f"{path}: {problem}. Rename or remove one, or name the inputs in data.features")


def check_named(header: Sequence[str], path: Path) -> None:
    """Raise a UserError if a column has no name: it is most likely the number of the row."""
    for place, name in enumerate(header, 1):
        if NAMELESS.fullmatch(name):
            remedy = "Give it one or remove it, or name the inputs in data.features"
            raise UserError(f"{path}: column {place} has no name. {remedy}")


MISSING = "(missing)"
"""The text that a missing one counts as, where missing values are filled."""

TRUTHS = {"True", "False"}
"""The texts of yes and no: a file may have them in other letters."""


@dataclass(frozen=True)
class Fault:
    """A cell that cannot be an input.

    Attributes:
        cell: the text in it, in quotes; empty if it has none.
        why: what it is.
        known: the texts that the column may have; empty for numbers.
    """

    column: str
    cell: str
    why: str
    known: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"column {quoted(self.column)}: {f'{self.cell} ' if self.cell else ''}is {self.why}"


Faults = Mapping[int, Sequence[Fault]]
"""What is wrong with the cells of some rows, by row from 0 on."""


def summary(faults: Faults) -> list[str]:
    """A sentence for each column and kind of fault, which names each text once and counts its rows; rows from 1 on."""
    found: dict[tuple[str, str], dict[str, list[int]]] = {}
    known: dict[str, tuple[str, ...]] = {}
    for row, cells in faults.items():
        for fault in cells:
            found.setdefault((fault.column, fault.why), {}).setdefault(fault.cell, []).append(row + 1)
            known[fault.column] = fault.known
    lines = []
    for (column, why), rows_of in found.items():
        counts = [
            f"{cell or 'a cell'} ({f'{len(places)} rows, first' if len(places) > 1 else 'row'} {places[0]})"
            for cell, places in sorted(rows_of.items(), key=lambda item: -len(item[1]))
        ]
        words = f". It has: {some(known[column])}" if known[column] else ""
        lines.append(f"column {quoted(column)}: {some(counts)} {'are' if len(counts) > 1 else 'is'} {why}{words}")
    return lines


@dataclass(frozen=True)
class Column:
    """The way in which a column becomes inputs.

    Attributes:
        values: the texts that it may have, each with an input of its own, in their order; None: it holds numbers.
        mean, deviation: of the numbers of the training rows.
        fills: whether a missing number counts as `mean`. A missing text counts as `MISSING`, where that is a value.
    """

    name: str
    values: tuple[str, ...] | None = None
    mean: float = 0.0
    deviation: float = 1.0
    fills: bool = False

    @property
    def width(self) -> int:
        """The number of inputs that it becomes."""
        return 1 if self.values is None else len(self.values)

    @property
    def is_truth(self) -> bool:
        """Return whether its texts are yes and no."""
        return self.values is not None and {*self.values} - {MISSING} <= TRUTHS

    def encoded(self, column: "pd.Series", decimal: str = ".") -> tuple[NDArray[np.float32], dict[int, Fault]]:
        """A column (N,) as inputs (N, `width`), and by row, from 0 on, what is wrong with a cell; its inputs are 0.

        Args:
            decimal: mark of decimals in texts.
        """
        return self._numbers(column, decimal) if self.values is None else self._one_hot(column, self.values)

    def _numbers(self, column: "pd.Series", decimal: str) -> tuple[NDArray[np.float32], dict[int, Fault]]:
        import pandas as pd

        given = column.astype(str) if column.dtype.kind in "mM" else column  # a moment is no number
        if decimal != "." and (is_text := given.map(lambda value: isinstance(value, str))).any():
            given = given.where(~is_text, with_points(given.astype(str), decimal))
        parsed = pd.to_numeric(given, errors="coerce").to_numpy(np.float64, na_value=np.nan)
        empty = column.isna().to_numpy(bool) | np.isinf(parsed)
        values = np.where(empty, self.mean if self.fills else np.nan, parsed)
        with np.errstate(over="ignore"):
            scaled = (values - self.mean) / self.deviation
        problems = {}
        for row in np.flatnonzero(~(np.abs(scaled) <= LARGEST)):
            cell = "" if empty[row] else quoted(str(column.iloc[row]))
            why = "empty, a number is needed" if empty[row] else "no number"
            if not np.isnan(scaled[row]):
                why = f"more than {LARGEST:.1e} deviations of the training rows away from their mean"
            problems[int(row)] = Fault(self.name, cell, why)
        scaled[[*problems]] = 0.0
        return scaled[:, None].astype(np.float32), problems

    def _one_hot(self, column: "pd.Series", values: Sequence[str]) -> tuple[NDArray[np.float32], dict[int, Fault]]:
        cells = zip(column, column.isna(), strict=True)
        texts = np.array([MISSING if absent else self._text(value) for value, absent in cells], object)
        inputs = np.stack([texts == value for value in values], 1).astype(np.float32)
        problems = {}
        for row in np.flatnonzero(inputs.sum(1) == 0):
            is_empty = texts[row] == MISSING
            why = "empty, as none of the training table is" if is_empty else "in no row of the training table"
            problems[int(row)] = Fault(self.name, "" if is_empty else quoted(texts[row]), why, tuple(values))
        return inputs, problems

    def _text(self, value: Any) -> str:
        text = str(value) if self.values and str(value) in self.values else str(value).strip()
        return text.capitalize() if self.is_truth and text.capitalize() in TRUTHS else text


Encoding = tuple[Column, ...]
"""The columns of a table that are inputs, in the order of the inputs."""


def fitted(column: "pd.Series", train: NDArray[np.int64], fills: bool) -> Column:
    """Return how a column becomes inputs, from its training rows; the texts are those of all rows, ordered.

    Args:
        train: indices of the training rows.
        fills: whether values may be missing.
    """
    name = str(column.name)
    if not is_number(column):
        return Column(name, tuple(sorted({str(text).strip() for text in column.unique()})), fills=fills)
    values = numbers(column)
    there = values[train][~np.isnan(values[train])]
    varies = len(there) > 0 and there.min() < there.max()  # else rounding would leave a small deviation
    mean = float(there.mean()) if varies else float(there[0]) if len(there) else 0.0
    deviation = float(np.where(np.isnan(values), mean, values)[train].std()) if varies else 0.0
    return Column(name, None, mean, deviation or 1.0, fills)


def width(encoding: Encoding) -> int:
    """Return how many inputs a row has."""
    return sum(column.width for column in encoding)


def rows(frame: "pd.DataFrame", encoding: Encoding, decimal: str = ".") -> tuple[NDArray[np.float32], Faults]:
    """A table's rows as inputs (N, F), and by row, from 0 on, what is wrong with its cells; such inputs mean nothing.

    Args:
        decimal: mark of decimals in texts.

    Raises:
        KeyError: a column is not there.
    """
    parts, problems = [], dict[int, list[Fault]]()
    for column in encoding:
        part, wrong = column.encoded(frame[column.name], decimal)
        parts.append(part)
        for row, problem in wrong.items():
            problems.setdefault(row, []).append(problem)
    return np.concatenate(parts, 1), {row: problems[row] for row in sorted(problems)}


def encoded(frame: "pd.DataFrame", encoding: Encoding, place: str) -> NDArray[np.float32]:
    """The rows of a table that must all be sound, (N, F).

    Args:
        place: the file, for the message.

    Raises:
        UserError: a cell cannot be an input.
    """
    inputs, problems = rows(frame, encoding)
    if problems:
        raise UserError(f"{place}: {'; '.join(summary(problems))}. Is it a table of the same kind?")
    return inputs


def texts(encoding: Encoding) -> dict[str, type[str]]:
    """The columns to be read as text: `dtype` of `pandas.read_csv`."""
    return {column.name: str for column in encoding if column.values is not None}


def is_number(column: "pd.Series") -> bool:
    """Return whether a column of the training table counts as numbers."""
    from pandas.api.types import is_bool_dtype, is_numeric_dtype

    return is_numeric_dtype(column) and not is_bool_dtype(column)


def numbers(column: "pd.Series") -> NDArray[np.float64]:
    """A column of numbers, NaN where a value is missing."""
    return column.to_numpy(np.float64, na_value=np.nan)


def absent(names: Sequence[str], encoding: Encoding) -> Iterator[str]:
    """The columns that a table lacks.

    Args:
        names: of its columns.
    """
    return (column.name for column in encoding if column.name not in names)


# What cannot be an input: checks of the columns of a user's table.


GROUP_VALUES, LARGEST_GROUP = 50, 0.05
"""Different rows at least, and the share of all rows that equal ones have at most, for equal rows to be one sample."""

FEWEST_ROWS = 20
"""Rows from which on whole numbers in even steps are no accident."""

GAPS = frozenset(("?", "??", "-", "--", "---", ".", "..", "n.a.", "N.A.", "na", "n/k", "*", "#NULL!", "#VALUE!"))
"""Words of people and programs for a missing value that are none of `label_files.MISSING_MARKS`."""

MOST_VALUES = 200
"""Different values that a column of text may have: more are names or a number column with a stray word."""


def check_input(column: "pd.Series", path: Path) -> None:
    """Raise a UserError if a column cannot be an input."""
    name = str(column.name)
    if is_number(column):
        label_files.check_size(numbers(column), name, path)
    elif (values := column.nunique()) > MOST_VALUES:
        problem = f"has {values} different texts, at most {MOST_VALUES} are allowed"
        raise UserError(f"{path}: column {quoted(name)} {problem}. Leave it out of data.features, or make it numbers")


def reading(rows: "pd.DataFrame", features: Sequence[str]) -> list[str]:
    """Return how each input is read, a line for each kind, and how many numbers a row becomes."""
    words = {name: sorted(rows[name].unique()) for name in features if not is_number(rows[name])}
    truths = [name for name, values in words.items() if user_data.likely_positive(values)]
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
        f"inputs: {len(features)} column{'s' * (len(features) > 1)}, {width} numbers for the network",
        *(f"  {kind} ({len(names)}): {some(names)}" for kind, names in kinds.items() if names),
    ]


def likely_gaps(rows: "pd.DataFrame", features: Sequence[str]) -> list[str]:
    """A sentence for each input of words with one that looks like a missing value."""
    found = []
    for name in features:
        there = [] if is_number(rows[name]) else sorted({*rows[name].unique()} & GAPS)
        if there:
            counts = [f"{quoted(word)} ({int((rows[name] == word).sum())} rows)" for word in there]
            marks = ", ".join(f'"{word}"' for word in there)
            found.append(
                f"column {quoted(name)} has the words {some(counts)}. If they mean a missing value: "
                f"data.missing_marks: [{marks}]"
            )
    return found


def likely_dates(rows: "pd.DataFrame", features: Sequence[str]) -> list[str]:
    """A sentence for each input of whole numbers that are days, as 20260131."""
    import pandas as pd

    found = []
    for name in features:
        there = rows[name].dropna()
        if not is_number(there) or not len(there) or not np.isfinite(numbers(there)).all() or (there % 1).any():
            continue
        texts = there.map("{:.0f}".format)
        if texts.str.len().eq(8).all() and pd.to_datetime(texts, format="%Y%m%d", errors="coerce").notna().all():
            found.append(f"column {quoted(name)} looks like dates, as {texts.iloc[0]}, and is read as a number")
    return found


def spellings(rows: "pd.DataFrame", features: Sequence[str]) -> list[str]:
    """A sentence for each input whose words differ by capitals or by how Unicode writes an accent alone."""
    found = []
    for name in features:
        if is_number(rows[name]):
            continue
        alike: dict[str, list[str]] = {}
        for word in sorted(rows[name].unique()):
            alike.setdefault(user_data.folded(word), []).append(word)
        if several := [some([quoted(word) for word in words]) for words in alike.values() if len(words) > 1]:
            found.append(
                f"column {quoted(name)} has words that may be one: {'; '.join(several[:3])}. Each is a kind of its own"
            )
    return found


def check_no_split(rows: "pd.DataFrame", features: Sequence[str], split: str | None, path: Path) -> None:
    """Raise a UserError if one of the inputs, which nobody named, says the split of each row."""
    for name in features if split is None else ():
        if label_files.is_split(name, rows[name].dropna().unique().tolist()):
            raise UserError(
                f"{path}: column {quoted(name)} says which split a row belongs to, and would be an input. Give "
                f"data.split: {name} to use it, or name the inputs in data.features"
            )


def running_numbers(rows: "pd.DataFrame", features: Sequence[str]) -> tuple[str, ...]:
    """The columns that count the rows, in any order: whole numbers, another one in each row, in even steps.

    Where a file is sorted by class, such a number tells the class of every row.
    """
    found = []
    for name in features:
        column = rows[name]
        if column.dtype.kind not in "iuf" or len(column) < FEWEST_ROWS:
            continue
        values = np.sort(column.to_numpy())
        if not np.isfinite(values).all():
            continue
        steps = np.diff(values)
        if (values % 1 == 0).all() and steps[0] > 0 and (steps == steps[0]).all():
            found.append(name)
    return tuple(found)


def to_keep_together(rows: "pd.DataFrame", features: Sequence[str]) -> NDArray[np.int64] | None:
    """The group of equal rows that each row is in, (N,), where such rows are most likely one sample that is there
    several times; None where no row is, or where rows are equal since there are few that a table of so few values can
    have."""
    group = equal_rows(rows, features)
    counts = np.bincount(group)
    is_repeated = len(counts) < len(group)
    return group if is_repeated and len(counts) >= GROUP_VALUES and counts.max() <= LARGEST_GROUP * len(group) else None


def equal_rows(rows: "pd.DataFrame", features: Sequence[str]) -> NDArray[np.int64]:
    """The number of each row's inputs among all that there are, (N,)."""
    return rows.groupby(list(features), sort=False, dropna=False).ngroup().to_numpy().astype(np.int64)


def one_to_one(
    rows: "pd.DataFrame", features: Sequence[str], codes: NDArray[np.int64] | None, key: str, named: Sequence[str]
) -> list[str]:
    """A sentence for each input that has one value for each class or bias class.

    Args:
        codes: of each row, (N,), -1 where it is not known; None: there are none.
        key: of the study file that names the `named` columns, which do not count.
    """
    if codes is None:
        return []
    known = codes >= 0
    there = rows[known].assign(**{"": codes[known]})
    kinds = there[""].nunique()
    return [
        f"column {quoted(name)} is an input, and has one value for each value of {key} ({'+'.join(named)}): it tells it"
        for name in features
        if name not in named and kinds == there[name].nunique() == there.groupby([name, ""], dropna=False).ngroups
    ]


def check_copies(
    rows: "pd.DataFrame", inputs: Sequence[str], labels: user_data.Labels, target: str, path: Path
) -> None:
    """Refuse an input that nobody named and that says the class: another spelling of it, most likely."""
    for name in inputs:
        if rows[name].nunique() != labels.classes:
            continue
        pairs = set(zip(rows[name].tolist(), labels.target.tolist(), strict=True))
        if len(pairs) == labels.classes:
            problem = f"column {quoted(name)} has one value for each value of {target!r}: it would tell the class"
            raise UserError(f"{path}: {problem}. Name the inputs in data.features, with it or without")


# Columns of a user's table that are not what pandas takes them for: numbers with a few other texts among them, numbers
# as a spreadsheet shows them, dates, and names.


MOSTLY = 0.5
"""Share of a column's texts from which on it counts as numbers, or dates, with strays among them."""

DISTINCT_NUMBERS = 10
"""A column of more numbers than this counts as numbers with strays, too, as does one with a unit behind each; fewer may
be kinds, as 36 months and 60 months."""

SHOWN = 3
"""Strays that a message shows."""

UNIQUE, FEWEST_TEXTS = 0.5, 20
"""A column of more than `FEWEST` texts that differ in more than this share of the rows holds names, not kinds."""

SIGNS = "$€£¥%'\u00a0\u202f _"
"""The characters around or within numbers that were written for people."""

MONTH = r"(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?"
DATE = re.compile(
    r"\d{4}([-/.])\d{1,2}(\1\d{1,2})?([T ].*)?|\d{1,2}([/.-])\d{1,2}\4\d{2,4}([T ].*)?|\d{1,2}:\d{2}(:\d{2}.*)?"
    rf"|\d{{1,2}}\.?[ -]{MONTH}[ ,-]+\d{{2,4}}.*|{MONTH}[ -]?\d{{1,2}},? \d{{4}}.*|{MONTH}[ -]\d{{4}}",
    re.IGNORECASE,
)

WITH_UNIT = r"[+-]?\d[\d.,]*\s*([A-Za-zµ°%²³/]+)\.?"


def with_numbers(rows: "pd.DataFrame", features: list[str], path: Path, decimal: str) -> "pd.DataFrame":
    """The rows, with each input whose texts are all numbers as numbers.

    What pandas read as text for the sake of rows that were then dropped becomes numbers so. The index of `rows` counts
    the rows of the file from 0.

    Args:
        features: the inputs that may be numbers.
        decimal: the mark of decimals, `.` or `,`.

    Raises:
        UserError: a column holds numbers but for a few texts, numbers written for people, dates or names; says where
            and what to do.
    """
    import pandas as pd

    found: dict[str, pd.Series] = {}
    for name in features:
        column = rows[name]
        if column.dtype.kind in "mM":
            raise UserError(f"{path}: column {quoted(name)} holds dates. {_leave_out(name)}, or make it a number")
        there = column[column.notna()]
        if not (pd.api.types.is_object_dtype(column) or pd.api.types.is_string_dtype(column)) or there.empty:
            continue
        if there.map(lambda value: isinstance(value, bool)).any():
            continue
        plain = there.astype(str).str.strip()
        parsed = pd.to_numeric(with_points(plain, decimal), errors="coerce")
        if parsed.notna().all():
            found[name] = parsed.astype(np.float64).reindex(rows.index)
            continue
        _check(plain, parsed.notna().to_numpy(bool), name, path, decimal)
        found[name] = plain.reindex(rows.index)  # without the blanks around them
    return rows.assign(**found)


def with_points(texts: "pd.Series", decimal: str) -> "pd.Series":
    """Texts of numbers with a decimal point, see `table_format.plain_number`."""
    return texts if decimal == "." else texts.map(lambda text: plain_number(text.strip(), decimal), na_action="ignore")


def _check(texts: "pd.Series", is_number: "np.ndarray", name: str, path: Path, decimal: str) -> None:
    """Raise a UserError if texts, of which some are numbers, are most likely no kinds of something."""
    words = f"data.words: [{name}] if these are words that you want"
    if is_number.mean() >= MOSTLY or texts[is_number].nunique() > DISTINCT_NUMBERS:
        strays = texts[~is_number]
        shown = [
            f"{quoted(text)} ({label_files.place(path, row)})"
            for row, text in zip(strays.index.tolist()[:SHOWN], strays, strict=False)
        ]
        more = f" and {len(strays) - SHOWN} more" if len(strays) > SHOWN else ""
        marks = ", ".join(f'"{text}"' for text in sorted(set(strays))[:SHOWN])
        raise UserError(
            f"{path}: column {quoted(name)} holds numbers but for {', '.join(shown)}{more}. Mend them, or give "
            f"data.missing_marks: [{marks}] if they mean that the value is missing, or {words}"
        )
    if decimal == "," and (point := _first(texts, path, r"[+-]?\d[\d.]*")):
        raise UserError(
            f"{path}: column {quoted(name)} holds numbers with a point, as {point}, but data.decimal is a "
            f"comma. Write all numbers of the table in one way, or give {words}"
        )
    thousands = _first(texts, path, r"[+-]?\d{1,3}(,\d{3})+")
    if not thousands and (comma := _first(texts, path, r"[+-]?\d+[.,]\d+|[+-]?\d+")):
        raise UserError(
            f"{path}: column {quoted(name)} holds numbers with a decimal comma, as {comma}. Give "
            f'data.decimal: ",", or {words}'
        )
    if money := _first(texts, path, rf"[{re.escape(SIGNS)}]*[+-]?[{re.escape(SIGNS)}]*\d[\d.,{re.escape(SIGNS)}]*"):
        raise UserError(
            f"{path}: column {quoted(name)} holds numbers written for people, as {money}. Write them "
            f"without signs of money, per cent and thousands, or give {words}"
        )
    if date := _first(texts, path, DATE):
        remedy = f"{_leave_out(name)}, make it a number, or give {words}"
        raise UserError(f"{path}: column {quoted(name)} holds dates, as {date}. {remedy}")
    units = {found.group(1) for text in texts.unique() if (found := re.fullmatch(WITH_UNIT, text))}
    if (measured := _first(texts, path, WITH_UNIT)) and len(units) < DISTINCT_NUMBERS < texts.nunique():
        raise UserError(
            f"{path}: column {quoted(name)} holds numbers with a unit, as {measured}. Write the numbers "
            f"alone, all in one unit, or give {words}"
        )
    if (values := texts.nunique()) > max(FEWEST_TEXTS, UNIQUE * len(texts)):
        raise UserError(
            f"{path}: column {quoted(name)} has {values} different texts in {len(texts)} rows: names, not kinds, as "
            f"{quoted(texts.iloc[0])} ({label_files.place(path, texts.index[0])}). "
            f"{_leave_out(name)}, or give {words}"
        )


def _first(texts: "pd.Series", path: Path, pattern: str | re.Pattern[str]) -> str | None:
    """The first of the texts that are as a pattern says, with its place; None where these are not most of them."""
    found = texts.isin([text for text in texts.unique() if re.fullmatch(pattern, text)])
    if found.mean() < MOSTLY:
        return None
    row = int(found[found].index[0])
    return f"{quoted(texts.loc[row])} ({label_files.place(path, row)})"


def _leave_out(name: str) -> str:
    return f"Name the inputs in data.features, without {quoted(name)}"
