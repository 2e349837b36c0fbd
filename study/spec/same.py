"""Which values of a key are the same: false, 0, true and 1 are four, though Python calls two of them equal."""

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

Params = TypeVar("Params", bound=Mapping[str, Any])


def among(value: Any, values: Iterable[Any]) -> bool:
    """Return whether a value is one of these; true and 1 are two values."""
    return any(isinstance(value, bool) == isinstance(other, bool) and value == other for other in values)


def identity(params: Mapping[str, Any]) -> frozenset[tuple[str, bool, Any]]:
    """Return what a configuration is: equal for the same configurations alone. Numbers are told apart by twelve digits:
    0.3 and 0.1 + 2 * 0.1 are one step of a range."""
    return frozenset(
        (key, isinstance(value, bool), float(f"{value:.12g}") if isinstance(value, float) else value)
        for key, value in params.items()
    )


def same(params: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Return whether two configurations are the same."""
    return identity(params) == identity(other)


def distinct(configurations: Iterable[Params]) -> list[Params]:
    """The different ones of these configurations, each where it comes first."""
    found: dict[object, Params] = {}
    for params in configurations:
        found.setdefault(identity(params), params)
    return list(found.values())
