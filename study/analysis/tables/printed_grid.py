"""A printed table in no particular format: labels, numbers, which of them are best, and notes about them.

`study.analysis.tables.table_formats` writes it as Markdown, LaTeX and CSV.
"""

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import pandas as pd

from study.analysis.statistics import formatting
from study.analysis.statistics.ablation_effects import ABLATION_LABEL_COLUMNS, EFFECT_KIND_TITLES, AblationEffect
from study.analysis.statistics.parameter_tables import CELL_STATISTICS, IndexLevels, MetricCell
from study.metrics import is_fraction_metric, is_percent_metric, metric_direction
from study.ranking import SeedStatistics
from study.ranking.difference import Difference
from study.text import pluralise

RankingDirection = Literal["row", "column"]
RankMark = Literal["best", "second"]


@dataclass(frozen=True)
class PrintedEntry:
    """One place of a printed table.

    Attributes:
        metric: of the number; empty for an entry of words.
        statistics: the number, None without one.
        remark: printed after the number, or the words of an entry without one.
        source: whose number it is; only numbers of the same metric and source are ranked against each other.
        rank_mark: its rank.
        is_spread_bracketed: whether its deviation stands in square brackets: it is over configurations, in a table
            where that of other entries, after ±, is over seeds.
    """

    metric: str = ""
    statistics: SeedStatistics | None = None
    remark: str = ""
    source: str = ""
    rank_mark: RankMark | None = None
    is_spread_bracketed: bool = False


@dataclass(frozen=True)
class PrintedGrid:
    """A printed table.

    Attributes:
        row_label_titles: titles of the row labels, one per level.
        rows, columns: labels of each, one per level.
        column_label_titles: titles of the column labels, one per level, empty where the labels need none.
        entries: a list per row with an entry per column.
        notes: sentences to print under the table.
        decimals: of percentages, after the decimal point; gaps and other shares have two more. Other numbers have four
            significant digits.
        are_gaps_in_percent: whether gaps and other shares are printed in percent, as accuracies are: next to a paper's,
            who print them so. Everywhere else they are fractions.
    """

    row_label_titles: tuple[str, ...]
    rows: Sequence[IndexLevels]
    column_label_titles: tuple[str, ...]
    columns: Sequence[IndexLevels]
    entries: Sequence[Sequence[PrintedEntry]]
    notes: Sequence[str] = field(default_factory=tuple)
    decimals: int = 1
    are_gaps_in_percent: bool = False

    def number_text(self, entry: PrintedEntry) -> str:
        """Return `90.51 ± 1.55`, or `90.51 [1.55]`, without a unit; `-` for a missing number, empty for words."""
        spread = entry.statistics
        if spread is None:
            return formatting.MISSING_TEXT if entry.metric else ""
        scale, digits = self._factor_and_digits(entry.metric, spread.mean)
        mean, *deviation = (
            f"{scale * part:z.{digits}f}" for part in (spread.mean, spread.standard_deviation) if part is not None
        )
        return " ".join([mean, *(f"[{one}]" if entry.is_spread_bracketed else f"± {one}" for one in deviation)])

    def with_best_marked(self, along: RankingDirection) -> "PrintedGrid":
        """Mark the best and second-best of each row or column in a copy; equal printed numbers share a mark.

        A number without another of its metric and source to compare with gets no mark, nor does one of a metric of
        which neither direction is better.
        """
        places = [(row, column) for row in range(len(self.rows)) for column in range(len(self.columns))]
        lines: dict[tuple[int, str, str], dict[tuple[int, int], float]] = defaultdict(dict)
        for row, column in places:
            entry = self.entries[row][column]
            if entry.statistics is not None and (better := metric_direction(entry.metric)):
                sign = 1.0 if better == "max" else -1.0
                line = (row if along == "row" else column, entry.metric, entry.source)
                lines[line][row, column] = sign * float(self.number_text(entry).split()[0])
        marks: dict[tuple[int, int], RankMark] = {}
        for line_values in lines.values():
            ranks = sorted(set(line_values.values()), reverse=True)
            for place, value in line_values.items():
                if len(line_values) > 1 and value in ranks[:2]:
                    marks[place] = "best" if value == ranks[0] else "second"
        entries = [
            [replace(entry, rank_mark=marks.get((row, column))) for column, entry in enumerate(line)]
            for row, line in enumerate(self.entries)
        ]
        return replace(self, entries=entries)

    def _factor_and_digits(self, metric: str, mean: float) -> tuple[float, int]:
        """Return the factor of a number, and its digits after the decimal point."""
        if is_percent_metric(metric) or (self.are_gaps_in_percent and is_fraction_metric(metric)):
            return 100.0, self.decimals
        if is_fraction_metric(metric):
            return 1.0, self.decimals + 2
        return 1.0, max(0, 3 - math.floor(math.log10(abs(mean)))) if mean else 3


