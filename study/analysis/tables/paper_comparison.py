"""Our cells beside a paper's, in the paper's layout, with a verdict for each pair; and whether its claims hold."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

import pandas as pd

from study.analysis.statistics import formatting
from study.analysis.statistics.cell_tables import Cell
from study.analysis.statistics.claims import ClaimResult
from study.analysis.statistics.difference import difference_of_means
from study.analysis.tables.grid import Entry, Grid, notes_on, to_entry
from study.metrics import is_share
from study.ranking import Spread

# Whether our number agrees with a paper's, differs from it, or cannot be told apart, by a stated test.

MARGIN = 0.01
"""The default margin of fractions: a difference of one percentage point does not matter."""

RELATIVE = 0.05
"""The margin of other numbers, as a fraction of the printed one."""

Word = Literal["agrees", "differs", "cannot tell"]


def verdict(ours: Spread | None, theirs: Spread | None, margin: float = MARGIN) -> Word:
    """Compare two means by their spreads and counts: Welch's t on the difference, with an equivalence margin.

    - agrees: the 90% interval of the difference lies within ± `margin` (two one-sided tests at 5%, Schuirmann 1987):
      a larger difference is ruled out. Finding no difference is not enough.
    - differs: it does not agree, and zero lies outside the 95% interval of the difference.
    - cannot tell: neither, or a side has fewer than two values or no known spread. This is common with few seeds.

    Args:
        ours: None for a missing cell.
        theirs: printed (see `widest`); without a deviation where the paper gives no spread or does not say of how many
            values.
        margin: in the unit of the means.
    """
    wide, narrow = difference_of_means(ours, theirs), difference_of_means(ours, theirs, confidence=0.90)
    if wide is None or narrow is None or wide.interval is None or narrow.interval is None:
        return "cannot tell"
    if -margin <= narrow.interval[0] and narrow.interval[1] <= margin:
        return "agrees"
    return "differs" if wide.clear else "cannot tell"


def widest(printed: Spread | None) -> Spread | None:
    """A printed spread as the sample's, if it is the population's (divided by n): the wider of its two readings.

    Papers say how many values are behind a number, hardly ever which of the two deviations it is. Of three values they
    differ by a factor of 1.22, by which a 95% interval that takes the wrong one would be a 90% interval.
    """
    if printed is None or printed.deviation is None or printed.count < 2:
        return printed
    return replace(printed, deviation=printed.deviation * math.sqrt(printed.count / (printed.count - 1)))


def margin_of(metric: str, theirs: Spread | None) -> float:
    """The margin for a printed number: `MARGIN` where the metric is a fraction, else `RELATIVE` of the number."""
    if is_share(metric) or theirs is None:
        return MARGIN
    return RELATIVE * abs(theirs.mean)


RULE = (
    f"Verdicts (Welch's t): agrees where the 90% interval of the difference lies within {100 * MARGIN:g} points of "
    f"percent to each side ({RELATIVE:.0%} of a printed number that is not a percentage); differs where it does "
    "not agree and zero lies outside the 95% interval; otherwise, or with fewer than two values or no known spread "
    "on a side, it cannot be told. A printed deviation is read as the population's, the wider of its two readings."
)
"""To stand under a table."""


OURS, PAPER, VERDICT = "ours", "paper", "verdict"

Labels = tuple[str, str]


def compare_with_paper(
    rows: Sequence[str],
    columns: Sequence[str],
    ours: Mapping[Labels, Cell],
    paper: Mapping[Labels, Entry],
) -> Grid:
    """Three lines per row: our numbers, the paper's, the verdicts.

    A row without any cell of ours has the paper's line alone; a row in which the paper prints nothing has ours alone.
    A cell of which the paper prints nothing has no verdict.

    Args:
        rows, columns: labels, in the printed order.
        ours: by the labels of row and column; a cell that has not run yet may be in it, empty.
        paper: the same; `spread` in the unit of ours, None where nothing is printed, without a deviation where the
            paper prints no spread or does not say of how many values.
    """
    our_cells = list(ours.values())
    lines: list[tuple[Labels, list[Entry]]] = []
    for row in rows:
        paper_entries = [paper.get((row, column), Entry()) for column in columns]
        if not any((row, column) in ours for column in columns):
            lines.append(((row, f"{PAPER} (published only)"), paper_entries))
            continue
        our_row = [ours.get((row, column)) for column in columns]
        our_line = ((row, OURS), [to_entry(cell, our_cells, OURS) if cell else Entry() for cell in our_row])
        if all(entry == Entry() for entry in paper_entries):
            lines.append(our_line)
            continue
        verdicts = [
            verdict(cell.spread, widest(theirs.spread), margin_of(cell.metric, theirs.spread))
            if cell and theirs.spread
            else ""
            for cell, theirs in zip(our_row, paper_entries, strict=True)
        ]
        lines += [
            our_line,
            ((row, PAPER), paper_entries),
            ((row, VERDICT), [Entry(remark=word) for word in verdicts]),
        ]
    notes = [*notes_on(our_cells, gaps_in_percent=True), RULE]
    return Grid(
        stub=("", ""),
        rows=[labels for labels, _ in lines],
        heads=("",),
        columns=[(column,) for column in columns],
        entries=[entries for _, entries in lines],
        notes=notes if our_cells else [],
        gaps_in_percent=True,
    )


def claims_table(results: Mapping[str, ClaimResult]) -> pd.DataFrame:
    """The verdict on each claim of a published table, by its text, as text; `statistics.claims.RULE` explains it."""
    return pd.DataFrame(
        {
            "claim": list(results),
            "result": [result.word for result in results.values()],
            "our means": [
                formatting.MISSING if result.direction is None else _direction_text(result.direction)
                for result in results.values()
            ],
            "p": [formatting.MISSING if result.p is None else _p_text(result.p) for result in results.values()],
            "remark": [result.remark or formatting.MISSING for result in results.values()],
        },
        dtype=object,
    )


def _p_text(p: float) -> str:
    return "< 0.001" if p < 0.001 else "> 0.999" if p > 0.999 else f"{p:.3f}"


def _direction_text(direction: bool) -> str:
    return "show it" if direction else "do not"
