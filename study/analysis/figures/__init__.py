"""Figures of a study: what papers and the verdict need, drawn with Matplotlib.

Each function gives a Matplotlib figure, or None where there is nothing to draw: `missing` says why.
"""

from collections.abc import Callable

from matplotlib.figure import Figure

from study.analysis.figures.result_figures import draw_ablation, draw_fresh_seeds, draw_importance, draw_learning_curves
from study.analysis.figures.two_metrics import draw_front, draw_trade_off
from study.ranking import Results

FIGURES: dict[str, Callable[[Results], Figure | None]] = {
    "seeds": draw_fresh_seeds,
    "front": draw_front,
    "ablation": draw_ablation,
    "learning_curves": draw_learning_curves,
    "trade_off": draw_trade_off,
    "importance": draw_importance,
}
"""Functions that draw the figures, by their file names in the report's `figures/`."""