DEVIATION_NOTES = {
    ("seeds",): "over seeds",
    ("configurations",): "over configurations, each with its mean over its seeds",
    ("configurations", "seeds"): "over seeds, in a cell of one configuration; in a cell of several the sample standard "
    "deviation over configurations, each with its mean over its seeds, stands in square brackets",
}
"""The values that the standard deviation is taken over, by the kinds of cells that a table has."""

COUNTED_TRIALS_IN_WORDS = {
    "pruned": "pruned (by early stopping)",
    "failed": "failed",
    "open": "open (not ended)",
    "unread": "unread (complete, without this metric)",
}
"""Trials without a value, as a cell counts them."""


def metric_cells_to_grid(table: pd.DataFrame, digits: int = 1) -> PrintedGrid:
    """Convert a table of `ablation` or `sensitivity`, as those functions return it, to a grid.

    Args:
        digits: see `PrintedGrid`.
    """
    rows = [_as_index_levels(label) for label in table.index]
    metric, *across = map(str, table.columns.names)
    cells: dict[IndexLevels, list[MetricCell]] = {}
    for place in dict.fromkeys(_as_index_levels(column)[1:] for column in table.columns):
        keys = [(name, *place) if place else name for name in CELL_STATISTICS[3:]]
        columns = zip(*(table[key] for key in keys), strict=True)
        cells[place or (metric,)] = [
            MetricCell(metric, **dict(zip(CELL_STATISTICS[3:], each, strict=True))) for each in columns
        ]
    all_cells = [cell for column in cells.values() for cell in column]
    entries = [[metric_cell_to_entry(cells[label][row], all_cells) for label in cells] for row in range(len(rows))]
    notes = cell_notes(all_cells)
    if any(str(label).startswith("[") for place in [*rows, *cells] for label in place):
        notes.append("A bin [a, b) holds a and not b, the last one both.")
    return PrintedGrid(
        tuple(map(str, table.index.names)), rows, tuple(across) or ("",), list(cells), entries, notes, digits
    )


def metric_cell_to_entry(cell: MetricCell, cells: Collection[MetricCell], source: str = "") -> PrintedEntry:
    """Return a cell as it is printed, with its counts unless all cells of the table have the same.

    Args:
        cells: all of the table.
        source: whose number it is.
    """
    n = len(cell.values)
    counts = ", ".join(f"{getattr(cell, kind)} {kind}" for kind in COUNTED_TRIALS_IN_WORDS if getattr(cell, kind))
    remark = "; ".join(part for part in (str(n) if n else "", counts) if part)
    bracketed = cell.over == "configurations" and len(_deviation_sources(cells)) > 1
    shown = f"({remark})" if remark and not _have_equal_counts(cells) else ""
    return PrintedEntry(cell.metric, cell.seed_statistics, shown, source, is_spread_bracketed=bracketed)


