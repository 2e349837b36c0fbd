"""Values from Python as a study file has them: numbers, text, true or false, null, lists and mappings."""

import enum
import sys
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

from study.errors import UserError
from study.text.short import shortened

ALLOWED = "numbers, text, true or false, None, paths, lists and mappings, and NumPy's numbers and arrays"


def plain(value: Any, place: str) -> Any:
    """Return a value as a study file has it, of the same kind: NumPy's numbers are Python's, arrays and tuples lists,
    paths text.

    Args:
        place: what messages call it: `fixed: rate`.

    Raises:
        UserError: it, or something within it, has no form in a study file.
    """
    value = _of_numpy(value)
    if isinstance(value, Mapping):
        return plain_mapping(value, place, ".")
    if isinstance(value, list | tuple):
        return [plain(one, f"{place}[{number}]") for number, one in enumerate(value)]
    if isinstance(value, PurePath):
        return str(value)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, enum.Enum):
        raise _refused(value, place)
    for kind in (str, int, float):
        if isinstance(value, kind):
            return value if type(value) is kind else kind(value)
    raise _refused(value, place)


def plain_mapping(values: Any, place: str, joint: str = ": ") -> dict[str, Any]:
    """Return a mapping of names to plain values; a message has its place, the joint and the key.

    Raises:
        UserError: it is no mapping, a key is no text, or as `plain`.
    """
    if not isinstance(values, Mapping):
        raise UserError(f"{place}: {_shown(values)} given, a mapping of names to values is needed")
    for key in values:
        if not isinstance(key, str):
            raise UserError(f"{place}: the key {_shown(key)} given, allowed are names, which are text")
    return {str(key): plain(value, f"{place}{joint}{key}") for key, value in values.items()}


def _of_numpy(value: Any) -> Any:
    """Return NumPy's numbers as Python's and its arrays as lists, everything else as it is."""
    numpy = sys.modules.get("numpy")  # a value of NumPy's cannot be there before it is imported
    return value.tolist() if numpy and isinstance(value, numpy.generic | numpy.ndarray) else value


def _refused(value: Any, place: str) -> UserError:
    return UserError(f"{place}: {_shown(value)} given. Allowed are {ALLOWED}")


def _shown(value: Any) -> str:
    return f"{shortened(repr(value))} of type {type(value).__name__}"
