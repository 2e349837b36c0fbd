"""The table of an ablation: what each step from the baseline to the best is worth, as text and as a grid for papers."""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from study.analysis.statistics import formatting
from study.analysis.statistics.ablation_effects import LABELS, PARTS
from study.analysis.statistics.difference import Difference
from study.analysis.tables.grid import Entry, Grid
from study.metrics import is_share
from study.ranking import Spread

Line = Mapping[str, Any]


def is_ablation(table: pd.DataFrame) -> bool:
    """Return whether a frame is one of `study.analysis.statistics.ablation_effects.ablation_frame`."""
    return list(table.columns[: len(LABELS)]) == LABELS


def printed_ablation(frame: pd.DataFrame) -> pd.DataFrame:
    """An `ablation_frame` as text: a row per configuration, for each metric its value and what its step is worth."""
    names = _metrics(frame)
    rows = []
    for place, lines in _rows(frame).items():
        row = dict(zip(("part", "configuration"), place, strict=True))
        for name in names:
            row[name] = formatting.mean(name, _spread(lines.get(name, {})))
            row[f"step in {name}"] = _effect(name, lines.get(name, {}))
        rows.append(row)
    return pd.DataFrame(rows, dtype=object)


def ablation_grid(frame: pd.DataFrame, digits: int = 1) -> Grid:
    """An `ablation_frame` as a grid: a row per configuration, a column per metric, in brackets what its step is worth.

    Args:
        digits: of percentages, see `Grid`.
    """
    names, rows = _metrics(frame), _rows(frame)
    entries = [[_entry(name, lines.get(name, {}), digits) for name in names] for lines in rows.values()]
    columns = [(name,) for name in names]
    return Grid(("part", "configuration"), list(rows), ("",), columns, entries, notes(frame), digits)


def notes(frame: pd.DataFrame) -> list[str]:
    """Return what the numbers of an ablation are."""
    steps = frame[(frame["part"] == "path") & (frame["keys"] != "")]["configuration"].nunique()
    units = (f"{name} in percent" if is_share(name) else name for name in _metrics(frame))
    counts = sorted({int(pairs) for pairs in frame["pairs"] if pairs}) or [0]
    seeds = formatting.count(counts[-1], "seed") if len(counts) == 1 else f"{counts[0]} to {counts[-1]} seeds"
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


def _metrics(frame: pd.DataFrame) -> list[str]:
    return [str(name) for name in frame["metric"].unique()]


def _rows(frame: pd.DataFrame) -> dict[tuple[str, str], dict[str, Line]]:
    """The lines of a printed table by their labels, each by metric."""
    rows: dict[tuple[str, str], dict[str, Line]] = {}
    for line in frame.to_dict("records"):
        place = PARTS[line["part"]], str(line["configuration"])
        rows.setdefault(place, {})[str(line["metric"])] = {str(key): value for key, value in line.items()}
    return rows


def _spread(line: Line) -> Spread | None:
    if not line.get("n"):
        return None
    return Spread(line["mean"], None if pd.isna(line["sd"]) else line["sd"], line["n"])


def _effect(metric: str, line: Line) -> str:
    """`+3.1 points (+0.5 to +5.7)`; empty for the baseline, which is no step."""
    if not line or pd.isna(line["effect"]):
        return "" if line and not line["keys"] else formatting.MISSING
    text = formatting.change(metric, line["effect"])
    if pd.isna(line["low"]):
        return text
    return f"{text} ({formatting.interval(metric, Difference(line['effect'], (line['low'], line['high'])))})"


def _entry(metric: str, line: Line, digits: int) -> Entry:
    """An entry with its step in the same unit, as `71.5 ± 1.2 (+3.1; +0.5 to +5.7)`."""
    spread, effect = _spread(line), ""
    if line and not pd.isna(line["effect"]):
        scale, shown = (100, digits) if is_share(metric) else (1, 3)
        numbers = [f"{scale * line[key]:+.{shown}f}" for key in ("effect", "low", "high") if not pd.isna(line[key])]
        effect = "; ".join([numbers[0], *([" to ".join(numbers[1:])] if numbers[1:] else [])])
    remark = f"({effect})" if spread and effect else effect
    return Entry(metric if spread else "", spread, remark, metric)
