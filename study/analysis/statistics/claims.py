"""Judges a table's claims, given its uncertainty: Student's t for each comparison of two cells that a claim has.

Cells that ran on the same seeds are compared seed by seed, others by Welch's t, see
`study.analysis.statistics.difference`. A claim of several comparisons is true only if all are. So it holds where each
is shown at the 5% level: at most 5% of false claims are said to hold, whatever the number of comparisons
(intersection-union test, Berger 1982). It is refuted by one comparison, so there the level is divided by their number
(Bonferroni): at most 5% of true claims are refuted.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean
from typing import Literal

from scipy.special import stdtr

from study.analysis.statistics.cell_tables import Cell
from study.analysis.statistics.difference import ROUNDING, difference, difference_of_means
from study.metrics import lower_is_better
from study.ranking import spread

SURE = 0.95
DECIMALS = 12  # means that differ by less differ by rounding alone

RULE = (
    "Claims (Student's t of the differences by seed where both cells ran on the same seeds, else Welch's): a claim "
    f"holds where each of its comparisons is shown at the {1 - SURE:.0%} level, one-sided. It does not hold where the "
    f"contrary of one is shown at {1 - SURE:.0%} divided by the number of comparisons. Otherwise, or where a cell has "
    "fewer than two values, it cannot be told. A tie is not better."
)
"""To stand under a table of claims."""

Word = Literal["holds", "does not hold", "cannot tell"]
Order = tuple[Cell, Cell]
"""Two cells; the claim is that the first has the larger mean."""


@dataclass(frozen=True)
class ClaimResult:
    """The verdict on a claim.

    Attributes:
        word: see `RULE`.
        direction: whether the means as they are show it; None where a cell has no value.
        p: of the comparison that is shown least, one-sided; None where a cell has fewer than two values.
        remark: what else to know; may be empty.
    """

    word: Word
    direction: bool | None
    p: float | None
    remark: str = ""


def better(cell: Cell, other: Cell) -> ClaimResult:
    """Judge whether a cell is better than another of the same metric: higher, or lower where less is better."""
    return _judged([_ordered(cell, other)])


def increasing(cells: Sequence[Cell]) -> ClaimResult:
    """Judge whether each cell's mean is larger than that before it."""
    return _judged([(after, before) for before, after in pairwise(cells)])


def decreasing(cells: Sequence[Cell]) -> ClaimResult:
    """Judge whether each cell's mean is smaller than that before it."""
    return _judged([(before, after) for before, after in pairwise(cells)])


def best(cell: Cell, among: Sequence[Cell]) -> ClaimResult:
    """Judge whether a cell is better than each of the others that have a value; the remark says how many."""
    measured = [other for other in among if other.values]
    result = _judged([_ordered(cell, other) for other in measured])
    if len(measured) == len(among):
        return result
    remark = f"compared with the {len(measured)} of {len(among)} others that have a value"
    return ClaimResult(result.word, result.direction, result.p, "; ".join(filter(None, [result.remark, remark])))


def _ordered(cell: Cell, other: Cell) -> Order:
    return (other, cell) if lower_is_better(cell.metric) else (cell, other)


def _judged(orders: Sequence[Order]) -> ClaimResult:
    """Judge whether all of some orders of two cells hold."""
    cells = [cell for order in orders for cell in order]
    empty = sum(not cell.values for cell in cells)
    if empty or not orders:
        return ClaimResult(
            "cannot tell", None, None, "a value is missing" if empty else "there is nothing to compare with"
        )
    direction = all(_mean(more) > _mean(less) for more, less in orders)
    if any(len(cell.values) < 2 for cell in cells):
        return ClaimResult("cannot tell", direction, None, "one value is too few")
    levels = [_p(more, less) for more, less in orders]
    weakest = max(levels)
    refuted = weakest >= 1 - (1 - SURE) / len(orders)
    word: Word = "holds" if weakest <= 1 - SURE else "does not hold" if refuted else "cannot tell"
    return ClaimResult(word, direction, weakest)


def _p(more: Cell, less: Cell) -> float:
    """Return how likely so large a difference, or a larger one, is where the first is not larger; one-sided."""
    gap = difference(more.by_seed, less.by_seed)
    if gap is None or not gap.paired:
        gap = difference_of_means(spread(more.values), spread(less.values))
    assert gap  # both have values
    assert gap.error is not None  # of two or more
    if gap.error < ROUNDING:
        return float(round(gap.value, DECIMALS) <= 0)
    return float(stdtr(gap.freedom, -gap.value / gap.error))


def _mean(cell: Cell) -> float:
    return round(fmean(cell.values), DECIMALS)
