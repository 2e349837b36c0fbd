"""How a table is written: its separator, encoding and decimal mark, detected or given.

What is detected, where the study does not say it:

- the encoding: that of a byte order mark; UTF-16 where every second byte is NUL; UTF-8 where all of the file is; else
  Windows-1252, which has the letters of Latin-1 and what Excel adds to them;
- the separator: that of a first line `sep=;`; else the one of comma, semicolon, tab and | that cuts most of the first
  lines into as many cells as it cuts the header into, at least two;
- the decimal mark: a comma where, in the first rows, more columns of numbers need a comma (as 1,5) than a point (as
  1.5). 1,234 needs neither; without others it is a decimal where no comma separates the columns. A column all of whose
  numbers need the other mark is read with that one, as where a sheet has cells of numbers beside texts of numbers.
"""

import codecs
import csv
import io
import os
import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Literal

from typing_extensions import Doc

from study.errors import UserError
from study.knobs import Section
from study.text import list_few_names, quoted

PARQUET_SUFFIXES = (".parquet", ".pq")
SpreadsheetEngine = Literal["openpyxl", "xlrd", "odf"]
SPREADSHEET_ENGINES: Mapping[str, SpreadsheetEngine] = {
    ".xlsx": "openpyxl",
    ".xlsm": "openpyxl",
    ".xls": "xlrd",
    ".ods": "odf",
}
"""Endings of spreadsheets, and the engine with which pandas reads each."""

TABLE_SUFFIXES = (".csv", ".tsv", ".txt", *PARQUET_SUFFIXES, *SPREADSHEET_ENGINES)
"""Endings of tables that can be read, in capitals or not."""

COMPRESSED_SUFFIXES = (".gz", ".bz2", ".zip", ".xz", ".zst")
"""Endings of tables that pandas unpacks; their format is not detected."""

SEPARATOR_NAMES = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "signs |"}
"""Possible separators of columns, the likeliest first, with their names."""

SEPARATOR_DETECTION_LINES, DECIMAL_DETECTION_ROWS, DECODING_BLOCK_BYTES = 200, 20_000, 1 << 20
"""Lines by which the separator is detected, rows by which decimals are, and bytes decoded at a time."""

DecimalKey = Annotated[
    Literal[".", ","] | None, Doc("mark of decimals in a text table; null: found, as `study plan` says")
]
SeparatorKey = Annotated[
    Literal[",", ";", "\t", "|"] | None,
    Doc("sign between the columns of a text table: comma, semicolon, tab or |; null: found, as `study plan` says"),
]
TextEncodingKey = Annotated[
    str | None, Doc("encoding of a text table, as `utf-8`, `latin-1`, `utf-16`; null: found, as `study plan` says")
]


@dataclass(frozen=True)
class TableFormat:
    """How a table is written.

    Attributes:
        separator, encoding, decimal: None: to be detected.
        skipped_lines: lines before the header, as the `sep=;` of Excel.
    """

    separator: str | None = None
    encoding: str | None = None
    decimal: str | None = None
    skipped_lines: int = 0


UNKNOWN_FORMAT, PLAIN_CSV_FORMAT = TableFormat(), TableFormat(",", "utf-8", ".")
"""Format of a user's table, all of it to be detected, and of a published one."""


FORMAT_KEYS = ("separator", "encoding", "decimal")


def format_from_keys(section: Section) -> TableFormat:
    """Return the format as far as the keys of a `data` section give it.

    Raises:
        UserError: there is no such encoding.
    """
    separator, encoding, decimal = (
        str(value) if (value := section.get(key)) is not None else None for key in FORMAT_KEYS
    )
    try:
        known = encoding is None or codecs.lookup(encoding)._is_text_encoding
    except (LookupError, ValueError):
        known = False
    if not known:
        raise UserError(
            f"data.encoding: {quoted(str(encoding))} given, no encoding of texts. Usual: utf-8, latin-1, utf-16"
        )
    return TableFormat(separator, encoding, decimal)


