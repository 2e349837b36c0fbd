"""A reproduction as text and files."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from study import published
from study.analysis import to_csv, to_latex, to_markdown
from study.analysis.report.page import markdown_table
from study.analysis.statistics.claims import RULE
from study.analysis.tables.grid import Grid
from study.files.output import writing
from study.files.whole import write_whole
from study.home.folder import StudyFolder
from study.home.record import StudyRecord
from study.reproduce.cell_matching import places
from study.reproduce.reproduction import Reproduction, build_reproduction
from study.spec import load_study
from study.text.markdown import escape

NAME = "reproduction"


def tabulate(folder: StudyFolder, table: str) -> Reproduction:
    """The reproduction of a study in any state; also written beside its report, as Markdown, LaTeX and CSV.

    Args:
        table: the published table's name.

    Raises:
        UserError: there is no such table, or the folder cannot be written.
    """
    reproduction = build_reproduction(
        published.load(table), folder.spec(), StudyRecord.load(folder.ledger_file), load_study(table)
    )
    write(reproduction, folder.report)
    return reproduction


def write(reproduction: Reproduction, out: Path) -> None:
    """`reproduction.md`, `.tex` and `.csv`, each replaced in one step."""
    tables = [reproduction.last_grid] + ([reproduction.best_grid] if reproduction.best_grid else [])
    caption = f"{_title(reproduction)}. {reproduction.table.caption}"
    content = {
        "md": markdown(reproduction),
        "tex": "\n\n".join(to_latex(grid, reproduction.best_along, caption=caption) for grid in tables) + "\n",
        "csv": to_csv(reproduction.last_grid),
    }
    with writing(out):
        out.mkdir(parents=True, exist_ok=True)
        for ending, text in content.items():
            write_whole(out / f"{NAME}.{ending}", text)


def markdown(reproduction: Reproduction) -> str:
    """The table, its notes, and whether the paper's claims hold."""
    parts = [f"# {_title(reproduction)}", reproduction.table.caption, _grid(reproduction, reproduction.last_grid)]
    if len(reproduction.claims):
        parts += ["## Claims", markdown_table(reproduction.claims), RULE]
    if reproduction.best_grid is not None:
        parts += ["## At the best epoch on the test split", _grid(reproduction, reproduction.best_grid)]
    return "\n\n".join(parts) + "\n"


def _grid(reproduction: Reproduction, grid: Grid) -> str:
    """A table with its notes in a list."""
    notes = "\n".join(f"- {escape(note)}" for note in grid.notes)
    return f"{to_markdown(replace(grid, notes=()), reproduction.best_along)}\n\n{notes}"


def document(reproduction: Reproduction) -> dict[str, Any]:
    """The same as plain values for JSON; numbers in the printed unit, but fractions for percent."""
    cells = []
    for place in places(reproduction.table):
        printed = reproduction.table.cell(*place)
        ours = {"last_epoch": reproduction.last.get(place), "best_epoch_on_test": reproduction.best.get(place)}
        cells.append(
            {
                "row": place[0],
                "column": place[1],
                "metric": reproduction.table.metric_of(*place),
                "printed": printed.printed,
            }
            | {name: cell.spread.to_document() if cell and cell.spread else None for name, cell in ours.items()}
            | {"missing": reproduction.missing.get(place), "no_verdict": reproduction.table.no_verdict(*place)}
        )
    claims = reproduction.claims.to_dict("records")
    return {
        "name": reproduction.table.name,
        "cells": cells,
        "claims": claims,
        "notes": list(reproduction.last_grid.notes),
    }


def _title(reproduction: Reproduction) -> str:
    paper = reproduction.table.paper
    return f"{reproduction.table.name}: {reproduction.table.source} of {paper.authors} ({paper.year}), {paper.title}"
