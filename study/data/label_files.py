"""Read labels from tables: columns by name, values checked; messages name file, column and row."""

import csv
import io
import os
import re
import unicodedata
from collections.abc import Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from decimal import Decimal
from functools import lru_cache
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from study.data import table_format
from study.data.source import data_root
from study.data.table_format import PLAIN_CSV_FORMAT, TABLE_SUFFIXES, UNKNOWN_FORMAT, TableFormat, to_plain_number
from study.errors import UserError, closest_spellings, did_you_mean, did_you_mean_path
from study.knobs import Section, text_list
from study.text import list_few_names, quoted, unescape_formula

if TYPE_CHECKING:
    import pandas as pd


SPLIT_ALIASES = {"training": "train", "valid": "val", "validation": "val", "dev": "val", "testing": "test"} | {
    name: name for name in ("train", "val", "test")
}
"""Names that a split may have in the user's files, and the split that each means."""

SPLIT_NUMBERS = {"0": "train", "1": "val", "2": "test"}
"""Numbers of splits where a column holds nothing else, as the table of Waterbirds."""

SPLIT_COLUMN_NAMES = ("split", "partition", "subset", "set")
"""Names of a column of splits, in capitals or not."""


def parse_split_names(values: Sequence[str]) -> list[str]:
    """Translate each value to train, val or test; empty for one that names no split."""
    texts = [str(value).strip().lower() for value in values]
    words: Mapping[str, str] = SPLIT_NUMBERS if "0" in texts and {*texts} <= {*SPLIT_NUMBERS} else SPLIT_ALIASES
    return [words.get(text, "") for text in texts]


def is_split_column(name: str, values: Iterable[object]) -> bool:
    """Tell whether a column is named as one of splits and holds only names of splits, train and at least one other."""
    if name.strip().lower() not in SPLIT_COLUMN_NAMES:
        return False
    found = {*parse_split_names([str(value) for value in {*values}])}
    return "" not in found and "train" in found and len(found) > 1


HIDDEN_FOLDERS = {"__MACOSX"}
"""Folders that programs leave beside pictures; those whose names begin with a dot are hidden anyway."""


def is_hidden_path(name: str | PurePath) -> bool:
    """Tell whether a file's name, or a path relative to the folder that is looked at, has a hidden part."""
    parts = name.split("/") if isinstance(name, str) else name.parts
    return any(part in HIDDEN_FOLDERS or (part.startswith(".") and part not in (".", "..")) for part in parts)


def list_visible_files(folder: Path) -> list[Path]:
    """List what is at any depth under a folder and not hidden, by name; the folder's own name may be anything.

    Links to folders are not followed: much may be behind them.
    """
    return sorted(path for path in folder.rglob("*") if not is_hidden_path(path.relative_to(folder)))


def path_as_spelled_on_disk(folder: Path, name: str) -> Path:
    """Find the file that a list names in a folder, even if its name is stored in another encoding of the same letters.

    A letter with an accent may be composed (NFC) in the list and decomposed (NFD) on disk, or the disk may have it in
    Latin-1. A file of exactly this name comes first. If no spelling exists, the path has the name as it is listed.
    """
    path = folder / name
    if name.isascii() or os.path.exists(path):
        return path
    found = folder
    for part in PurePath(name).parts:  # each may be spelled in its own way
        composed = unicodedata.normalize("NFC", part)
        forms = (part, composed, unicodedata.normalize("NFD", part), _as_windows_1252(composed))
        there = next((found / form for form in forms if os.path.exists(found / form)), None)
        if there is None:
            return path
        found = there
    return found


def _as_windows_1252(name: str) -> str:
    """Return a name as Python reads it from a disk that has it in Windows-1252, as from an archive packed there."""
    try:
        return os.fsdecode(name.encode("cp1252"))
    except UnicodeEncodeError:
        return name


MAX_EXACT_FLOAT_INTEGER = 2.0**53
"""Limit from which on floats cannot represent every whole number."""

