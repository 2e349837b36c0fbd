"""Columns of a user's table as inputs: fitted to the training rows, then the same for every row that comes after them.

Numbers are standardised, everything else is one-hot.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from study.data import stray_texts
from study.data.label_files import LARGEST
from study.errors import UserError
from study.text import quoted, some

if TYPE_CHECKING:
    import pandas as pd

# Names of the columns in a user's table as they are in the file: pandas would rename those that are there twice.

NAMELESS = re.compile(r"\s*|Unnamed: \d+")
"""A column without a name, in the file or as pandas has written it."""


def check(header: Sequence[str], used: Sequence[str], path: Path) -> None:
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
"""What a text that is missing counts as, where missing values are filled."""

TRUTHS = {"True", "False"}
"""What yes and no are as texts: a file may have them in other letters."""


@dataclass(frozen=True)
class Column:
    """How a column becomes inputs.

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
        """How many inputs it becomes."""
        return 1 if self.values is None else len(self.values)

    @property
    def is_truth(self) -> bool:
        """Whether its texts are yes and no."""
        return self.values is not None and {*self.values} - {MISSING} <= TRUTHS

    def encoded(self, column: "pd.Series", decimal: str = ".") -> tuple[NDArray[np.float32], dict[int, str]]:
        """A column (N,) as inputs (N, `width`), and by row, from 0 on, what is wrong with a cell; its inputs are 0.

        Args:
            decimal: mark of decimals in texts.
        """
        return self._numbers(column, decimal) if self.values is None else self._one_hot(column, self.values)

    def _numbers(self, column: "pd.Series", decimal: str) -> tuple[NDArray[np.float32], dict[int, str]]:
        import pandas as pd

        given = column.astype(str) if column.dtype.kind in "mM" else column  # a moment is no number
        if decimal != "." and (is_text := given.map(lambda value: isinstance(value, str))).any():
            given = given.where(~is_text, stray_texts.with_points(given.astype(str), decimal))
        parsed = pd.to_numeric(given, errors="coerce").to_numpy(np.float64, na_value=np.nan)
        empty = column.isna().to_numpy(bool) | np.isinf(parsed)
        values = np.where(empty, self.mean if self.fills else np.nan, parsed)
        with np.errstate(over="ignore"):
            scaled = (values - self.mean) / self.deviation
        problems = {}
        for row in np.flatnonzero(~(np.abs(scaled) <= LARGEST)):
            cell = quoted(str(column.iloc[row]))
            if not np.isnan(scaled[row]):
                far = f"more than {LARGEST:.1e} deviations of the training rows away from their mean"
                problems[int(row)] = f"{cell} is {far}"
            else:
                problems[int(row)] = "is empty, a number is needed" if empty[row] else f"{cell} is no number"
        scaled[[*problems]] = 0.0
        return scaled[:, None].astype(np.float32), problems

    def _one_hot(self, column: "pd.Series", values: Sequence[str]) -> tuple[NDArray[np.float32], dict[int, str]]:
        cells = zip(column, column.isna(), strict=True)
        texts = np.array([MISSING if absent else self._text(value) for value, absent in cells], object)
        inputs = np.stack([texts == value for value in values], 1).astype(np.float32)
        problems = {}
        for row in np.flatnonzero(inputs.sum(1) == 0):
            cell = "is empty" if texts[row] == MISSING else f"{quoted(texts[row])} was in no row of the training table"
            problems[int(row)] = f"{cell}; allowed: {some(values)}"
        return inputs, problems

    def _text(self, value: Any) -> str:
        text = str(value) if self.values and str(value) in self.values else str(value).strip()
        return text.capitalize() if self.is_truth and text.capitalize() in TRUTHS else text


Encoding = tuple[Column, ...]
"""The columns of a table that are inputs, in the order of the inputs."""


def fitted(column: "pd.Series", train: NDArray[np.int64], fills: bool) -> Column:
    """How a column becomes inputs, from its training rows; the texts are those of all rows, ordered.

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
    """How many inputs a row has."""
    return sum(column.width for column in encoding)


def rows(
    frame: "pd.DataFrame", encoding: Encoding, decimal: str = "."
) -> tuple[NDArray[np.float32], Mapping[int, str]]:
    """A table's rows as inputs (N, F), and by row, from 0 on, what is wrong with its cells; such inputs mean nothing.

    Args:
        decimal: mark of decimals in texts.

    Raises:
        KeyError: a column is not there.
    """
    parts, problems = [], dict[int, list[str]]()
    for column in encoding:
        part, wrong = column.encoded(frame[column.name], decimal)
        parts.append(part)
        for row, problem in wrong.items():
            problems.setdefault(row, []).append(f"column {quoted(column.name)}: {problem}")
    return np.concatenate(parts, 1), {row: "; ".join(problems[row]) for row in sorted(problems)}


def encoded(frame: "pd.DataFrame", encoding: Encoding, place: str) -> NDArray[np.float32]:
    """The rows of a table that must all be sound, (N, F).

    Args:
        place: the file, for the message.

    Raises:
        UserError: a cell cannot be an input; says in which row, counted from 1 without the header.
    """
    inputs, problems = rows(frame, encoding)
    if problems:
        row = next(iter(problems))
        more = f" {len(problems) - 1} more rows have such cells." if len(problems) > 1 else ""
        raise UserError(f"{place}: row {row + 1}: {problems[row]}.{more} Is it a table of the same kind?")
    return inputs


def texts(encoding: Encoding) -> dict[str, type[str]]:
    """The columns to be read as text: `dtype` of `pandas.read_csv`."""
    return {column.name: str for column in encoding if column.values is not None}


def is_number(column: "pd.Series") -> bool:
    """Whether a column of the training table counts as numbers."""
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
