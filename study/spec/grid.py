"""A search space as a grid: every combination of its values."""

from collections.abc import Iterator, Sequence
from decimal import Decimal
from itertools import islice
from typing import Any

from study.spec.schema import Domain
from study.spec.space import Space

MOST_CELLS = 100_000
"""Most cells of a grid: nobody would run more, and each is checked before anything starts."""


def values(domain: Domain, whole: bool, every: bool = False) -> list[Any]:
    """The values of one key, in the file's order; `whole` ranges are of whole numbers.

    Args:
        every: list each whole number of a range on a log scale, too, which is no grid's.

    Raises:
        ValueError: a range without steps, or with more than MOST_CELLS: its values cannot be listed.
    """
    if domain.choices is not None:
        return list(domain.choices)
    low, high, step = domain.low, domain.high, domain.step or (1 if whole and (every or not domain.log) else None)
    assert low is not None
    assert high is not None
    if low == high:
        return [low]
    if step is None:
        raise ValueError(f"the range {low!r} to {high!r} has no step: a grid needs a step, or choices")
    if not (high - low) / step < MOST_CELLS:  # asked before anything is listed
        raise ValueError(
            f"{low!r} to {high!r} in steps of {step!r} are more than {MOST_CELLS} values, the most cells of a grid"
        )
    places = range(_steps(low, high, step) + 1)
    return [_at(low, step, place, whole) for place in places]


def last(domain: Domain, whole: bool) -> int | float:
    """The highest value of a range with a step."""
    assert domain.low is not None
    assert domain.high is not None
    assert domain.step is not None
    return _at(domain.low, domain.step, _steps(domain.low, domain.high, domain.step), whole)


def _steps(low: float, high: float, step: float) -> int:
    return int((high - low) / step + 1e-8)


def _at(low: float, step: float, place: int, whole: bool) -> int | float:
    if whole:
        return int(low) + place * int(step)
    return float(Decimal(str(low)) + place * Decimal(str(step)))


def cells(space: Space, every: bool = False) -> Iterator[dict[str, Any]]:
    """The parameters of every cell, the first key's value changing slowest.

    A key that does not apply to a cell is not in it, so that no two cells are the same.

    Raises:
        ValueError: see `values`.
    """
    by_key = [(key, values(domain, key in space.integers, every)) for key, domain in space.domains.items()]
    return _extended({}, by_key, space)


def count(space: Space, most: int = MOST_CELLS, every: bool = False) -> int:
    """How many cells there are; one more than `most` where there are more.

    Raises:
        ValueError: see `values`.
    """
    return sum(1 for _ in islice(cells(space, every), most + 1))


def _extended(params: dict[str, Any], left: Sequence[tuple[str, list[Any]]], space: Space) -> Iterator[dict[str, Any]]:
    if not left:
        yield params
        return
    (key, key_values), *rest = left
    if not space.applies(key, params):
        yield from _extended(params, rest, space)
        return
    for value in key_values:
        yield from _extended({**params, key: value}, rest, space)
