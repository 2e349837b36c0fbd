"""A reproduction as text and files."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from study import published
from study.analysis import to_csv, to_latex, to_markdown
from study.analysis.report.page import markdown_table
from study.analysis.statistics.claims import RULE
from study.analysis.tables.grid import Grid
from study.errors import UserError
from study.files.whole import write_whole
from study.home.folder import StudyFolder
from study.home.record import StudyRecord
from study.reproduce.cell_matching import places
from study.reproduce.reproduction import Sheet, sheet
from study.spec import load_study
from study.text.markdown import escape

NAME = "reproduction"


def tabulate(folder: StudyFolder, table: str) -> Sheet:
    """The table of a study in any state; also written beside its report, as Markdown, LaTeX and CSV.

    Args:
        table: the published table's name.

    Raises:
        UserError: there is no such table, or the folder cannot be written.
    """
    found = sheet(published.load(table), folder.spec(), StudyRecord.load(folder.ledger_file), load_study(table))
    write(found, folder.report)
    return found


def write(found: Sheet, out: Path) -> None:
    """`reproduction.md`, `.tex` and `.csv`, each replaced in one step."""
    tables = [found.last_grid] + ([found.best_grid] if found.best_grid else [])
    caption = f"{_title(found)}. {found.table.caption}"
    content = {
        "md": markdown(found),
        "tex": "\n\n".join(to_latex(one, found.best_along, caption=caption) for one in tables) + "\n",
        "csv": to_csv(found.last_grid),
    }
    try:
        out.mkdir(parents=True, exist_ok=True)
        for ending, text in content.items():
            write_whole(out / f"{NAME}.{ending}", text)
    except OSError as error:
        raise UserError(f"{out}: the table cannot be written: {error.strerror}") from None


def markdown(found: Sheet) -> str:
    """The table, what to know about it, and what became of the paper's claims."""
    parts = [f"# {_title(found)}", found.table.caption, _grid(found, found.last_grid)]
    if len(found.claims):
        parts += ["## Claims", markdown_table(found.claims), RULE]
    if found.best_grid is not None:
        parts += ["## At the best epoch on the test split", _grid(found, found.best_grid)]
    return "\n\n".join(parts) + "\n"


def _grid(found: Sheet, grid: Grid) -> str:
    """A table with its notes in a list."""
    notes = "\n".join(f"- {escape(note)}" for note in grid.notes)
    return f"{to_markdown(replace(grid, notes=()), found.best_along)}\n\n{notes}"


def document(found: Sheet) -> dict[str, Any]:
    """The same as plain values for JSON; numbers in the printed unit, but fractions where percent is printed."""
    cells = []
    for place in places(found.table):
        printed = found.table.cell(*place)
        spoken = {"last_epoch": found.last.get(place), "best_epoch_on_test": found.best.get(place)}
        cells.append(
            {"row": place[0], "column": place[1], "metric": found.table.metric_of(*place), "printed": printed.printed}
            | {name: one.spread.to_document() if one and one.spread else None for name, one in spoken.items()}
            | {"missing": found.missing.get(place)}
        )
    claims = found.claims.to_dict("records")
    return {"name": found.table.name, "cells": cells, "claims": claims, "notes": list(found.last_grid.notes)}


def _title(found: Sheet) -> str:
    paper = found.table.paper
    return f"{found.table.name}: {found.table.source} of {paper.authors} ({paper.year}), {paper.title}"
