"""Which values of a key are the same: false, 0, true and 1 are four, though Python calls two of them equal."""

from collections.abc import Iterable, Mapping
from typing import Any


def among(value: Any, values: Iterable[Any]) -> bool:
    """Whether a value is one of these; true and 1 are two values."""
    return any(isinstance(value, bool) == isinstance(other, bool) and value == other for other in values)


def same(params: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two configurations are the same."""
    return params.keys() == other.keys() and all(among(value, [other[key]]) for key, value in params.items())
