"""Figures of a study: what papers and the verdict need, drawn with Matplotlib; `by_optuna` has those of the search.

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

OF_RESULTS = ("seeds", "front", "ablation", "learning_curves")
"""Figures of what a study came to; the others tell of its search, see `study.home.record`."""


def shown(name: str, results: Results) -> Results:
    """Return the results that a figure is drawn from: with extended trials only if it is one of `OF_RESULTS`."""
    return results if name in OF_RESULTS else results.without_extensions
