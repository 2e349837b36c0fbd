"""Which values of a key are the same: false, 0, true and 1 are four, though Python calls two of them equal."""

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

Params = TypeVar("Params", bound=Mapping[str, Any])


def among(value: Any, values: Iterable[Any]) -> bool:
    """Whether a value is one of these; true and 1 are two values."""
    return any(isinstance(value, bool) == isinstance(other, bool) and value == other for other in values)


def same(params: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two configurations are the same."""
    return params.keys() == other.keys() and all(among(value, [other[key]]) for key, value in params.items())


def distinct(configurations: Iterable[Params]) -> list[Params]:
    """The different ones of these configurations, each where it comes first."""
    found: list[Params] = []
    for params in configurations:
        if not any(same(params, other) for other in found):
            found.append(params)
    return found
