"""The papers' tables as data: one file `NAME.yaml` per table in this folder, transcribed as printed.

`published_table_names()` lists the tables, `load_published_table(name)` returns one.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from ruamel.yaml import YAML

from study.errors import UserError, suggest_or_list

__all__ = [
    "Claim",
    "Paper",
    "PrintedCell",
    "PublishedTable",
    "TableLine",
    "load_published_table",
    "published_table_names",
]


PRINTED_NUMBER_PATTERN = re.compile(r"(-?\d+(?:\.\d+)?)(?: ± (\d+(?:\.\d+)?))?")
EMPTY_CELL = "-"
"""Content of a cell without a printed number."""

DIVISOR_BY_UNIT = {"percent": 100.0, "fraction": 1.0, "number": 1.0, "squared_255": 255.0**2}
"""Divisor of a printed number, by unit: 65025 for the squared error of a colour printed as 0 to 255."""

PrintedUnit = Literal["percent", "fraction", "number", "squared_255"]
StudyFileKey = Annotated[str, Field(pattern=r"^(data|model|method|train)\.[a-z][a-z0-9_]*$")]
MetricName = Annotated[str, Field(pattern=r"^[a-z_]+/[a-z0-9_]+$")]
RowOrColumnLabels = Annotated[list[str], Field(min_length=2)]


class FrozenModel(BaseModel):
    """A part of a table's file: it may have no other keys, and cannot be changed."""

    model_config = ConfigDict(extra="forbid", frozen=True)


@dataclass(frozen=True)
class PrintedCell:
    """A printed cell.

    Attributes:
        printed: as in the table, in its unit.
        value: the number in the unit of our metric (a fraction for percent), None where none is printed.
        spread: the number after ±, in the unit of `value`; None without one.
    """

    printed: str
    value: float | None
    spread: float | None


class Paper(FrozenModel):
    """A publication; `key` is its short name here, with which its tables' names begin."""

    title: str
    authors: str
    year: int
    key: Literal["fairkl", "dcl", "cclk", "wcl", "fscl"]


class TableLine(FrozenModel):
    """A row or a column.

    Attributes:
        label: as printed, symbols spelled out.
        set: the study-file keys and values of this line's trials.
        published_only: the line has no trials: this project lacks the method, or the table's study has no such setting.
        metric, unit: of the line's cells, where they differ from the table's.
        no_verdict: why the line's printed numbers are shown beside ours but not compared: they measure different
            things.
        prefix: put before the metric's name for a further classifier or encoder of the trial, as `lbfgs` for
            `test/lbfgs_accuracy`.
    """

    label: str
    set: dict[StudyFileKey, bool | int | float | str] = Field(default_factory=dict)
    published_only: bool = False
    metric: MetricName | None = None
    unit: PrintedUnit | None = None
    no_verdict: str | None = None
    prefix: str | None = None


class CellSequence(FrozenModel):
    """Cells of one row over some columns, or of one column over some rows, in their order."""

    row: str | None = None
    columns: RowOrColumnLabels | None = None
    column: str | None = None
    rows: RowOrColumnLabels | None = None

    def cell_labels(self) -> list[tuple[str, str]]:
        """Return (row, column) of each cell."""
        if self.row is not None:
            return [(self.row, column) for column in self.columns or ()]
        return [(row, self.column or "") for row in self.rows or ()]


class BestCellClaim(FrozenModel):
    """The cell that is best `among` its `column` (those above and below it) or its `row` (those beside it)."""

    row: str
    column: str
    among: Literal["column", "row"] = "column"


class Claim(FrozenModel):
    """A conclusion of the table's reader, in exactly one of the forms `better`, `increasing`, `decreasing`, `best`.

    Attributes:
        text: the claim in a sentence.
        better: (row, column) of two cells; the first is better: higher, or lower where less is better.
        increasing, decreasing: cells whose numbers become larger (smaller) in this order.
        best: a cell that is the best one of its column or row.
        why_print_contradicts: why the paper's own numbers do not show it although its text says so; None: they do.
    """

    text: str
    better: tuple[tuple[str, str], tuple[str, str]] | None = None
    increasing: CellSequence | None = None
    decreasing: CellSequence | None = None
    best: BestCellClaim | None = None
    why_print_contradicts: str | None = None

    def cell_labels(self) -> list[tuple[str, str]]:
        """Return (row, column) of each cell that the claim names, in its order."""
        trend = self.increasing or self.decreasing
        if trend is not None:
            return trend.cell_labels()
        return [(self.best.row, self.best.column)] if self.best is not None else list(self.better or ())


