"""Our cells beside a paper's, in the paper's layout, with a verdict for each pair; and whether its claims hold."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from study.analysis.statistics import claims, formatting
from study.analysis.statistics.cells import Cell
from study.analysis.statistics.verdict import MARGIN, margin_of, rule, verdict, widest
from study.analysis.tables.cell_grid import notes_on, to_entry
from study.analysis.tables.grid import Entry, Grid

OURS, PAPER, VERDICT = "ours", "paper", "verdict"

Labels = tuple[str, str]


def compare_with_paper(
    rows: Sequence[str],
    columns: Sequence[str],
    ours: Mapping[Labels, Cell],
    paper: Mapping[Labels, Entry],
    margin: float = MARGIN,
) -> Grid:
    """Three lines per row: our numbers, the paper's, the verdicts.

    A row without any cell of ours has the paper's line alone; a row in which the paper prints nothing has ours alone.
    A cell of which the paper prints nothing has no verdict.

    Args:
        rows, columns: labels, in the printed order.
        ours: by the labels of row and column; a cell that has not run yet may be in it, empty.
        paper: the same; `spread` in the unit of ours, None where nothing is printed, without a deviation where the
            paper prints no spread or does not say of how many values.
        margin: of percentages, as a fraction; see `study.analysis.statistics.verdict.verdict`.
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
            verdict(cell.spread, widest(theirs.spread), margin_of(cell.metric, theirs.spread, margin)).word
            if cell and theirs.spread
            else ""
            for cell, theirs in zip(our_row, paper_entries, strict=True)
        ]
        lines += [
            our_line,
            ((row, PAPER), paper_entries),
            ((row, VERDICT), [Entry(remark=word) for word in verdicts]),
        ]
    notes = [*notes_on(our_cells, gaps_in_percent=True), rule(margin)]
    return Grid(
        stub=("", ""),
        rows=[labels for labels, _ in lines],
        heads=("",),
        columns=[(column,) for column in columns],
        entries=[entries for _, entries in lines],
        notes=notes if our_cells else [],
        gaps_in_percent=True,
    )


def claims_table(stated: Sequence[Mapping[str, Any]], cells: Mapping[Labels, Cell]) -> pd.DataFrame:
    """Whether each claim of a published table holds, as text; `statistics.claims.RULE` explains it.

    Args:
        stated: as `study.analysis.statistics.claims.check` takes them, each with its `text`.
        cells: ours, by the labels of row and column.
    """
    results = [claims.check(claim, cells) for claim in stated]
    return pd.DataFrame(
        {
            "claim": [str(claim["text"]) for claim in stated],
            "result": [result.word for result in results],
            "our means": [
                formatting.MISSING if result.direction is None else _direction_text(result.direction)
                for result in results
            ],
            "p": [formatting.MISSING if result.p is None else _p_text(result.p) for result in results],
            "remark": [result.remark or formatting.MISSING for result in results],
        },
        dtype=object,
    )


def _p_text(p: float) -> str:
    return "< 0.001" if p < 0.001 else "> 0.999" if p > 0.999 else f"{p:.3f}"


def _direction_text(direction: bool) -> str:
    return "show it" if direction else "do not"
