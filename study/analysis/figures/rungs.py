"""Where pruned trials are drawn: in a row for the epoch at which they ended, below all values of complete trials."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from study.analysis.figures.style import PALE
from study.analysis.statistics.formatting import in_percent
from study.home.record import TrialRecord

ROWS = 4
"""Rows at most; where trials ended at more epochs, a row stands for several."""


@dataclass(frozen=True)
class RungRows:
    """Rows below an axis of values.

    Attributes:
        low: where the values begin; below it are the rows.
        heights: of each pruned trial, by number.
        names: of the rows, by height.
        ticks: of the values.
    """

    low: float
    heights: Mapping[int, float] = field(default_factory=dict)
    names: Mapping[float, str] = field(default_factory=dict)
    ticks: Sequence[float] = ()

    @classmethod
    def of(cls, trials: Sequence[TrialRecord], values: Sequence[float]) -> "RungRows":
        """The rows of the pruned ones among these trials, below these values."""
        low, high = (min(values), max(values)) if values else (0.0, 1.0)
        low, high = (low, high) if high > low else (low - 0.05, high + 0.05)
        pruned = [trial for trial in trials if trial.state == "pruned"]
        epochs = sorted({trial.epochs for trial in pruned})
        parts = [part.tolist() for part in np.array_split(epochs, min(ROWS, len(epochs)))] if epochs else []
        step = 0.1 * (high - low)
        rows = {low - (1.3 + len(parts) - 1 - place) * step: part for place, part in enumerate(parts)}
        at = {epoch: height for height, part in rows.items() for epoch in part}
        names = {height: _name(part) for height, part in rows.items()}
        ticks = [float(tick) for tick in MaxNLocator(5).tick_values(low, high) if low - 0.5 * step <= tick]
        return cls(low - 0.65 * step, {trial.number: at[trial.epochs] for trial in pruned}, names, ticks)

    def apply(self, axes: Axes, metric: str) -> None:
        """Number the axis where values lie, and name the rows below."""
        if self.names:
            axes.set_yticks(list(self._labels(metric)), list(self._labels(metric).values()))
            axes.axhline(self.low, color=PALE, linewidth=0.9, zorder=1)

    def axis(self, metric: str) -> dict[str, Any]:
        """The same for an axis of Plotly."""
        if not self.names:
            return {}
        labels = self._labels(metric)
        return {"tickvals": list(labels), "ticktext": list(labels.values()), "zeroline": False}

    def _labels(self, metric: str) -> dict[float, str]:
        values = {tick: f"{100 * tick:.4g}%" if in_percent(metric) else f"{tick:.4g}" for tick in self.ticks}
        return {**self.names, **values}


def _name(epochs: Sequence[int]) -> str:
    return f"epoch {epochs[0]}" if len(epochs) == 1 else f"epochs {epochs[0]} to {epochs[-1]}"