def detect_format(path: Path, known: TableFormat = UNKNOWN_FORMAT) -> TableFormat:
    """Detect the format of a table, as far as it is not known.

    Raises:
        UserError: it is not a text table, or its encoding cannot be detected.
    """
    return _detect_format_cached(path, known, file_change_key(path))


def file_change_key(path: Path) -> tuple[int, ...]:
    """Return times, size and inode of a file, which tell whether it has changed."""
    of = os.stat(path)
    return of.st_mtime_ns, of.st_size, of.st_ino


@lru_cache(16)
def _detect_format_cached(path: Path, known: TableFormat, state: tuple[int, ...]) -> TableFormat:
    kind = path.suffix.lower()
    if kind in PARQUET_SUFFIXES or kind in COMPRESSED_SUFFIXES:
        return replace(PLAIN_CSV_FORMAT, **{key: value for key, value in vars(known).items() if value})
    if is_spreadsheet(path):
        form = replace(PLAIN_CSV_FORMAT, decimal=known.decimal)
    else:
        encoding = known.encoding or _detect_encoding(path)
        separator, skipped = _detect_separator(path, encoding, known.separator)
        form = TableFormat(separator, encoding, known.decimal, skipped)
    return form if form.decimal else replace(form, decimal=_detect_decimal(path, form))


def describe_format(path: Path, known: TableFormat = UNKNOWN_FORMAT) -> list[str]:
    """Describe how a table is read, unless it is a CSV with commas and decimal points in UTF-8.

    One line warns of points that may stand between thousands.
    """
    if path.suffix.lower() in PARQUET_SUFFIXES:
        return []
    form = detect_format(path, known)
    parts = []
    if is_spreadsheet(path) and len(names := read_first_sheet(path)[1]) > 1:
        parts.append(f"sheet {quoted(names[0])}, the first of {len(names)} (the others are not read)")
    if form.separator not in (None, ","):
        parts.append(f"columns separated by {SEPARATOR_NAMES[str(form.separator)]} (data.separator)")
    if form.decimal == ",":
        parts.append("decimal commas (data.decimal)")
    others = [name for name, mark in decimal_marks_by_column(path, known).items() if mark != form.decimal]
    if others:
        parts.append(f"decimal {'points' if form.decimal == ',' else 'commas'} in {list_few_names(others)}")
    if str(form.encoding).lower().replace("_", "-") not in ("utf-8", "utf-8-sig", "utf8"):
        example = _first_non_ascii_word(path, form)
        parts.append(f"encoding {form.encoding}{example} (data.encoding)")
    lines = [f"read as: {', '.join(parts)}"] if parts else []
    is_found = known.decimal is None and form.separator != "," and form.decimal == "."
    if is_found and (number := _ambiguous_thousands_number(path, form)):
        between = f"{number} is between {number[:-4]} and {int(number[:-4]) + 1}"
        lines.append(f'numbers with a point: {between}. If it stands between thousands: data.decimal: ","')
    return lines


def is_spreadsheet(path: Path) -> bool:
    """Tell whether a table is a spreadsheet, by its ending."""
    return path.suffix.lower() in SPREADSHEET_ENGINES


def open_table(path: Path, form: TableFormat) -> io.TextIOBase:
    """Open a table as text: a spreadsheet as its first sheet saved as CSV."""
    if is_spreadsheet(path):
        return io.StringIO(read_first_sheet(path)[0])
    return path.open(encoding="utf-8-sig" if form.encoding == "utf-8" else form.encoding, newline="")


def undecodable_line(path: Path, encoding: str) -> str:
    """Name the first line of a file that is not in an encoding, for a message; empty if all are."""
    decoder = codecs.getincrementaldecoder(encoding)()
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            try:
                decoder.decode(line)
            except UnicodeDecodeError:
                return f", see line {number}"
    return ""