MISSING_MARKS = ("", "NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "NULL", "null", "None")
"""Texts that stand for a missing value in a table."""

INSIDE_FOLDER_HINT = "allowed is a relative path without '..' or NUL; a link in the folder may lead elsewhere"
"""End of a message about a name that `is_outside_folder`."""

FLOAT32_MAX = float(np.finfo(np.float32).max)
"""Largest number in single precision."""


def find_user_path(path_text: str, note: str = "") -> Path:
    """Find a user's path: absolute, or under the current folder, or under the folder of all data sets.

    Any path that the user can read is allowed: it is written in the study file, where whoever runs it sees it. Names
    listed inside of such files are restricted, see `is_outside_folder`.

    Args:
        note: where to get the file and in which form, in a sentence.

    Raises:
        UserError: there is no such path.
    """
    path = find_user_path_or_none(path_text)
    if path is None:
        candidates = _candidate_paths(path_text)
        near = next(filter(None, map(did_you_mean_path, candidates)), "")
        looked = f"Looked for {' and '.join(map(str, candidates))}. "
        raise UserError(f"{path_text}: not found. {near}{looked}{note}".rstrip())
    return path


def find_user_path_or_none(path_text: str) -> Path | None:
    """Find a user's path as `find_user_path` does; return None if there is no such path."""
    places = (
        path_as_spelled_on_disk(Path(place.anchor), str(place.relative_to(place.anchor)))
        for place in _candidate_paths(path_text)
    )
    return next((place for place in places if os.path.exists(place)), None)


def _candidate_paths(path_text: str) -> list[Path]:
    path = Path(os.path.expanduser(path_text))
    return [path] if path.is_absolute() else [Path.cwd() / path, data_root() / path]


def is_outside_folder(name: str) -> bool:
    """Tell whether a name from a list of files may lead out of the folder that it belongs to, or is no file name.

    A link in the folder may lead anywhere: it was made on this machine, a list may come from elsewhere.
    """
    path = PurePath(name)
    return not path.parts or path.is_absolute() or ".." in path.parts or "\0" in name


def check_file_names(names: Iterable[str], path: Path, column: str) -> None:
    """Raise a UserError if a column names a hidden file or one outside the folder; rows count from 1."""
    for row, name in enumerate(names, 1):
        if is_outside_folder(name):
            raise UserError(f"{path}: column {column!r}, row {row}: {quoted(name)} given, {INSIDE_FOLDER_HINT}")
        if is_hidden_path(name):
            problem = "given, a hidden file or folder, which never holds pictures. Take the row out, or rename it"
            raise UserError(f"{path}: column {column!r}, row {row}: {quoted(name)} {problem}")


def read_table_as_text(
    path: Path, columns: Sequence[str] = (), known: TableFormat = PLAIN_CSV_FORMAT, **options: Any
) -> "pd.DataFrame":
    """Read a table as text, '' where a value is missing.

    Args:
        path: a CSV, or by its ending a Parquet file or a spreadsheet.
        columns: that it must have; empty: whichever it has.
        known: what is known of its format.
        options: of `pandas.read_csv`.

    Raises:
        UserError: not there, not readable, empty, or without one of the columns.
    """
    frame = read_typed_table(path, known, dtype=str, keep_default_na=False, **options)
    check_columns_exist(frame.columns, columns, path)
    return frame.astype(object).where(frame.notna(), "").astype(str) if is_parquet(path) else frame.fillna("")


def read_label_table(
    path: Path, columns: Sequence[str] = (), marks: Sequence[str] = (), known: TableFormat = UNKNOWN_FORMAT
) -> "pd.DataFrame":
    """Read a table by `read_table_as_text`, with '' also where one of `MISSING_MARKS` or of `marks` stands."""
    return blank_missing_marks(read_table_as_text(path, columns, known), marks).fillna("")


def read_user_table(path: Path, section: Section, dtype: Mapping[str, type] | None = None) -> "pd.DataFrame":
    """Read a user's table as `read_typed_table` does; values are missing also where `missing_marks` or a blank cell
    says so.

    Args:
        section: the keys of its `data` section.
        dtype: of `pandas.read_csv`, the columns to be read as text.
    """
    marks = text_list(section, "missing_marks")
    rows = read_typed_table(path, table_format.format_from_keys(section), na_values=marks, dtype=dict(dtype or {}))
    return blank_missing_marks(rows, marks)


def read_typed_table(path: Path, known: TableFormat = UNKNOWN_FORMAT, **options: Any) -> "pd.DataFrame":
    """Read a table with the types that pandas gives its columns; raises as `read_table_as_text`."""
    import pandas as pd

    frame = _read_data_frame(path, known, **options)
    if not is_parquet(path) and "index_col" not in options and not isinstance(frame.index, pd.RangeIndex):
        problem = "its rows have more values than its header has names"
        raise UserError(f"{path}: not readable as a table: {problem}. Name every column")
    if frame.empty:
        raise UserError(f"{path}: has no rows")
    frame = frame.set_axis(frame.columns.map(str), axis=1)
    if is_parquet(path) or options.get("dtype") is str:
        return frame
    decimal, as_texts = table_format.detect_format(path, known).decimal, options.get("dtype") or {}
    own = {name: _parse_other_decimal_mark(frame[name], decimal) for name in frame.columns.difference([*as_texts])}
    return frame.assign(**{name: column for name, column in own.items() if column is not None})


def _parse_other_decimal_mark(column: "pd.Series", decimal: str | None) -> "pd.Series | None":
    """Return a column of texts as numbers if all of them need the other decimal mark than the table's; else None."""
    import pandas as pd

    if pd.api.types.is_numeric_dtype(column) or not all(isinstance(cell, str) for cell in column.dropna()):
        return None
    texts = column.str.strip()
    mark = table_format.decimal_mark_of(texts.dropna().unique())
    if mark in (None, decimal):
        return None
    numbers = pd.to_numeric(
        texts.map(lambda text: to_plain_number(text, str(mark)), na_action="ignore"), errors="coerce"
    )
    return numbers if numbers.count() == column.count() else None


def read_column_names(path: Path, known: TableFormat = UNKNOWN_FORMAT) -> list[str]:
    """Read the names of a table's columns as `read_typed_table` gives them; raises as `read_table_as_text`."""
    return [str(name) for name in _read_data_frame(path, known, nrows=0).columns]


def column_as_text(column: "pd.Series") -> "pd.Series":
    """Convert a column to text without blanks around it; missing values stay missing.

    Whole numbers of a Parquet file are written without decimals, whatever type they are stored in.
    """
    import pandas as pd

    numbers = column.dropna()
    if column.dtype.kind == "f" and (numbers % 1 == 0).all() and (numbers.abs() < MAX_EXACT_FLOAT_INTEGER).all():
        column = column.astype("Int64")
    elif not isinstance(column.dtype, pd.StringDtype) and len(numbers) and numbers.map(_is_whole_decimal).all():
        column = column.map(int, na_action="ignore").astype(object)
    texts = column.astype(object)
    return texts.where(texts.isna(), texts.astype(str).str.strip()).where(lambda text: text.notna(), None)


def _is_whole_decimal(value: Hashable) -> bool:
    return isinstance(value, Decimal) and value == value // 1


def blank_missing_marks(rows: "pd.DataFrame", marks: Sequence[str]) -> "pd.DataFrame":
    """Make each cell missing whose text, without blanks around it, is one of `MISSING_MARKS` or of `marks`.

    A number, as a Parquet file has them, is missing where a mark is that number.
    """
    import pandas as pd

    missing = {*MISSING_MARKS, *(mark.strip() for mark in marks)}
    numbers = pd.to_numeric(pd.Series([*missing], dtype=object), errors="coerce").dropna().tolist()
    absent = dict[str, pd.Series]()
    for name, column in rows.items():
        if pd.api.types.is_object_dtype(column) or column.dtype == "string":
            absent[str(name)] = column.astype(str).str.strip().isin(missing)
        elif numbers and pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column):
            absent[str(name)] = column.isin(numbers)
    return rows.assign(**{name: rows[name].mask(cells) for name, cells in absent.items() if cells.any()})


