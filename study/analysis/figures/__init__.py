"""Figures of a study: what papers and the verdict need, drawn with Matplotlib.

Each function gives a Matplotlib figure, or None where there is nothing to draw: `missing_figures` says why.
"""

from collections.abc import Callable

from matplotlib.figure import Figure

from study.analysis.figures.result_figures import (
    plot_ablation,
    plot_fresh_seed_values,
    plot_importance,
    plot_learning_curves,
)
from study.analysis.figures.trade_off_figures import plot_front, plot_trade_off
from study.ranking import Results

FIGURES: dict[str, Callable[[Results], Figure | None]] = {
    "seeds": plot_fresh_seed_values,
    "front": plot_front,
    "ablation": plot_ablation,
    "learning_curves": plot_learning_curves,
    "trade_off": plot_trade_off,
    "importance": plot_importance,
}
"""Functions that draw the figures, by their file names in the report's `figures/`."""
