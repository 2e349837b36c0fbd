"""Values of metrics as people read them: percent, numbers, seconds, ranges."""

import math

from study.metrics import is_percent_metric

UNDEFINED_NUMBER_TEXT = "not defined"
"""Text in place of a number that is not defined."""

MIN_SECONDS_WITH_DECIMALS = 0.1
"""Smallest time that three decimals tell to about a hundredth."""


def format_metric(reported: str, value: float, deviation: float | None = None) -> str:
    """Format a value: `76.2%`, `76.2 ± 1.3%` with a standard deviation; `0.123` or `30.7` for what is not in percent.

    A count that is the same on every seed is written as `530`, seconds as `0.0012 s`, and what is no finite number as
    `UNDEFINED_NUMBER_TEXT`.
    """
    if not math.isfinite(value):
        return UNDEFINED_NUMBER_TEXT
    numbers = [value] if deviation is None or math.isnan(deviation) else [value, deviation]
    if reported.startswith("time/"):
        return f"{value:.3f} s" if value >= MIN_SECONDS_WITH_DECIMALS or not value else f"{value:.2g} s"
    if is_percent_metric(reported):
        return " ± ".join(f"{100 * number:.1f}" for number in numbers) + "%"
    if is_whole_count(value) and not deviation:
        return f"{value:.0f}"
    shown = _format_plain_numbers(*numbers)
    if deviation is not None and round(value, 3):  # beside `0.345` a deviation of 1e-05 is 0.000
        shown[1:] = [f"{number:.{decimals_of_plain_numbers(*numbers)}f}" for number in numbers[1:]]
    return " ± ".join(shown)


def is_whole_count(number: float) -> bool:
    """Tell whether a number is whole and, unlike 0 and 1, no share, so that it needs no decimals."""
    return float(number).is_integer() and abs(number) > 1


def decimals_of_plain_numbers(*numbers: float) -> int:
    """Return the decimals of numbers that are not in percent: three below 10, and one from 10 on, as percents have."""
    largest = max(map(abs, numbers))
    return 3 if largest < 10 else 1 if largest < 1000 else 0


def _format_plain_numbers(*numbers: float) -> list[str]:
    """Format numbers as `0.123` or `30.7`, and one of which these decimals would show nothing as `0.0004`."""
    decimals = decimals_of_plain_numbers(*numbers)
    return [f"{each:.1g}" if each and not round(each, decimals) else f"{each:.{decimals}f}" for each in numbers]


def format_metric_range(reported: str, low: float, high: float) -> str:
    """Format an interval as `64.1 to 79.9%`, its ends in the unit of `format_metric`."""
    if is_percent_metric(reported):
        return f"{100 * low:.1f} to {100 * high:.1f}%"
    return " to ".join(_format_plain_numbers(low, high))