def read_header(path: Path, known: TableFormat = UNKNOWN_FORMAT) -> list[str]:
    """Read the names of a table's columns as they are in the file.

    pandas renames those of a CSV that are there twice or have no name.
    """
    if is_parquet(path):
        return read_column_names(path, known)
    first = _read_data_frame(path, known, header=None, nrows=1, dtype=str, keep_default_na=False)
    return [str(name) for name in first.iloc[0]]


def _read_data_frame(path: Path, known: TableFormat, **options: Any) -> "pd.DataFrame":
    import pandas as pd

    if not os.path.isfile(path):
        raise UserError(f"{path}: not found. {did_you_mean_path(path, TABLE_SUFFIXES)}".rstrip(". "))
    form = table_format.detect_format(path, known)
    try:
        if is_parquet(path):
            return _read_parquet(path, options.get("nrows"))
        source = io.StringIO(table_format.read_first_sheet(path)[0]) if table_format.is_spreadsheet(path) else path
        written = {"sep": form.separator, "decimal": form.decimal, "encoding": form.encoding}
        # low memory would mean a type for each part of a column: 1 and 1.0, two texts of one cell
        reading: dict[str, Any] = {**written, "skiprows": form.skipped_lines, "low_memory": False, **options}
        frame: pd.DataFrame = pd.read_csv(source, **reading)
        if source is path and "nrows" not in options and (count := _count_rows_to_last_filled(frame)) < len(frame):
            frame = pd.read_csv(path, **reading, nrows=count)  # of other types, perhaps: of whole numbers
        return frame
    except UnicodeError:
        where = table_format.undecodable_line(path, str(form.encoding))
        raise UserError(f"{path}: is not in {form.encoding}{where}. Save it as UTF-8, or give data.encoding") from None
    except (ValueError, OSError) as error:  # pandas and pyarrow raise subclasses of these
        reason = " ".join(str(error).split())[:200]
        raise UserError(f"{path}: not readable as a table: {reason}. Is it cut short?") from None


