"""A table of a paper: what its file holds, its cells as numbers, what its rows and columns are in our terms."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

CHECKED = ConfigDict(extra="forbid", frozen=True)
PRINTED = re.compile(r"(-?\d+(?:\.\d+)?)(?: ± (\d+(?:\.\d+)?))?")
NOTHING = "-"
"""What a cell without a printed number holds."""

PER_UNIT = {"percent": 100.0, "fraction": 1.0, "number": 1.0, "squared_255": 255.0**2}
"""By unit, what a printed number is divided by: 65025 for the error of a colour that is printed as 0 to 255."""

Unit = Literal["percent", "fraction", "number", "squared_255"]
Key = Annotated[str, Field(pattern=r"^(data|model|method|train)\.[a-z][a-z0-9_]*$")]
Metric = Annotated[str, Field(pattern=r"^[a-z_]+/[a-z0-9_]+$")]
Trend = Literal["increasing", "decreasing"]
Labels = Annotated[list[str], Field(min_length=2)]


@dataclass(frozen=True)
class Cell:
    """A printed cell.

    Attributes:
        printed: as it stands in the table, in its unit.
        value: the number in the unit of our metric (a fraction where percent is printed), None where none is printed.
        spread: what stands behind ±, in the unit of `value`; None where nothing does.
    """

    printed: str
    value: float | None
    spread: float | None


class Paper(BaseModel):
    """title, authors, year: of the publication; key: its short name here, with which the tables' names begin."""

    model_config = CHECKED
    title: str
    authors: str
    year: int
    key: Literal["fairkl", "dcl", "cclk", "wcl", "fscl"]


class Line(BaseModel):
    """A row or a column.

    Attributes:
        label: as printed, symbols spelled out.
        set: the study-file keys and values that a trial of this line has.
        published_only: there are no trials of it: a method that this project does not have, or a setting that no trial
            of the table's study has.
        metric, unit: of the line's cells, where they are not the table's.
        prefix: what stands before the metric's name, as `lbfgs` for `test/lbfgs_accuracy`: of a further classifier or
            encoder of the trial.
    """

    model_config = CHECKED
    label: str
    set: dict[Key, bool | int | float | str] = Field(default_factory=dict)
    published_only: bool = False
    metric: Metric | None = None
    unit: Unit | None = None
    prefix: str | None = None


class Along(BaseModel):
    """Cells of one row over some columns, or of one column over some rows, in their order."""

    model_config = CHECKED
    row: str | None = None
    columns: Labels | None = None
    column: str | None = None
    rows: Labels | None = None

    @model_validator(mode="after")
    def _one_form(self) -> Self:
        given = [key for key in ("row", "columns", "column", "rows") if getattr(self, key) is not None]
        if given not in (["row", "columns"], ["column", "rows"]):
            raise ValueError(f"{', '.join(given) or 'nothing'} given: give row and columns, or column and rows")
        return self

    def cells(self) -> list[tuple[str, str]]:
        """(row, column) of each cell."""
        if self.row is not None:
            return [(self.row, column) for column in self.columns or ()]
        return [(row, self.column or "") for row in self.rows or ()]


class Best(BaseModel):
    """row, column: of the cell that is best. among: `column`: of those above and below it; `row`: beside it."""

    model_config = CHECKED
    row: str
    column: str
    among: Literal["column", "row"] = "column"


class Claim(BaseModel):
    """What a reader takes from the table; exactly one of the forms.

    Attributes:
        text: in a sentence.
        better: (row, column) of two cells, the first of which is better: higher, or lower where less is better.
        increasing, decreasing: cells whose numbers become larger (smaller) in this order.
        best: a cell that is the best one of its column or row.
        not_as_printed: why the paper's own numbers do not show it, though its text says it; None: they do.
    """

    model_config = CHECKED
    text: str
    better: tuple[tuple[str, str], tuple[str, str]] | None = None
    increasing: Along | None = None
    decreasing: Along | None = None
    best: Best | None = None
    not_as_printed: str | None = None

    @model_validator(mode="after")
    def _one_form(self) -> Self:
        given = [key for key in ("better", "increasing", "decreasing", "best") if getattr(self, key) is not None]
        if len(given) != 1:
            raise ValueError(f"{', '.join(given) or 'nothing'} given: give one of better, increasing, decreasing, best")
        return self

    def cells(self) -> list[tuple[str, str]]:
        """(row, column) of each cell that the claim names, in its order."""
        trend = self.increasing or self.decreasing
        if trend is not None:
            return trend.cells()
        return [(self.best.row, self.best.column)] if self.best is not None else list(self.better or ())


