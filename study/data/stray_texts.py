"""Columns of a user's table that are not what pandas takes them for: numbers with a few other texts among them, numbers
as a spreadsheet shows them, dates, and names."""

import re
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from study.data import label_files
from study.errors import UserError
from study.text import quoted

if TYPE_CHECKING:
    import pandas as pd

MOSTLY = 0.5
"""Share of a column's texts from which on it counts as numbers, or dates, with strays among them."""

DISTINCT = 10
"""A column of more numbers than this counts as numbers with strays, too, as does one with a unit behind each; fewer may
be kinds, as 36 months and 60 months."""

SHOWN = 3
"""Strays that a message shows."""

UNIQUE, FEWEST = 0.5, 20
"""A column of more than `FEWEST` texts that differ in more than this share of the rows holds names, not kinds."""

SIGNS = "$€£¥%'\u00a0\u202f _"
"""What stands around or within numbers that were written for people."""

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
    """Texts of numbers with a decimal point. Beside a decimal comma a point stands for thousands, or is a slip: such a
    text is no number."""
    return texts if decimal == "." else texts.str.translate({ord("."): "?", ord(","): "."})


def _check(texts: "pd.Series", is_number: "np.ndarray", name: str, path: Path, decimal: str) -> None:
    """Raise a UserError if texts, of which some are numbers, are most likely no kinds of something."""
    words = f"data.words: [{name}] if these are words that you want"
    if is_number.mean() >= MOSTLY or texts[is_number].nunique() > DISTINCT:
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
    if (measured := _first(texts, path, WITH_UNIT)) and len(units) < DISTINCT < texts.nunique():
        raise UserError(
            f"{path}: column {quoted(name)} holds numbers with a unit, as {measured}. Write the numbers "
            f"alone, all in one unit, or give {words}"
        )
    if (values := texts.nunique()) > max(FEWEST, UNIQUE * len(texts)):
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