def _count_rows_to_last_filled(frame: "pd.DataFrame") -> int:
    """Count the rows down to the last one with a value: Excel may write rows of separators alone behind it."""

    def is_filled(rows: "pd.DataFrame") -> "NDArray[np.bool_]":
        return (rows.notna() & ~rows.isin(MISSING_MARKS)).any(axis=1).to_numpy(bool)

    return len(frame) if is_filled(frame.tail(1)).any() else int(np.flatnonzero(is_filled(frame)).max(initial=-1)) + 1


def _read_parquet(path: Path, rows: int | None) -> "pd.DataFrame":
    """Read a Parquet file, lists and mappings in it as text; of no rows: its columns alone, which takes no time.

    Levels of pandas' index that have a name are its first columns; others only number the rows.
    """
    import pandas as pd
    import pyarrow.parquet  # type: ignore[import-untyped]

    with pyarrow.parquet.ParquetFile(path) as file:
        schema, count = file.schema_arrow, file.metadata.num_rows
    noted = schema.pandas_metadata or {}
    levels = noted.get("index_columns", [])  # of what pandas wrote; another program may have left out columns or rows
    counters = {one["name"]: range(one["start"], one["stop"], one["step"]) for one in levels if isinstance(one, dict)}
    names = [name for name, numbers in counters.items() if len(numbers) == count]  # these are not stored
    names += [name for name in levels if isinstance(name, str) and name in schema.names]
    frame = schema.empty_table().to_pandas() if rows == 0 else pd.read_parquet(path)
    named = [name for name in names if name not in (None, *frame) and not str(name).startswith("__index_level_")]
    if rows == 0:
        return frame.reset_index(drop=True).reindex(columns=[*named, *frame])
    frame = frame.reset_index(named) if named else frame
    frame = frame.reset_index(drop=True)
    for column in noted.get("columns", []):
        if column["pandas_type"] == "categorical" and (name := column["name"]) in frame:
            is_number = pd.api.types.is_numeric_dtype(getattr(frame[name].dtype, "categories", frame[name]))
            written = column_as_text(frame[name])
            frame[name] = written.astype("category") if is_number else written  # numbers that are names of kinds
    firsts = {name: next(iter(column.dropna()), None) for name, column in frame.items() if column.dtype == object}
    halves = [name for name, kind in frame.dtypes.items() if kind == "float16"]  # by which pandas cannot group
    texts = [name for name, first in firsts.items() if not pd.api.types.is_scalar(first)]
    return frame.astype({**dict.fromkeys(texts, str), **dict.fromkeys(halves, "float32")})


