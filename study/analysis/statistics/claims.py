"""What a reader takes from a table, checked with its uncertainty: a bootstrap over the seeds of each cell.

Each cell's values are drawn anew with replacement, cell by cell and always with the same random numbers, and the claim
is looked at in each such table. A mean of few values drawn anew moves too little. So each is moved further from the
cell's mean by sqrt(n / (n - 1)) and by the ratio of the 95% quantiles of Student's t (n - 1 degrees of freedom) and
the normal distribution, after the expanded percentile interval of Hesterberg, "What Teachers Should Know About the
Bootstrap" (2015). In simulations of two to ten values, of equal and of unequal spreads, one of two cells of the same
truth was then called better in 1% to 6% of the cases.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean
from typing import Any, Literal

import numpy as np
from scipy.special import ndtri, stdtrit

from study.analysis.statistics.cells import Cell
from study.metrics import lower_is_better

RESAMPLES = 10_000
SEED = 0
SURE = 0.95
DECIMALS = 12  # means that differ by less differ by rounding alone

RULE = (
    f"Claims (bootstrap over the values of each cell, {RESAMPLES} times): a claim holds where it is true in at least "
    f"{SURE:.0%} of the resampled tables. It does not hold where one of the comparisons that it makes is true in at "
    f"most {1 - SURE:.0%} of them (shared among the comparisons). Else, or where a cell has fewer than two values, "
    "it cannot be told. A tie is not better."
)
"""To stand under a table of claims."""

Word = Literal["holds", "does not hold", "cannot tell"]
Cells = Mapping[tuple[str, str], Cell]
Order = tuple[Cell, Cell]
"""Two cells, the first of which is said to have the larger mean."""


@dataclass(frozen=True)
class Finding:
    """What became of a claim.

    Attributes:
        word: see `RULE`.
        direction: whether the means as they are show it; None where a cell has no value.
        share: of the resampled tables that show it; None where a cell has fewer than two values.
        remark: what else must be known; may be empty.
    """

    word: Word
    direction: bool | None
    share: float | None
    remark: str = ""


def better(one: Cell, other: Cell) -> Finding:
    """Whether a cell is better than another of the same metric: higher, or lower where less is better."""
    return _judged([_ordered(one, other)])


def increasing(cells: Sequence[Cell]) -> Finding:
    """Whether each cell's mean is larger than that before it."""
    return _judged([(after, before) for before, after in pairwise(cells)])


def decreasing(cells: Sequence[Cell]) -> Finding:
    """Whether each cell's mean is smaller than that before it."""
    return _judged([(before, after) for before, after in pairwise(cells)])


def best(cell: Cell, among: Sequence[Cell]) -> Finding:
    """Whether a cell is better than each of the others; those without a value are left out, and told."""
    known = [other for other in among if other.values]
    found = _judged([_ordered(cell, other) for other in known])
    if len(known) == len(among):
        return found
    remark = f"compared with the {len(known)} of {len(among)} others that have a value"
    return Finding(found.word, found.direction, found.share, "; ".join(filter(None, [found.remark, remark])))


def check(claim: Mapping[str, Any], cells: Cells) -> Finding:
    """A claim as a published table states it, in our cells.

    Args:
        claim: has one of `better: [[row, column], [row, column]]`, `increasing` or `decreasing` (`{row, columns}` or
            `{column, rows}`), `best: {row, column, among}` where `among` is `column` (those above and below, if
            nothing is said) or `row` (those beside it).
        cells: by the labels of row and column; one that is not there has no value.
    """
    if pair := claim.get("better"):
        return better(*(_at(cells, row, column) for row, column in pair))
    if named := claim.get("best"):
        place = (named["row"], named["column"])
        level = 0 if named.get("among", "column") == "row" else 1
        others = [cell for at, cell in cells.items() if at[level] == place[level] and at != place]
        return best(_at(cells, *place), others)
    for trend, judge in (("increasing", increasing), ("decreasing", decreasing)):
        if line := claim.get(trend):
            return judge([_at(cells, *place) for place in _line(line)])
    raise ValueError(f"{sorted(claim)} given: a claim has one of better, best, increasing, decreasing")


def _line(line: Mapping[str, Any]) -> list[tuple[str, str]]:
    if line.get("columns"):
        return [(line["row"], column) for column in line["columns"]]
    return [(row, line["column"]) for row in line["rows"]]


def _at(cells: Cells, row: str, column: str) -> Cell:
    return cells.get((row, column), Cell(""))


def _ordered(one: Cell, other: Cell) -> Order:
    return (other, one) if lower_is_better(one.metric) else (one, other)


def _judged(orders: Sequence[Order]) -> Finding:
    """Whether all of some orders of two cells hold."""
    everyone = [cell for order in orders for cell in order]
    empty = sum(not cell.values for cell in everyone)
    if empty or not orders:
        return Finding("cannot tell", None, None, "a value is missing" if empty else "there is nothing to compare with")
    direction = all(_mean(more) > _mean(less) for more, less in orders)
    if any(len(cell.values) < 2 for cell in everyone):
        return Finding("cannot tell", direction, None, "one value is too few")
    drawn = {id(cell): cell for cell in everyone}
    means = {key: _resampled(cell, place) for place, (key, cell) in enumerate(drawn.items())}
    shown = np.array([means[id(more)] > means[id(less)] for more, less in orders])
    share, weakest = float(shown.all(axis=0).mean()), float(shown.mean(axis=1).min())
    refuted = weakest <= (1 - SURE) / len(orders)
    return Finding("holds" if share >= SURE else "does not hold" if refuted else "cannot tell", direction, share)


def _resampled(cell: Cell, place: int) -> np.ndarray:
    """Means of the cell's values drawn anew, (RESAMPLES,); `place` chooses the random numbers."""
    values, n = np.array(cell.values), len(cell.values)
    chosen = np.random.default_rng([SEED, place]).integers(n, size=(RESAMPLES, n))
    reach = (n / (n - 1)) ** 0.5 * stdtrit(n - 1, SURE) / ndtri(SURE)
    mean = values.mean()
    found: np.ndarray = np.round(mean + reach * (values[chosen].mean(axis=1) - mean), DECIMALS)
    return found


def _mean(cell: Cell) -> float:
    return round(fmean(cell.values), DECIMALS)