def cell_notes(cells: Collection[MetricCell], gaps_in_percent: bool = False) -> list[str]:
    """Return notes on the numbers of these cells: unit, what ± is taken over, how many, what the brackets count.

    Args:
        gaps_in_percent: as in `PrintedGrid`.
    """
    over = _deviation_sources(cells)
    units = is_percent_metric if not gaps_in_percent else is_fraction_metric
    metrics = ", ".join(dict.fromkeys(_unit_text(cell.metric, units(cell.metric)) for cell in cells))
    if not over:
        return [f"{metrics}: no trial has a value yet.", *_pruned_note(cells)]
    notes = [f"{metrics}: mean ± sample standard deviation {DEVIATION_NOTES[over]}."]
    if _have_equal_counts(cells):
        return [*notes, f"n = {max(len(cell.values) for cell in cells)} in every cell."]
    meanings = [
        meaning for kind, meaning in COUNTED_TRIALS_IN_WORDS.items() if any(getattr(cell, kind) for cell in cells)
    ]
    notes.append("In brackets n" + (f", and trials without a value: {', '.join(meanings)}." if meanings else "."))
    notes += _pruned_note(cells)
    if repeated := sum(cell.repeated for cell in cells):
        verb = "repeats" if repeated == 1 else "repeat"
        notes.append(f"{pluralise(repeated, 'trial')} {verb} another's configuration and seed and counts once.")
    return notes


def _have_equal_counts(cells: Iterable[MetricCell]) -> bool:
    """Return whether all cells have the same number of values and nothing else to count."""
    sizes, others = set(), 0
    for cell in cells:
        sizes.add(len(cell.values))
        others += cell.pruned + cell.failed + cell.open + cell.unread + cell.repeated
    return len(sizes) == 1 and others == 0


def _pruned_note(cells: Iterable[MetricCell]) -> list[str]:
    """Return what the numbers of cells with pruned trials are, and in which direction they miss."""
    notes = []
    for metric in dict.fromkeys(cell.metric for cell in cells if cell.pruned and cell.values):
        deviation = {"max": "too high", "min": "too low", None: "biased"}[metric_direction(metric)]
        notes.append(
            f"A cell with pruned trials is the mean of the trials that were not pruned. If early stopping went by "
            f"{metric}, and trials that lead early end ahead, it is mostly {deviation}."
        )
    return notes


def _deviation_sources(cells: Iterable[MetricCell]) -> tuple[str, ...]:
    """Return what the deviations of these cells are over; cells of one value count only where all are such."""
    filled = [cell for cell in cells if cell.values]
    several = {cell.over for cell in filled if len(cell.values) > 1}
    return tuple(sorted(several or {cell.over for cell in filled}))


def _unit_text(metric: str, in_percent: bool) -> str:
    return f"{metric} in percent" if in_percent else f"{metric} as a fraction" if is_fraction_metric(metric) else metric


def _as_index_levels(label: object) -> IndexLevels:
    return label if isinstance(label, tuple) else (label,)


def is_ablation_frame(table: pd.DataFrame) -> bool:
    """Return whether a frame is one of `study.analysis.statistics.ablation_effects.ablation_frame`."""
    return list(table.columns[: len(ABLATION_LABEL_COLUMNS)]) == ABLATION_LABEL_COLUMNS


def ablation_table(frame: pd.DataFrame) -> pd.DataFrame:
    """Return an `ablation_frame` as text: a row per configuration with each metric and its step's worth."""
    rows = []
    for (part, configuration), lines in _effects_by_label(frame).items():
        row = {"part": part, "configuration": configuration}
        for name in _metrics_of_ablation(frame):
            effect = lines.get(name)
            row[name] = formatting.format_mean_and_deviation(name, effect.statistics if effect else None)
            row[f"step in {name}"] = _effect_text(name, effect)
        rows.append(row)
    return pd.DataFrame(rows, dtype=object)


