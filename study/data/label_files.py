"""Labels from text tables: columns by name, values checked, each message with file, column and remedy."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from study.data.source import root
from study.errors import UserError, nearest

if TYPE_CHECKING:
    import pandas as pd

SHOWN = 12
"""Columns or values that a message lists."""

INSIDE = "allowed is a relative path without '..' or NUL; a link in the folder may lead elsewhere"
"""What a message says of a name that `leads_out`."""


def locate(file: str, note: str = "") -> Path:
    """A user's path: absolute, or under the current folder, or under the folder of all data sets.

    It may be any that the user can read: it stands in the study file, in plain sight of whoever runs it. Names that
    are listed in such files may not, see `leads_out`.

    Args:
        note: where to get it and in which form, in a sentence.

    Raises:
        UserError: it is not there.
    """
    path = there(file)
    if path is None:
        looked = " and ".join(str(place) for place in _places(file))
        raise UserError(" ".join(filter(None, (f"{file}: not found. Looked for {looked}.", note))))
    return path


def there(file: str) -> Path | None:
    """The same, or None."""
    return next((place for place in _places(file) if os.path.exists(place)), None)


def _places(file: str) -> list[Path]:
    path = Path(os.path.expanduser(file))
    return [path] if path.is_absolute() else [Path.cwd() / path, root() / path]


def leads_out(name: str) -> bool:
    """Whether a name from a list of files may lead out of the folder that it belongs to, or names no file.

    A link in the folder may lead anywhere: it was made on this machine, a list may come from elsewhere.
    """
    path = PurePath(name)
    return not path.parts or path.is_absolute() or ".." in path.parts or "\0" in name


def check_files(names: Iterable[str], path: Path, column: str) -> None:
    """Raise a UserError if a name in a column `leads_out`; says in which row, counted from 1 without the header."""
    for row, name in enumerate(names, 1):
        if leads_out(name):
            raise UserError(f"{path}: column {column!r}, row {row}: {name!r} given, {INSIDE}")


def read(path: Path, columns: Sequence[str] = (), **options: Any) -> "pd.DataFrame":
    """A table as text, '' where a value is missing.

    Args:
        path: a CSV, or a Parquet file by its ending.
        columns: that it must have; empty: whichever it has.
        options: of `pandas.read_csv`.

    Raises:
        UserError: not there, not readable, empty, or without one of the columns.
    """
    frame = read_typed(path, dtype=str, keep_default_na=False, **options)
    need(frame.columns, columns, path)
    return frame.astype(object).where(frame.notna(), "").astype(str) if path.suffix == ".parquet" else frame.fillna("")


def read_typed(path: Path, **options: Any) -> "pd.DataFrame":
    """A table with the types that pandas gives its columns; raises as `read`."""
    import pandas as pd

    if not os.path.isfile(path):
        raise UserError(f"{path}: not found")
    try:
        frame = pd.read_parquet(path) if path.suffix == ".parquet" else pd.read_csv(path, **options)
    except (ValueError, OSError) as error:  # pandas and pyarrow raise subclasses of these
        raise UserError(f"{path}: not readable as a table: {str(error).strip()}. Is it cut short?") from None
    if frame.empty:
        raise UserError(f"{path}: has no rows")
    return frame


def need(present: Iterable[Any], columns: Iterable[str], path: Path) -> None:
    """Raise a UserError if one of the columns is not among those of this file."""
    valid = [str(name) for name in present]
    for column in columns:
        if column not in valid:
            raise UserError(f"{path}: no column {column!r}. {nearest(column, valid)}It has: {_some(valid)}")


def choose(value: str, valid: Sequence[str], key: str) -> None:
    """Raise a UserError if the value of a key is not among these."""
    if value not in valid:
        raise UserError(f"{key}: {value!r} given. {nearest(value, valid)}Allowed: {', '.join(valid)}")


def codes(values: Iterable[Any], path: Path, column: str, classes: Sequence[str] | None = None) -> NDArray[np.int64]:
    """Position of each value among the classes, (N,).

    Args:
        classes: what is allowed; None: `classes_of(values)`.

    Raises:
        UserError: a value is missing or not allowed; says in which row, counted from 1 without the header.
    """
    texts = [str(value).strip() for value in _listed(values)]
    known = list(classes_of(texts) if classes is None else classes)
    positions = {name: position for position, name in enumerate(known)}
    for row, value in enumerate(texts, 1):
        if value not in positions:
            problem = f"{value!r}, allowed: {_some(known)}" if value else "empty"
            raise UserError(f"{path}: column {column!r}, row {row}: the value is {problem}")
    return np.array([positions[value] for value in texts], np.int64)


def classes_of(values: Iterable[Any]) -> list[str]:
    """The distinct values in order: as whole numbers where all are, otherwise as text; the empty one left out."""
    names = {str(value).strip() for value in set(_listed(values))} - {""}
    try:
        return sorted(names, key=int)
    except ValueError:
        return sorted(names)


def combined(parts: Sequence[NDArray[np.int64]], sizes: Sequence[int]) -> NDArray[np.int64]:
    """Several labels as one: first + size of the first x (second + ...), as the FSCL code combines attributes."""
    whole, step = np.zeros_like(parts[0]), 1
    for part, size in zip(parts, sizes, strict=True):
        whole, step = whole + step * part, step * size
    return whole


def numbers(frame: "pd.DataFrame", columns: Sequence[str], path: Path) -> NDArray[np.float32]:
    """Columns of finite numbers, (N, columns)."""
    import pandas as pd

    table = np.empty((len(frame), len(columns)), np.float32)
    for position, column in enumerate(columns):
        table[:, position] = values = pd.to_numeric(frame[column], errors="coerce").to_numpy(np.float64)
        wrong = np.flatnonzero(~np.isfinite(values))
        if len(wrong):
            value = str(frame[column].iloc[wrong[0]])
            raise UserError(f"{path}: column {column!r}, row {wrong[0] + 1}: {value!r} is not a finite number")
    return table


def _listed(values: Iterable[Any]) -> list[Any]:
    """As a list; going through a pandas column is many times slower."""
    return values.tolist() if hasattr(values, "tolist") else list(values)


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more
