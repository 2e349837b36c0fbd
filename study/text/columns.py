"""Rows as lines whose columns stand below each other."""

from collections.abc import Sequence


def columns(rows: Sequence[Sequence[str]], least: Sequence[int]) -> list[str]:
    """A line per row. A column is as wide as its longest cell, and at least so many characters; the last one ends."""
    widths = [max(wide, *(len(row[place]) for row in rows)) for place, wide in enumerate(least)]
    return [" ".join([*(f"{cell:<{wide}}" for cell, wide in zip(row, widths, strict=False)), row[-1]]) for row in rows]