def is_parquet(path: Path) -> bool:
    """Tell whether a table is a Parquet file, by its ending."""
    return path.suffix.lower() in table_format.PARQUET_SUFFIXES


def row_location(path: Path, row: int, known: TableFormat = UNKNOWN_FORMAT) -> str:
    """Write where a row, counted from 0, is: its line in a CSV, its row in a sheet, else its number.

    Args:
        known: what is known of the table's format.
    """
    if is_parquet(path) or path.suffix.lower() in table_format.COMPRESSED_SUFFIXES:
        return f"row {row + 1}"
    numbers = _file_lines_of_rows(path, known, table_format.file_change_key(path))
    if row >= len(numbers):
        return f"row {row + 1}"
    return f"row {numbers[row]} of the sheet" if table_format.is_spreadsheet(path) else f"line {numbers[row]}"


@lru_cache(1)
def _file_lines_of_rows(path: Path, known: TableFormat, state: tuple[int, ...]) -> Sequence[int]:
    """Return the line, or the row of a sheet, in which each row of a table begins.

    A row may be several lines, and empty lines are no rows. Cached: a message may name many rows.
    """
    form = table_format.detect_format(path, known)
    found, before = list[int](), 0
    with table_format.open_table(path, form) as file, suppress(csv.Error):  # of a cell of over 131,072 letters
        records = csv.reader(file, delimiter=form.separator or ",")
        for number, record in enumerate(records, 1):
            if any(text.strip() for text in record) or len(record) > 1:
                found.append(number if table_format.is_spreadsheet(path) else before + 1)
            before = records.line_num
    return found[form.skipped_lines + 1 :]  # behind the header


def check_columns_exist(columns_of_file: Iterable[Hashable], columns: Iterable[str], path: Path) -> None:
    """Raise a UserError if some of the columns are not among those found in this file; it names all of them."""
    valid, wanted = [str(name) for name in columns_of_file], list(columns)
    if lacking := [column for column in dict.fromkeys(wanted) if column not in valid]:
        raise UserError(f"{path}: {missing_columns_message(lacking, valid, wanted)}")


def missing_columns_message(lacking: Sequence[str], valid: Sequence[str], wanted: Iterable[str]) -> str:
    """Return which columns a table lacks, for each the one that is meant, and which columns it has.

    Args:
        lacking: columns that are not there.
        valid: those that are.
        wanted: those that are used; such a one is not meant by another.
    """
    listing = f"It has: {list_few_names(valid)}"
    if len(valid) == 1 and (separator := next((sign for sign in ",;\t|" if sign in valid[0]), None)):
        hint = f"Is it separated by {separator!r}? data.separator says another sign. "
        return f"no column {', '.join(map(quoted, lacking))}. {hint}{listing}"
    free, named = [name for name in valid if name not in set(wanted)], list[str]()
    if len(lacking) == 1:
        return f"no column {quoted(lacking[0])}. {did_you_mean(lacking[0], free)}{listing}"
    for column in lacking:
        near = closest_spellings(column, free)
        free = [name for name in free if name not in near]
        named.append(f"{quoted(column)} (did you mean {quoted(near[0])}?)" if near else quoted(column))
    return f"no column {', '.join(named)}. {listing}"


