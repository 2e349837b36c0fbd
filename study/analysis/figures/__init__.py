"""Figures of a study: what papers and the verdict need, drawn with Matplotlib.

Each function gives a Matplotlib figure, or None where there is nothing to draw: `missing` says why.
"""

from collections.abc import Callable

from matplotlib.figure import Figure

from study.analysis.figures.result_figures import ablation, importance, learning_curves, seeds
from study.analysis.figures.two_metrics import front, trade_off
from study.ranking import Results

FIGURES: dict[str, Callable[[Results], Figure | None]] = {
    "seeds": seeds,
    "front": front,
    "ablation": ablation,
    "learning_curves": learning_curves,
    "trade_off": trade_off,
    "importance": importance,
}
"""Functions that draw the figures, by their file names in the report's `figures/`."""
