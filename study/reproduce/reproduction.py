"""A published table with our cells beside it, ready to be written."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pandas as pd

from study.analysis.tables.grid import Along, Entry, Grid
from study.analysis.tables.paper_comparison import OURS, PAPER, VERDICT, claims_table, compare_with_paper
from study.home.record import StudyRecord
from study.published import PublishedTable
from study.ranking import Spread
from study.reproduce import notes
from study.reproduce.cell_matching import Labels, places
from study.reproduce.cells import Cells, best_epoch, last_epoch, printed_per_unit
from study.reproduce.missing import missing
from study.spec import StudySpec

NUMBER = re.compile(r"\d+(\.\d+)?")
"""A column's label that needs the columns' title before it."""

KINDS = (OURS, PAPER, VERDICT)
"""Of the lines of a row that we have a number in."""


@dataclass(frozen=True)
class Sheet:
    """What a reproduction came to.

    Attributes:
        table: the paper's.
        last, best: our cells at the last epoch, and at the best one on the test split; `best` may be empty.
        missing: why a cell has no number of ours.
        last_grid, best_grid: the same as printed, beside the paper's; `best_grid` None where `best` is empty.
        claims: what became of the paper's, by our last epochs.
    """

    table: PublishedTable
    last: Cells
    best: Cells
    missing: Mapping[Labels, str]
    last_grid: Grid
    best_grid: Grid | None
    claims: pd.DataFrame

    @property
    def best_along(self) -> Along:
        """Along what the best is marked: as the table's claims compare, else methods, which are mostly rows."""
        return next((claim.best.among for claim in self.table.claims if claim.best), "column")


def sheet(table: PublishedTable, spec: StudySpec, record: StudyRecord, full: StudySpec) -> Sheet:
    """A study of a published table, in any state.

    Args:
        full: the table's study file without a profile: the paper's protocol.
    """
    last, best = last_epoch(table, spec, record), best_epoch(table, spec, record)
    why = missing(table, spec, full, last)
    said = notes.notes(table, spec, record, full, last, why)
    return Sheet(
        table,
        last,
        best,
        why,
        _grid(table, last, why, [notes.LAST_EPOCH, *said]),
        _grid(table, best, why, [notes.BEST_EPOCH]) if any(cell.values for cell in best.values()) else None,
        claims_table([claim.model_dump(exclude_none=True) for claim in table.claims], last),
    )


def paper_entry(table: PublishedTable, place: Labels) -> Entry:
    """A printed cell. Where the paper does not say of how many trials its spread is, it stands behind the number."""
    printed, scale = table.cell(*place), printed_per_unit(table, place)
    if printed.value is None:
        return Entry()
    known = table.trials is not None and printed.spread is not None
    spread = Spread(printed.value * scale, (printed.spread or 0.0) * scale if known else None, table.trials or 1)
    _, apart, behind = printed.printed.partition(" ± ")
    return Entry(table.metric_of(*place), spread, "" if known or not apart else f"± {behind}", "paper")


def _grid(table: PublishedTable, ours: Cells, why: Mapping[Labels, str], notes: Sequence[str]) -> Grid:
    rows, columns = [row.label for row in table.rows], [column.label for column in table.columns]
    paper = {place: paper_entry(table, place) for place in places(table)}
    found = compare_with_paper(rows, columns, _with_numbers(ours), paper)
    labelled = [(str(row), str(who)) for row, who in found.rows]
    entries = [
        [_explained(entry, who, why.get((row, column))) for column, entry in zip(columns, line, strict=True)]
        for (row, who), line in zip(labelled, found.entries, strict=True)
    ]
    speak = not all(NUMBER.fullmatch(label) for label in columns)
    return replace(
        found,
        stub=(table.rows_title, ""),
        rows=[(row, who if who in KINDS else _reasons(row, why)) for row, who in labelled],
        heads=("" if speak else table.columns_title,),
        entries=entries,
        notes=[*found.notes, *notes],
        digits=_digits(table),
    )


def _explained(entry: Entry, who: str, reason: str | None) -> Entry:
    """A cell without a number says why, and has no verdict."""
    if reason is None or who == PAPER:
        return entry
    return replace(entry, remark=reason) if who == OURS else Entry() if who == VERDICT else entry


def _reasons(row: str, why: Mapping[Labels, str]) -> str:
    """What a row is called of which we have nothing: the paper's, and why it is alone."""
    return f"{PAPER} ({', '.join(dict.fromkeys(reason for place, reason in why.items() if place[0] == row))})"


def _with_numbers(ours: Cells) -> Cells:
    """Without the rows in which nothing was run, which are the paper's alone."""
    there = {row for (row, _), cell in ours.items() if cell.values}
    return {place: cell for place, cell in ours.items() if place[0] in there}


def _digits(table: PublishedTable) -> int:
    """Of percentages behind the decimal point, as many as are printed, one where nothing is."""
    printed = [
        table.cell(*place).printed.split(" ")[0] for place in places(table) if table.unit_of(*place) == "percent"
    ]
    return max((len(number.partition(".")[2]) for number in printed if "." in number), default=1)