def _first_non_ascii_word(path: Path, form: TableFormat) -> str:
    """Show the first word of a table that is not in ASCII, so that a wrong encoding is seen."""
    with open_table(path, form) as file:
        for number, line in enumerate(file, 1):
            if words := [word for word in re.split(r"[\s,;|\"]+", line) if not word.isascii()]:
                return f", as {quoted(words[0])} in line {number}"
    return ""


def _detect_encoding(path: Path) -> str:
    with path.open("rb") as file:
        start = file.read(DECODING_BLOCK_BYTES)
        if start[:4] in (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE):
            return "utf-32"
        if start[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
            return "utf-16"
        if start[:4] == b"PK\3\4" or start[:8] == b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1":
            raise UserError(f"{path}: is a spreadsheet or an archive by its content. Give it its own ending, as .xlsx")
        if b"\0" in start:
            even, odd = (start[place::2].count(0) / max(1, len(start) // 2) for place in (0, 1))
            if max(even, odd) > 0.4 and min(even, odd) < 0.1:
                return "utf-16-le" if odd > even else "utf-16-be"
            raise UserError(f"{path}: not readable as a table: it has bytes that are no text")
        for encoding in ("utf-8", "cp1252"):
            file.seek(0)
            if _is_decodable(file, encoding):
                return encoding
    raise UserError(
        f"{path}: is not in UTF-8{undecodable_line(path, 'utf-8')}, nor in Windows-1252 or UTF-16. Save it as UTF-8, "
        "or give data.encoding"
    )


def _is_decodable(file: io.BufferedReader, encoding: str) -> bool:
    decoder = codecs.getincrementaldecoder(encoding)()
    try:
        while block := file.read(DECODING_BLOCK_BYTES):
            decoder.decode(block)
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


SEPARATOR_LINE_PATTERN = re.compile(r"\"?sep=([,;\t|])\"?\s*", re.IGNORECASE)

NUMBER_PATTERN = re.compile(r"[+-]?[\d.,]*\d[\d.,]*(?:[eE][+-]?\d+)?")


def _detect_separator(path: Path, encoding: str, known: str | None) -> tuple[str, int]:
    """Return the separator of a file, and how many lines are before its header."""
    try:
        with open_table(path, TableFormat(encoding=encoding)) as file:
            lines = list(islice((line for line in file if line.strip()), SEPARATOR_DETECTION_LINES))
    except UnicodeError:
        return known or ",", 0  # told when it is read
    declared = SEPARATOR_LINE_PATTERN.fullmatch(lines[0]) if lines else None
    if known or declared:
        return known or str(declared and declared.group(1)), int(declared is not None)
    fits = {separator: _rate_separator(lines, separator) for separator in SEPARATOR_NAMES}
    best = max(fits, key=lambda separator: fits[separator])  # the first of equal ones
    return best if fits[best] else ",", 0


def _rate_separator(lines: Sequence[str], separator: str) -> tuple[float, ...]:
    """Rate how well a separator cuts these lines, larger is better; empty where the header has less than two cells.

    First the share of records with as many cells as the header, then that of their cells that are numbers, then the
    cells of the header.
    """
    records = list(_csv_records(lines, separator))
    records = records[:-1] if len(records) > 2 else records  # the last one may be cut in the middle of a quoted cell
    if not records or len(records[0]) < 2:
        return ()
    width = len(records[0])
    alike = [record for record in records[1:] if len(record) == width]
    cells = [cell.strip() for record in alike for cell in record]
    numbers = sum(1 for cell in cells if NUMBER_PATTERN.fullmatch(cell))
    return len(alike) / max(1, len(records) - 1), numbers / max(1, len(cells)), width


def _csv_records(lines: Iterable[str], separator: str) -> Iterable[list[str]]:
    try:
        yield from csv.reader(lines, delimiter=separator)
    except csv.Error:  # of a cell of over 131,072 letters
        return


THOUSANDS_SPACES = " \u00a0\u202f"
"""Spaces that may stand between thousands beside a decimal comma, as a point does."""

SPACED_NUMBER_PATTERN = re.compile(rf"[+-]?[\d.,{THOUSANDS_SPACES}]*\d[\d.,]*(?:[eE][+-]?\d+)?")
AMBIGUOUS_COMMA_PATTERN = re.compile(r"[+-]?\d{1,3},\d{3}")
AMBIGUOUS_POINT_PATTERN = re.compile(r"[1-9]\d{0,2}\.\d{3}")
THOUSANDS_PATTERN = re.compile(rf"[+-]?\d{{1,3}}(?:[.{THOUSANDS_SPACES}]\d{{3}})+(?:,\d*)?")
MOSTLY_NUMBERS_SHARE = 0.5
"""Share of a column's texts from which on it counts as numbers, or dates, with strays among them."""


def _decimal_mark_pattern(mark: str, other: str) -> re.Pattern[str]:
    """Build the pattern of texts that are numbers only if `mark` marks decimals and `other` separates thousands."""
    one, two = re.escape(mark), re.escape(other)
    decimals = rf"\d+{one}(?:\d{{1,2}}|\d{{4,}})|0+{one}\d+|\d{{4,}}{one}\d+|{one}\d+"
    thousands = rf"\d{{1,3}}(?:[{two}{THOUSANDS_SPACES}]\d{{3}})+{one}\d+|\d{{1,3}}(?:{two}\d{{3}}){{2,}}"
    return re.compile(rf"[+-]?(?:{decimals}|{thousands})(?:[eE][+-]?\d+)?")


DECIMAL_MARK_PATTERNS = {",": _decimal_mark_pattern(",", "."), ".": _decimal_mark_pattern(".", ",")}


def _detect_decimal(path: Path, form: TableFormat) -> str:
    """Detect the decimal mark of a table, whose format is otherwise known."""
    try:
        if not _may_have_decimal_commas(path, form):
            return "."
        columns = _number_texts_by_column(path, form).values()
    except (ValueError, OSError):  # told when it is read
        return "."
    votes, either = {",": 0, ".": 0}, False
    for numbers in columns:
        either |= any(map(AMBIGUOUS_COMMA_PATTERN.fullmatch, numbers))
        for mark, needs in DECIMAL_MARK_PATTERNS.items():
            votes[mark] += any(map(needs.fullmatch, numbers))
    return "," if votes[","] > votes["."] or (not any(votes.values()) and either and form.separator != ",") else "."


def _ambiguous_thousands_number(path: Path, form: TableFormat) -> str | None:
    """Return a number whose point may separate thousands; None where another number shows that points mark decimals."""
    try:
        numbers = [number for column in _number_texts_by_column(path, form).values() for number in column]
    except (ValueError, OSError):
        return None
    doubtful = next(filter(AMBIGUOUS_POINT_PATTERN.fullmatch, numbers), None)
    return None if any(map(DECIMAL_MARK_PATTERNS["."].fullmatch, numbers)) else doubtful


def decimal_mark_of(numbers: Iterable[str]) -> str | None:
    """Return the decimal mark that these texts of numbers need; None: neither, both, or one is no number."""
    needed = set[str]()
    for number in numbers:
        if not SPACED_NUMBER_PATTERN.fullmatch(number):
            return None
        needed |= {mark for mark, needs in DECIMAL_MARK_PATTERNS.items() if needs.fullmatch(number)}
    return needed.pop() if len(needed) == 1 else None


def decimal_marks_by_column(path: Path, known: TableFormat = UNKNOWN_FORMAT) -> Mapping[str, str]:
    """Return the decimal mark of each column of a text table whose numbers need one; empty where all have points."""
    if path.suffix.lower() in PARQUET_SUFFIXES:
        return {}
    form = detect_format(path, known)
    marks = _decimal_marks_cached(path, form, file_change_key(path))
    return marks if "," in (form.decimal, *marks.values()) else {}


@lru_cache(4)
def _decimal_marks_cached(path: Path, form: TableFormat, state: tuple[int, ...]) -> Mapping[str, str]:
    try:
        if form.decimal != "," and not _may_have_decimal_commas(path, form):
            return {}
        marks = {name: decimal_mark_of(numbers) for name, numbers in _number_texts_by_column(path, form).items()}
    except (ValueError, OSError):  # told when it is read
        return {}
    return {name: mark for name, mark in marks.items() if mark is not None}


def _may_have_decimal_commas(path: Path, form: TableFormat) -> bool:
    """Tell whether some cell of a table may hold a number with a comma."""
    sign = re.compile(r'"[^"]*,\d' if form.separator == "," else r",\d")
    with open_table(path, form) as file:
        return any(sign.search(line) for line in file)


def _number_texts_by_column(path: Path, form: TableFormat) -> dict[str, list[str]]:
    """Return the different numbers, as texts, of each column that has mostly numbers, by its name."""
    import pandas as pd

    rows: dict[str, Any] = {"sep": form.separator, "skiprows": form.skipped_lines, "nrows": DECIMAL_DETECTION_ROWS}
    with open_table(path, form) as file:
        frame: pd.DataFrame = pd.read_csv(file, dtype=str, keep_default_na=False, low_memory=False, **rows)
    found = {}
    for name, column in frame.items():
        plain = [text for cell in column.dropna().unique() if (text := cell.strip())]
        numbers = [text for text in plain if SPACED_NUMBER_PATTERN.fullmatch(text)]
        if len(numbers) >= MOSTLY_NUMBERS_SHARE * len(plain):
            found[str(name)] = numbers
    return found


def to_plain_number(text: str, decimal: str) -> str:
    """Rewrite the text of a number with a decimal point and nothing between thousands.

    Beside a decimal comma, a point that does not separate thousands is an error: such a text is no number.
    """
    if decimal == ".":
        return text
    if THOUSANDS_PATTERN.fullmatch(text):
        text = re.sub(rf"[.{THOUSANDS_SPACES}]", "", text)
    return text.translate({ord("."): "?", ord(","): "."})


def read_first_sheet(path: Path) -> tuple[str, tuple[str, ...]]:
    """Read the first sheet of a spreadsheet as CSV, and the names of all sheets.

    An empty row is an empty line, so that rows keep their numbers.

    Raises:
        UserError: the package that pandas reads it with is not there, or it is damaged.
    """
    return _read_first_sheet_cached(path, file_change_key(path))


@lru_cache(2)
def _read_first_sheet_cached(path: Path, state: tuple[int, ...]) -> tuple[str, tuple[str, ...]]:
    import pandas as pd

    engine = SPREADSHEET_ENGINES[path.suffix.lower()]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of styles and forms that it does not know
            with pd.ExcelFile(path, engine=engine) as book:
                names = tuple(map(str, book.sheet_names))
                cells = book.parse(0, header=None, dtype=object, keep_default_na=False, na_filter=False)
    except ImportError:
        package = {"odf": "odfpy"}.get(engine, engine)
        raise UserError(
            f"{path}: this kind of spreadsheet is read by the package {package}: pip install {package} (of .xlsx: uv "
            "sync --extra excel). Or save its sheet as CSV"
        ) from None
    except Exception as error:  # whatever the package stumbles over: a password, a damaged archive
        raise UserError(f"{path}: not readable as a spreadsheet: {' '.join(str(error).split())[:200]}") from None
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for row in cells.itertuples(index=False):
        texts = ["" if cell is None else str(cell) for cell in row]
        text.write("\n") if not any(texts) else writer.writerow(texts)
    return text.getvalue(), names
