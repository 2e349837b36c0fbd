"""The look of every figure: one font, colours that colour-blind readers can tell apart, the papers' symbols."""

import importlib
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from textwrap import fill
from typing import TypedDict

import matplotlib
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke
from matplotlib.ticker import FuncFormatter, Locator

from study.analysis.statistics.formatting import SYMBOL_BY_KEY
from study.metrics import is_percent_metric

# Okabe and Ito, "Color Universal Design" (2008)
BLUE, ORANGE, VERMILLION, BLACK = "#0072B2", "#E69F00", "#D55E00", "#222222"
GREY, PALE_GREY = "#767676", "#C4C4C4"

MATPLOTLIB_RC_PARAMS: dict[str, object] = {
    "font.family": "DejaVu Sans",  # comes with Matplotlib, so that a figure looks the same everywhere
    "mathtext.fontset": "dejavusans",
    **dict.fromkeys(("font.size", "axes.titlesize", "axes.labelsize"), 10.5),
    "figure.titlesize": 11.5,
    "figure.titleweight": "bold",
    **dict.fromkeys(("axes.edgecolor", "xtick.color", "ytick.color"), GREY),
    **dict.fromkeys(("xtick.labelcolor", "ytick.labelcolor", "text.color", "axes.labelcolor"), BLACK),
    **dict.fromkeys(("axes.spines.top", "axes.spines.right", "legend.frameon"), False),
    **dict.fromkeys(("axes.grid", "axes.axisbelow"), True),
    "grid.color": "#E6E6E6",
    "grid.linewidth": 0.8,
    "legend.fontsize": 9.5,
    "figure.facecolor": "white",
    "savefig.dpi": 180,
    "pdf.fonttype": 42,  # letters stay letters, which journals ask for
}

STACKED_FIGURE_WIDTH_SHARE = 0.62  # of the width, for panels below one another
FIGURE_WIDTH_INCHES = 7.0  # inches: text stays readable when a phone shows the figure at full width


class MarkStyle(TypedDict, total=False):
    """Look of marks, in Matplotlib's words and units, as `Axes.scatter` takes it."""

    marker: str
    s: float
    color: str
    facecolors: str
    edgecolors: str
    linewidths: float
    alpha: float
    rasterized: bool
    zorder: float


COMPLETE_MARK: MarkStyle = {"s": 34, "color": BLUE, "edgecolors": "white", "linewidths": 0.6, "zorder": 4}
BASELINE_MARK: MarkStyle = {"marker": "*", "s": 150, "color": BLACK, "edgecolors": "white", "linewidths": 0.8}
REFERENCE_MARK: MarkStyle = {"marker": "D", "s": 44, "color": GREY, "edgecolors": "white", "linewidths": 0.8}
BEST_MARK: MarkStyle = {"marker": "o", "s": 120, "facecolors": "none", "edgecolors": ORANGE, "linewidths": 2.2}

MIN_PLOTTED_CONFIGURATIONS = 5
"""Smallest number of configurations in a plot: fewer say no more than a table."""

MAX_VECTOR_MARKS = 1000  # more marks than this become pixels in a PDF


@contextmanager
def _use_figure_style() -> Iterator[None]:
    """Draw figures in this style, whatever the user's settings.

    A figure looks into IPython if that is imported. MLflow imports it, in another thread and at any time: it is
    imported here first (0.1 s), as a half of it has no version and would end the report.
    """
    with suppress(ImportError):
        importlib.import_module("IPython")
    with matplotlib.rc_context(MATPLOTLIB_RC_PARAMS):  # type: ignore[arg-type]
        yield


with_figure_style = _use_figure_style()
"""Decorator of functions that draw."""


def opacity_for_count(count: int) -> float:
    """Return the opacity of a mark among `count`: 1 up to 150, less where marks would hide one another."""
    return min(1.0, (150 / max(count, 1)) ** 0.5)


def mark_style_for_count(mark: MarkStyle, count: int) -> MarkStyle:
    """Return a mark as it is drawn among `count` others: of many the opacity is less, and they become pixels."""
    return {**mark, "alpha": opacity_for_count(count), "rasterized": count > MAX_VECTOR_MARKS}


def parameter_axis_label(key: str) -> str:
    """Return a parameter's axis label: the papers' symbol and the key."""
    return f"{SYMBOL_BY_KEY[key]}   {key}" if key in SYMBOL_BY_KEY else escape_dollars(key)


def escape_dollars(text: str) -> str:
    """Escape the dollar signs of a text, so that they do not start a formula."""
    return text.replace("$", r"\$")


_ARE_PANELS_STACKED = ContextVar("stacked", default=False)