def ablation_grid(frame: pd.DataFrame, digits: int = 1) -> PrintedGrid:
    """Return an `ablation_frame` as a grid: a row per configuration, a column per metric.

    What a configuration's step is worth stands in brackets.

    Args:
        digits: of percentages, see `PrintedGrid`.
    """
    names, rows = _metrics_of_ablation(frame), _effects_by_label(frame)
    entries = [[_ablation_entry(name, lines.get(name), digits) for name in names] for lines in rows.values()]
    columns = [(name,) for name in names]
    return PrintedGrid(("part", "configuration"), list(rows), ("",), columns, entries, ablation_notes(frame), digits)


def ablation_notes(frame: pd.DataFrame) -> list[str]:
    """Return what the numbers of an ablation are."""
    steps = frame[(frame["part"] == "path") & (frame["keys"] != "")]["configuration"].nunique()
    units = (f"{name} in percent" if is_fraction_metric(name) else name for name in _metrics_of_ablation(frame))
    counts = sorted({int(pairs) for pairs in frame["pairs"] if pairs}) or [0]
    seeds = pluralise(counts[-1], "seed") if len(counts) == 1 else f"{counts[0]} to {counts[-1]} seeds"
    found = [f"{', '.join(units)}: mean ± sample standard deviation over seeds."]
    if steps < 2:
        return [*found, f"What the step is worth is paired over {seeds}, with its 95% interval."]
    return [
        *found,
        f"What a step is worth is paired over {seeds}, with 95% intervals that hold for all of a part's "
        f"{steps} steps at once (Bonferroni).",
        "Step by step: against the line above; these steps sum to the gain. Baseline with: against the baseline.",
        "Best with, where one step is taken back: the best against this line.",
        "Interaction: a step's worth in the best less its worth added to the baseline.",
    ]


def _metrics_of_ablation(frame: pd.DataFrame) -> list[str]:
    return [str(name) for name in frame["metric"].unique()]


def _effects_by_label(frame: pd.DataFrame) -> dict[tuple[str, str], dict[str, AblationEffect]]:
    """Return the lines of a printed table by their labels, each by metric."""
    rows: dict[tuple[str, str], dict[str, AblationEffect]] = {}
    for line in frame.astype(object).where(frame.notna(), None).to_dict("records"):
        spread = SeedStatistics(line["mean"], line["sd"], line["n"]) if line["n"] else None
        ends = None if line["low"] is None else (line["low"], line["high"])
        worth = None if line["effect"] is None else Difference(line["effect"], ends)
        keys = (line["keys"],) if line["keys"] else ()
        told = AblationEffect(line["part"], line["configuration"], keys, spread, worth, line["pairs"])
        rows.setdefault((EFFECT_KIND_TITLES[told.kind], told.label), {})[line["metric"]] = told
    return rows


def _effect_text(metric: str, effect: AblationEffect | None) -> str:
    """Return `+3.1 points (+0.5 to +5.7)`; empty for the baseline, which is no step."""
    if effect is None or effect.difference is None:
        return formatting.MISSING_TEXT if effect is None or effect.keys else ""
    text = formatting.format_difference(metric, effect.difference.value)
    if effect.difference.interval is None:
        return text
    return f"{text} ({formatting.format_difference_interval(metric, effect.difference)})"


def _ablation_entry(metric: str, effect: AblationEffect | None, digits: int) -> PrintedEntry:
    """Return an entry with its step in the same unit, as `71.5 ± 1.2 (+3.1; +0.5 to +5.7)`."""
    spread, worth = effect.statistics if effect else None, ""
    if effect and effect.difference:
        scale, shown = (100, digits) if is_fraction_metric(metric) else (1, 3)
        numbers = [effect.difference.value, *(effect.difference.interval or ())]
        first, *ends = (f"{scale * number:+.{shown}f}" for number in numbers)
        worth = "; ".join([first, *([" to ".join(ends)] if ends else [])])
    remark = f"({worth})" if spread and worth else worth
    return PrintedEntry(metric if spread else "", spread, remark, metric)
