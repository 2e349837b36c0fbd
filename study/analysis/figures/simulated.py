"""The best of simulated searches against what they cost, with bands over their courses."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from study.analysis.figures.best_over_time import unit_of
from study.analysis.figures.style import PALETTE, metric_axis, new, plain, styled

Best = Mapping[str, NDArray[np.float64]]
"""By axis (epochs, seconds, money): (points, 4), where, and mean, low and high of the best so far."""

SHORT = 42
"""Letters of a variant's words, of which two fit beside each other."""


@styled
def simulated(title: str, metric: str, variants: Sequence[tuple[str, Best]]) -> Figure:
    """One panel for each of epochs, time and money (where anything is paid), one line with its band per variant."""
    paid = any(best["money"].size and best["money"][:, 0].max() > 0 for _, best in variants)
    shown = ("epochs", "seconds", "money") if paid else ("epochs", "seconds")
    height = 3.2 + 0.2 * len(variants)
    figure, panels = new(title, height, len(shown))
    for axis, axes in zip(shown, panels, strict=True):
        end = max((best[axis][-1, 0] for _, best in variants if best[axis].size), default=1.0)
        scale, unit = unit_of(end) if axis == "seconds" else (1, axis)
        for place, (words, best) in enumerate(variants):
            if not best[axis].size:
                continue
            where, mean, low, high = best[axis].T
            colour = PALETTE[place % len(PALETTE)]
            axes.fill_between(where / scale, low, high, color=colour, alpha=0.15, linewidth=0, step="post")
            axes.step(where / scale, mean, where="post", color=colour, linewidth=2.0, label=plain(words) or None)
        axes.set_xlim(0, end / scale)
        axes.set_xlabel(f"{unit} of the study" if axis == "seconds" else unit)
        metric_axis(axes, metric)
    panels[0].set_ylabel("best so far, on fresh seeds")
    handles, names = panels[0].get_legend_handles_labels()
    if handles:
        short = max(map(len, names)) < SHORT
        figure.legend(handles, names, loc="outside lower left", ncols=2 if short else 1, handletextpad=0.4)
    return figure