@contextmanager
def stack_panels() -> Iterator[None]:
    """Let figures that are drawn meanwhile have their panels below one another, for a narrow screen."""
    token = _ARE_PANELS_STACKED.set(True)
    try:
        yield
    finally:
        _ARE_PANELS_STACKED.reset(token)


def new_figure(
    title: str, height: float, columns: int = 1, sharex: bool = False, sharey: bool = True
) -> tuple[Figure, Sequence[Axes]]:
    """Return a figure of this height (inches) with a title, and its axes in one row; see `stack_panels`."""
    width, line, rows = FIGURE_WIDTH_INCHES, 66, 1
    if _ARE_PANELS_STACKED.get():
        rows, columns, height = columns, 1, height * columns
        width, line = FIGURE_WIDTH_INCHES * STACKED_FIGURE_WIDTH_SHARE, 40
    figure = Figure(figsize=(width, height), layout="constrained")
    figure.suptitle(fill(escape_dollars(title), line), x=0.01, ha="left")
    axes = figure.subplots(rows, columns, squeeze=False, sharex=sharex, sharey=sharey)
    return figure, list(axes.flat)


PANEL_LABEL_WIDTH = 20
"""Characters of a line below one of two or three panels."""


def wrap_metric_name(name: str) -> str:
    """Return a metric's name in lines that fit below a panel, broken behind `/` and `_`."""
    lines = [""]
    for part in re.findall(r"[^/_]*[/_]?", name):
        if lines[-1] and len(lines[-1] + part) > PANEL_LABEL_WIDTH:
            lines.append("")
        lines[-1] += part
    return "\n".join(lines)


class _ZeroToOneLocator(Locator):
    """Ticks of another locator, but none for what no share can be: an axis may go on, for the room of marks."""

    def __init__(self, chosen: Locator) -> None:
        self._chosen = chosen

    def __call__(self) -> Sequence[float]:
        return [float(tick) for tick in self._chosen() if -1e-9 <= tick <= 1 + 1e-9]


def format_metric_axis(axes: Axes, metric: str, which: str = "y") -> None:
    """Show accuracies in percent on an axis, from 0 to 100%."""
    if is_percent_metric(metric):
        axis = axes.yaxis if which == "y" else axes.xaxis
        if not isinstance(axis.get_major_locator(), _ZeroToOneLocator):
            axis.set_major_locator(_ZeroToOneLocator(axis.get_major_locator()))
        axis.set_major_formatter(FuncFormatter(lambda share, _: f"{100 * share:.4g}%"))


def label_curve_ends(axes: Axes, labels: Sequence[tuple[float, float, str, str]]) -> None:
    """Write names to the right of the ends of curves, in a colour, pushed apart where they would overlap.

    Args:
        labels: (x, y, name, colour) of each.
    """
    size = axes.get_figure(root=True).get_size_inches() * 72  # type: ignore[union-attr]
    share = axes.get_position()
    across, up = np.ptp(axes.get_xlim()) / (size[0] * share.width), np.ptp(axes.get_ylim()) / (size[1] * 0.7)
    line, placed = 13.0, list[tuple[float, float]]()
    for x, y, text, colour in sorted(labels, key=lambda end: end[1]):
        at = y / up
        for other, taken in placed:  # upwards
            if abs(other - x / across) < 6.0 * len(text) and at < taken + line:
                at = taken + line
        placed.append((x / across, at))
        axes.annotate(
            escape_dollars(text),
            (x, y),
            xytext=(7, at - y / up),
            textcoords="offset points",
            color=colour,
            va="center",
            fontweight="bold",
            fontsize=9.5,
            annotation_clip=False,
            path_effects=[withStroke(linewidth=3, foreground="white")],  # a line may pass below it
            zorder=7,
        )


def add_figure_legend(figure: Figure, *drawn: Axes) -> None:
    """Add one legend for the whole figure, below it, from the labels of these axes, each label once."""
    by_name: dict[str, Artist] = {}
    for axes in drawn:
        for handle, name in zip(*axes.get_legend_handles_labels(), strict=True):
            by_name.setdefault(name, handle)
    if by_name:
        handles, names = list(by_name.values()), list(by_name)
        room = 95 * figure.get_size_inches()[0] / FIGURE_WIDTH_INCHES
        parts = {n: [part for part in np.array_split(names, n) if len(part)] for n in (len(names), 3, 2)}
        columns = next((n for n in parts if sum(max(map(len, part)) + 8 for part in parts[n]) < room), 1)
        figure.legend(handles, names, loc="outside lower left", ncols=columns, handletextpad=0.4)