class PublishedTable(BaseModel):
    """A table of a paper, in the printed layout.

    Attributes:
        name: of the table here, and of the study file that runs it.
        source: where it stands: table, section; for a figure that it prints no numbers.
        metric, unit: our metric that is nearest to what is printed, and what the cells are printed in.
        trials: how many are behind a cell; None: the paper does not say.
        spread: what ± is, or that none is printed, and what the paper does not say about it.
        rows_title, columns_title: of the rows' labels and the columns'.
        needs: which data the user must bring; None: `study data prepare` has all.
        notes: what was found when it was transcribed: inconsistencies of the print, settings of single cells.
        cells: a list per row with a string per column: `90.51 ± 1.55`, `11.8`, or `-` where no number is printed.
    """

    model_config = CHECKED
    name: str
    paper: Paper
    source: str
    caption: str
    metric: Metric
    unit: Unit
    trials: Annotated[int, Field(ge=2)] | None = None
    spread: str
    rows_title: str
    columns_title: str
    needs: str | None = None
    notes: list[str] = Field(default_factory=list)
    columns: Annotated[list[Line], Field(min_length=1)]
    rows: Annotated[list[Line], Field(min_length=1)]
    cells: list[list[str]]
    claims: list[Claim] = Field(default_factory=list)

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        rows, columns = _labels(self.rows, "row"), _labels(self.columns, "column")
        widths = [len(row) for row in self.cells]
        if widths != [len(columns)] * len(rows):
            raise ValueError(f"rows of {widths} cells given, needed are {len(rows)} of {len(columns)}")
        for row in self.cells:
            for printed in row:
                _numbers(printed)
        for claim in self.claims:
            for row_label, column_label in claim.cells():
                self.at(row_label, column_label)
        return self

    def at(self, row: str, column: str) -> tuple[Line, Line, str]:
        """The row and the column of these labels, and what is printed where they meet.

        Raises:
            ValueError: there is no such row or column; says which there are.
        """
        across, down = _index(self.rows, row, "row"), _index(self.columns, column, "column")
        return self.rows[across], self.columns[down], self.cells[across][down]

    def unit_of(self, row: str, column: str) -> Unit:
        """What a cell is printed in."""
        of_row, of_column, _ = self.at(row, column)
        return of_column.unit or of_row.unit or self.unit

    def cell(self, row: str, column: str) -> Cell:
        """The printed cell of a row's and a column's label; ValueError where there is none."""
        *_, printed = self.at(row, column)
        per_unit = PER_UNIT[self.unit_of(row, column)]
        value, spread = (None if number is None else number / per_unit for number in _numbers(printed))
        return Cell(printed, value, spread)

    def metric_of(self, row: str, column: str) -> str:
        """Our metric of a cell, as `test/accuracy`."""
        of_row, of_column, _ = self.at(row, column)
        split, name = (of_column.metric or of_row.metric or self.metric).split("/")
        prefixes = [line.prefix for line in (of_row, of_column) if line.prefix]
        return f"{split}/{'_'.join([*prefixes, name])}"

    def where(self, row: str, column: str) -> dict[str, Any] | None:
        """The study-file keys and values of a cell's trials.

        None: there are none, since the project has no such method, or row and column ask for different values of a key.
        """
        of_row, of_column, _ = self.at(row, column)
        apart = any(of_row.set[key] != of_column.set[key] for key in of_row.set.keys() & of_column.set.keys())
        if apart or of_row.published_only or of_column.published_only:
            return None
        return of_row.set | of_column.set


def _labels(lines: Sequence[Line], kind: str) -> list[str]:
    labels = [line.label for line in lines]
    twice = sorted({label for label in labels if labels.count(label) > 1})
    if twice:
        raise ValueError(f"{kind} labels given twice: {', '.join(twice)}")
    return labels


def _index(lines: Sequence[Line], label: str, kind: str) -> int:
    labels = [line.label for line in lines]
    if label not in labels:
        raise ValueError(f"{label!r} is no {kind}, there are: {', '.join(labels)}")
    return labels.index(label)


def _numbers(printed: str) -> tuple[float | None, float | None]:
    """The number of a cell and that behind ±."""
    if printed == NOTHING:
        return None, None
    found = PRINTED.fullmatch(printed)
    if found is None:
        raise ValueError(f"{printed!r} is no cell: '90.51 ± 1.55', '11.8' or '{NOTHING}' is")
    return float(found[1]), None if found[2] is None else float(found[2])