def encode_classes(
    values: Iterable[Hashable], path: Path, column: str, classes: Sequence[str] | None = None, gaps: bool = False
) -> NDArray[np.int64]:
    """Encode each value as its position among the classes, (N,).

    Args:
        classes: the allowed values; None: `classes_of(values)`.
        gaps: whether values may be missing: they are -1.

    Raises:
        UserError: a value is missing, not allowed, or no finite number; says in which row, counted from 1 without the
            header.
    """
    listed = _column_to_list(values)
    texts = {value: _label_as_text(value) for value in dict.fromkeys(listed)}
    allowed = list(distinct_classes(texts) if classes is None else classes)
    positions = {name: position for position, name in enumerate(allowed)} | ({"": -1} if gaps else {})
    for value, text in texts.items():  # in the order of the rows
        if text in positions and not (classes is None and _is_nan_or_infinite(text)):
            continue
        problem = (
            f"{quoted(text)}, allowed: {list_few_names(allowed)}" if text else "empty, or a mark of a missing value"
        )
        if text in positions:
            problem = f"{quoted(text)}, no class. Give it its label, or take the row out"
        raise UserError(f"{path}: column {column!r}, row {listed.index(value) + 1}: the value is {problem}")
    codes_of = {value: positions[text] for value, text in texts.items()}
    return np.array([codes_of[value] for value in listed], np.int64)


def distinct_classes(values: Iterable[Hashable]) -> list[str]:
    """List the distinct values but the empty one, by value if all are numbers, otherwise by the alphabet."""
    names = {_label_as_text(value) for value in set(_column_to_list(values))} - {""}
    try:
        return sorted(names, key=lambda name: (float(name), name))
    except ValueError:
        return sorted(names)


def combine_label_codes(parts: Sequence[NDArray[np.int64]], sizes: Sequence[int]) -> NDArray[np.int64]:
    """Combine labels into one, as the FSCL code combines attributes: first + size of the first x (second + ...).

    Where one of them is -1, unknown, the result is -1.
    """
    whole, step = np.zeros_like(parts[0]), 1
    for part, size in zip(parts, sizes, strict=True):
        whole, step = whole + step * part, step * size
    return np.where(np.any(np.array(parts) < 0, axis=0), -1, whole)


def columns_to_numbers(
    frame: "pd.DataFrame", columns: Sequence[str], path: Path, decimal: str = "."
) -> NDArray[np.float32]:
    """Convert columns to finite numbers, (N, columns).

    Args:
        decimal: decimal mark where they are text.

    Raises:
        UserError: a value is not a finite number, or too large for single precision.
    """
    import pandas as pd

    values_of_columns = np.empty((len(frame), len(columns)), np.float32)
    for position, column in enumerate(columns):
        given = frame[column].map(
            lambda cell: to_plain_number(cell.strip(), decimal) if isinstance(cell, str) else cell
        )
        values = pd.to_numeric(given, errors="coerce").to_numpy(np.float64)
        if len(wrong := np.flatnonzero(~np.isfinite(values))):
            value = str(frame[column].iloc[wrong[0]])
            raise UserError(f"{path}: column {column!r}, row {wrong[0] + 1}: {quoted(value)} is not a finite number")
        if len(wrong := np.flatnonzero(np.abs(values) > FLOAT32_MAX)):  # networks compute in single precision
            problem = f"{values[wrong[0]]:g} is too large: numbers up to {FLOAT32_MAX:.1e} are allowed"
            raise UserError(f"{path}: column {column!r}, row {wrong[0] + 1}: {problem}")
        values_of_columns[:, position] = values
    return values_of_columns


def _label_as_text(value: Hashable) -> str:
    """Write a label as text, without the mark that `study.text` puts before a cell."""
    return unescape_formula(str(value).strip())


def _is_nan_or_infinite(label: str) -> bool:
    """Tell whether a label is infinite or NaN, as programs write a missing value."""
    return re.fullmatch(r"[+-]?(nan|inf|infinity)", label, re.IGNORECASE) is not None


def _column_to_list(values: Iterable[Hashable]) -> list[Hashable]:
    """Convert to a list, which is many times faster to iterate over than a pandas column."""
    return values.tolist() if hasattr(values, "tolist") else list(values)