class PublishedTable(FrozenModel):
    """A table of a paper, in the printed layout.

    Attributes:
        name: of the table here, and of the study file that runs it.
        source: where it is in the paper: table and section; for a figure, that it prints no numbers.
        metric, unit: our metric closest to the printed one, and the unit of the cells.
        trials: how many are behind a cell; None: the paper does not say.
        spread: what ± is, or that none is printed, and what the paper leaves open about it.
        rows_title, columns_title: titles of the row labels and of the column labels.
        needs: which data the user must provide; None: `study data prepare` gets all.
        no_study: why no cell of it can be run here; it has no study file then. None: the study file of its name runs
            it.
        notes: remarks of the transcription: inconsistencies in the paper, settings of single cells.
        cells: a list per row with a string per column: `90.51 ± 1.55`, `11.8`, or `-` where no number is printed.
        metrics, values: replacements of our metrics, and of a key's values, under another reading of the protocol.
    """

    name: str
    paper: Paper
    source: str
    caption: str
    metric: MetricName
    unit: PrintedUnit
    trials: Annotated[int, Field(ge=2)] | None = None
    spread: str
    rows_title: str
    columns_title: str
    needs: str | None = None
    no_study: str | None = None
    notes: list[str] = Field(default_factory=list)
    columns: Annotated[list[TableLine], Field(min_length=1)]
    rows: Annotated[list[TableLine], Field(min_length=1)]
    cells: list[list[str]]
    claims: list[Claim] = Field(default_factory=list)
    metrics: dict[MetricName, MetricName] = Field(default_factory=dict)
    values: dict[StudyFileKey, dict[str, float]] = Field(default_factory=dict)

    def lines_and_text_at(self, row: str, column: str) -> tuple[TableLine, TableLine, str]:
        """Return the row and the column with these labels, and the printed text of their cell.

        Raises:
            ValueError: there is no such row or column; says which there are.
        """
        across, down = _row_or_column_index(self.rows, row, "row"), _row_or_column_index(self.columns, column, "column")
        return self.rows[across], self.columns[down], self.cells[across][down]

    def unit_of(self, row: str, column: str) -> PrintedUnit:
        """Return the unit in which a cell is printed."""
        of_row, of_column, _ = self.lines_and_text_at(row, column)
        return of_column.unit or of_row.unit or self.unit

    def printed_cell(self, row: str, column: str) -> PrintedCell:
        """Return the printed cell of a row's and a column's label; raises ValueError as `lines_and_text_at` does."""
        *_, printed = self.lines_and_text_at(row, column)
        per_unit = DIVISOR_BY_UNIT[self.unit_of(row, column)]
        value, spread = (None if number is None else number / per_unit for number in _parse_printed(printed))
        return PrintedCell(printed, value, spread)

    def metric_of(self, row: str, column: str) -> str:
        """Return our metric of a cell, as `test/accuracy`."""
        own = self._line_metric(row, column)
        return self.metrics.get(own, own)

    def _line_metric(self, row: str, column: str) -> str:
        of_row, of_column, _ = self.lines_and_text_at(row, column)
        split, name = (of_column.metric or of_row.metric or self.metric).split("/")
        prefixes = [line.prefix for line in (of_row, of_column) if line.prefix]
        return f"{split}/{'_'.join([*prefixes, name])}"

    def why_no_verdict(self, row: str, column: str) -> str | None:
        """Say why a cell's printed number is not compared with ours; None: it is."""
        of_row, of_column, _ = self.lines_and_text_at(row, column)
        return None if self._line_metric(row, column) in self.metrics else of_column.no_verdict or of_row.no_verdict

    def why_not_judged(self, claim: Claim) -> str | None:
        """Say why a claim is not judged by our numbers, by its first cell that is not compared; None: it is judged."""
        return next((why for place in claim.cell_labels() if (why := self.why_no_verdict(*place))), None)

    def trial_keys_of(self, row: str, column: str) -> dict[str, Any] | None:
        """Return the study-file keys and values of a cell's trials.

        None: it has no trials, as this project lacks the method, or its row and column have different values of a key.
        """
        of_row, of_column, _ = self.lines_and_text_at(row, column)
        apart = any(of_row.set[key] != of_column.set[key] for key in of_row.set.keys() & of_column.set.keys())
        if apart or of_row.published_only or of_column.published_only:
            return None
        printed = of_row.set | of_column.set
        return {key: self.values.get(key, {}).get(str(value), value) for key, value in printed.items()}


def _row_or_column_index(lines: Sequence[TableLine], label: str, kind: str) -> int:
    labels = [line.label for line in lines]
    if label not in labels:
        raise ValueError(f"{label!r} is not a {kind}. There are: {', '.join(labels)}")
    return labels.index(label)


def _parse_printed(printed: str) -> tuple[float | None, float | None]:
    """Parse the number of a cell and the number after ±."""
    if printed == EMPTY_CELL:
        return None, None
    match = PRINTED_NUMBER_PATTERN.fullmatch(printed)
    if match is None:
        raise ValueError(f"{printed!r} is not a cell: allowed are forms as '90.51 ± 1.55', '11.8' or '{EMPTY_CELL}'")
    return float(match[1]), None if match[2] is None else float(match[2])


TABLES_FOLDER = Path(__file__).parent


def published_table_names() -> list[str]:
    """List the names of all tables, as `fairkl-table12`."""
    return sorted(path.stem for path in TABLES_FOLDER.glob("*.yaml"))


@cache
def load_published_table(name: str) -> PublishedTable:
    """Load the table of this name.

    Raises:
        UserError: there is no such table; says which there are.
    """
    tables = published_table_names()
    if name not in tables:
        raise UserError(f"{name!r} is not a published table. {suggest_or_list(name, tables, 'There are')}")
    text = (TABLES_FOLDER / f"{name}.yaml").read_text(encoding="utf-8")
    return PublishedTable.model_validate(YAML(typ="safe", pure=True).load(text))
