"""A printed table in no particular format: labels, numbers, which of them are best, and notes about them.

`study.analysis.tables.formats` writes it as Markdown, LaTeX and CSV.
"""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from study.analysis.statistics import formatting
from study.analysis.statistics.cell_tables import Place
from study.metrics import better, is_share
from study.ranking import Spread

Along = Literal["row", "column"]
Mark = Literal["best", "second"]


@dataclass(frozen=True)
class Entry:
    """One place of a printed table.

    Attributes:
        metric: of the number; empty for an entry of words.
        spread: the number, None without one.
        remark: printed after the number, or the words of an entry without one.
        source: whose number it is; only numbers of the same metric and source are ranked against each other.
        mark: its rank.
        bracketed: whether its deviation stands in square brackets: it is over configurations, in a table where that of
            other entries, after ±, is over seeds.
    """

    metric: str = ""
    spread: Spread | None = None
    remark: str = ""
    source: str = ""
    mark: Mark | None = None
    bracketed: bool = False


@dataclass(frozen=True)
class Grid:
    """A printed table.

    Attributes:
        stub: titles of the row labels, one per level.
        rows, columns: labels of each, one per level.
        heads: titles of the column labels, one per level, empty where the labels need none.
        entries: a list per row with an entry per column.
        notes: sentences to print under the table.
        digits: of percentages, after the decimal point; gaps and other shares have two more. Other numbers have four
            significant digits.
        gaps_in_percent: whether gaps and other shares are printed in percent, as accuracies are: next to a paper's, who
            print them so. Everywhere else they are fractions.
    """

    stub: tuple[str, ...]
    rows: Sequence[Place]
    heads: tuple[str, ...]
    columns: Sequence[Place]
    entries: Sequence[Sequence[Entry]]
    notes: Sequence[str] = field(default_factory=tuple)
    digits: int = 1
    gaps_in_percent: bool = False

    def number(self, entry: Entry) -> str:
        """`90.51 ± 1.55`, or `90.51 [1.55]`, without a unit, `-` for a missing number, empty for an entry of words."""
        spread = entry.spread
        if spread is None:
            return formatting.MISSING if entry.metric else ""
        scale, digits = self._form(entry.metric, spread.mean)
        mean, *deviation = (
            f"{scale * part:z.{digits}f}" for part in (spread.mean, spread.deviation) if part is not None
        )
        return " ".join([mean, *(f"[{one}]" if entry.bracketed else f"± {one}" for one in deviation)])

    def marked(self, along: Along) -> "Grid":
        """The same grid with the best and second-best of each row or column marked; equal printed numbers share a mark.

        A number without another of its metric and source to compare with gets no mark, nor does one of a metric of
        which neither direction is better.
        """
        places = [(row, column) for row in range(len(self.rows)) for column in range(len(self.columns))]
        lines: dict[tuple[int, str, str], dict[tuple[int, int], float]] = defaultdict(dict)
        for row, column in places:
            entry = self.entries[row][column]
            if entry.spread is not None and (direction := better(entry.metric)):
                sign = 1.0 if direction == "max" else -1.0
                line = (row if along == "row" else column, entry.metric, entry.source)
                lines[line][row, column] = sign * float(self.number(entry).split()[0])
        marks: dict[tuple[int, int], Mark] = {}
        for line_values in lines.values():
            ranks = sorted(set(line_values.values()), reverse=True)
            for place, value in line_values.items():
                if len(line_values) > 1 and value in ranks[:2]:
                    marks[place] = "best" if value == ranks[0] else "second"
        entries = [
            [replace(entry, mark=marks.get((row, column))) for column, entry in enumerate(line)]
            for row, line in enumerate(self.entries)
        ]
        return replace(self, entries=entries)

    def _form(self, metric: str, mean: float) -> tuple[float, int]:
        """The factor of a number, and its digits after the decimal point."""
        if formatting.in_percent(metric) or (self.gaps_in_percent and is_share(metric)):
            return 100.0, self.digits
        if is_share(metric):
            return 1.0, self.digits + 2
        return 1.0, max(0, 3 - math.floor(math.log10(abs(mean)))) if mean else 3
