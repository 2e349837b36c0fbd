"""Our cells beside a paper's, in the paper's form: a verdict for each pair, and what became of the paper's claims."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from study.analysis.statistics import claims, formatting
from study.analysis.statistics.cells import Cell
from study.analysis.statistics.verdict import MARGIN, margin_of, rule, verdict
from study.analysis.tables.cell_grid import entry, explained
from study.analysis.tables.grid import Entry, Grid

OURS, PAPER, VERDICT = "ours", "paper", "verdict"

Labels = tuple[str, str]


def beside(
    rows: Sequence[str],
    columns: Sequence[str],
    ours: Mapping[Labels, Cell],
    paper: Mapping[Labels, Entry],
    margin: float = MARGIN,
) -> Grid:
    """Three lines per row: our numbers, the paper's, the verdicts. A row of which we have no cell is the paper's alone,
    and one of which the paper prints nothing is ours.

    Args:
        rows, columns: labels, in the printed order.
        ours: by the labels of row and column; a cell that has not run yet may be there, empty.
        paper: the same; `spread` in the unit of ours, None where nothing is printed, without a deviation where no
            spread is printed or it is not known of how many values.
        margin: of percentages, as a fraction; see `study.analysis.statistics.verdict.verdict`.
    """
    everyone = list(ours.values())
    lines: list[tuple[Labels, list[Entry]]] = []
    for row in rows:
        printed = [paper.get((row, column), Entry()) for column in columns]
        if not any((row, column) in ours for column in columns):
            lines.append(((row, f"{PAPER} (published only)"), printed))
            continue
        mine = [ours.get((row, column)) for column in columns]
        own = ((row, OURS), [entry(cell, everyone, OURS) if cell else Entry() for cell in mine])
        if all(one == Entry() for one in printed):
            lines.append(own)
            continue
        words_of = [
            verdict(cell.spread, theirs.spread, margin_of(cell.metric, theirs.spread, margin)).word if cell else ""
            for cell, theirs in zip(mine, printed, strict=True)
        ]
        lines += [
            own,
            ((row, PAPER), printed),
            ((row, VERDICT), [Entry(remark=word) for word in words_of]),
        ]
    notes = [*explained(everyone), rule(margin)]
    return Grid(
        stub=("", ""),
        rows=[labels for labels, _ in lines],
        heads=("",),
        columns=[(column,) for column in columns],
        entries=[entries for _, entries in lines],
        notes=notes if everyone else [],
    )


def claims_table(stated: Sequence[Mapping[str, Any]], cells: Mapping[Labels, Cell]) -> pd.DataFrame:
    """What became of each claim of a published table, as text; `statistics.claims.RULE` belongs under it.

    Args:
        stated: as `study.analysis.statistics.claims.check` takes them, each with its `text`.
        cells: ours, by the labels of row and column.
    """
    found = [claims.check(claim, cells) for claim in stated]
    return pd.DataFrame(
        {
            "claim": [str(claim["text"]) for claim in stated],
            "result": [one.word for one in found],
            "our means": [formatting.MISSING if one.direction is None else _shown(one.direction) for one in found],
            "resamples": [formatting.MISSING if one.share is None else f"{100 * one.share:.1f}%" for one in found],
            "remark": [one.remark or formatting.MISSING for one in found],
        },
        dtype=object,
    )


def _shown(direction: bool) -> str:
    return "show it" if direction else "do not"
