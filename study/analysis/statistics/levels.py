"""The values of one parameter as rows or columns of a table: one per value, or bins where there are many."""

from collections.abc import Hashable, Iterable
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from typing import Any

import numpy as np
import pandas as pd

from study.analysis.statistics import formatting

EXACT = 8
"""Different numbers that get a level each; more are put into bins."""

WIDE = 8.0
"""Positive numbers with at least this ratio of upper to lower quartile get bins of equal ratio, others of equal counts.

Numbers drawn uniformly from 0 up have a ratio of 3; drawn uniformly in the logarithm over two decades, of 10.
"""

DIGITS = 15
"""Significant digits of a bin's ends at most: as many as a floating-point number keeps."""


def levels(values: Iterable[Any], bins: int | None) -> pd.Categorical:
    """The place of each trial along one parameter.

    Args:
        values: of the parameter, one per trial.
        bins: how many at most, used for more than `EXACT` different numbers; None: no bins.

    Returns:
        Categories in order: numbers, or bins as `[0.001, 0.01)` (with its lower end; the last one, `[0.1, 1]`, with
        both), then everything else as text in the order of its first appearance, `-` for no value.
    """
    by_trial = [_level(value) for value in values]
    numbers: list[Hashable] = sorted({value for value in by_trial if not isinstance(value, str)})
    if bins is not None and len(numbers) > EXACT:
        places = edges([value for value in by_trial if not isinstance(value, str)], bins)
        numbers = labels(places)
        by_trial = [value if isinstance(value, str) else numbers[_bin(value, places)] for value in by_trial]
    texts = dict.fromkeys(value for value in by_trial if isinstance(value, str) and value not in numbers)
    return pd.Categorical(by_trial, categories=[*numbers, *texts], ordered=True)


def edges(numbers: list[float], bins: int) -> list[float]:
    """Ends of the bins, rounded to as few digits (at least three) as keep them apart; the outer two outwards."""
    low, high = min(numbers), max(numbers)
    lower, upper = np.quantile(numbers, [0.25, 0.75])
    if low > 0 and upper >= WIDE * lower:
        raw = np.geomspace(low, high, bins + 1)
    else:
        raw = np.quantile(numbers, np.linspace(0.0, 1.0, bins + 1))
    inner = {float(edge) for edge in raw[1:-1] if low < edge < high}
    for digits in range(3, DIGITS + 1):
        first, last = _rounded(low, digits, ROUND_FLOOR), _rounded(high, digits, ROUND_CEILING)
        rounded = {_rounded(edge, digits, ROUND_HALF_EVEN) for edge in inner}
        inside = sorted(edge for edge in rounded if first < edge < last)
        if len(inside) == len(inner):
            break
    return [first, *inside, last]


def labels(places: list[float]) -> list[Hashable]:
    """The bins between these ends as text."""
    texts = [formatting.setting(place, DIGITS) for place in places]
    closing = [")"] * (len(places) - 2) + ["]"]
    return [f"[{low}, {high}{end}" for low, high, end in zip(texts, texts[1:], closing, strict=False)]


def _bin(value: float, places: list[float]) -> int:
    return int(np.searchsorted(places[1:-1], value, side="right"))


def _level(value: Any) -> Any:
    """A number as it is, everything else as text."""
    is_number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    return value if is_number and value == value else formatting.setting(value)


def _rounded(number: float, digits: int, rounding: str) -> float:
    """A number rounded to significant digits."""
    exact = Decimal(repr(float(number)))
    return float(exact.quantize(Decimal(1).scaleb(exact.adjusted() - digits + 1), rounding=rounding)) if exact else 0.0
