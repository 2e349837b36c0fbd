"""The tuning curve of a random search: the best of k trials, with its band, on both splits."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from study.analysis.figures.style import BLACK, BLUE, metric_axis, new, plain, styled
from study.analysis.statistics import formatting
from study.analysis.statistics.tuning_curve import Draws, curve, draws
from study.home.record import StudyRecord
from study.ranking import baseline
from study.spec import StudySpec

UNBOUNDED = 0.25
"""Opacity of the band where no draw bounds it from above, as a share of that elsewhere."""


@styled
def tuning_curve(spec: StudySpec, record: StudyRecord) -> Figure | None:
    """The median of the best of k trials and its 95% band, on validation, and on test where every trial read it."""
    found = known(spec, record)
    if not found:
        return None
    figure, panels = new(_title(spec, found[0]), 3.4, len(found), sharey=False)
    for axes, one in zip(panels, found, strict=True):
        frame = curve(one)
        _draw(axes, one, frame)
        axes.set_xlabel(f"trials{_cost(one)}")
        axes.set_ylabel(f"best {plain(one.metric)}")
        metric_axis(axes, one.metric)
    reference = baseline(record, spec)
    if reference:
        panels[0].axhline(reference.value, color=BLACK, linewidth=1.3, linestyle="--")
    return figure


def known(spec: StudySpec, record: StudyRecord) -> list[Draws]:
    """The draws by the study's metric, on validation and, where every trial read it, on test; none if there are no
    independent draws."""
    found = [draws(spec, record, name) for name in (spec.metric, spec.test_metric)]
    if not isinstance(found[0], Draws):
        return []
    return [one for one in found if isinstance(one, Draws)]


def view(found: Draws, frame: pd.DataFrame) -> tuple[float, float]:
    """The values to show: those that draws bound, with a margin."""
    finite = found.gains[np.isfinite(found.gains)]
    values = np.abs(finite) if (frame["median"] >= 0).all() else finite
    ends = frame[["low", "high", "median"]].to_numpy()
    inside = ends[(ends >= values.min()) & (ends <= values.max())]
    margin = 0.08 * (inside.max() - inside.min() or 1.0)
    return float(inside.min() - margin), float(inside.max() + margin)


def _draw(axes: Axes, found: Draws, frame: pd.DataFrame) -> None:
    least, most = view(found, frame)
    outside = ((frame["high"] > most) | (frame["low"] < least)).to_numpy()
    low, high = frame["low"].clip(least, most), frame["high"].clip(least, most)
    axes.fill_between(frame.index, low, high, color=BLUE, alpha=0.22, linewidth=0, where=(~outside).tolist())
    axes.fill_between(frame.index, low, high, color=BLUE, alpha=0.22 * UNBOUNDED, linewidth=0)
    axes.plot(frame.index, frame["median"], color=BLUE, linewidth=2.2)
    axes.set_xlim(1, max(2, int(frame.index[-1])))
    axes.set_ylim(least, most)


def _cost(found: Draws) -> str:
    """Return what a trial costs."""
    hours = f", {found.gpu_hours:.2g} GPU hours" if found.gpu_hours else ""
    return f" of {found.epochs:.4g} epochs{hours} each"


def _title(spec: StudySpec, found: Draws) -> str:
    frame = curve(found)
    half = max(1, len(found.gains) // 2)
    row = frame.loc[frame.index[frame.index <= half][-1]]
    end = "low" if spec.mode == "max" else "high"
    reached, surely = (formatting.value(spec.metric, float(row[name])) for name in ("median", end))
    at = "at least" if spec.mode == "max" else "at most"
    return f"The best of {formatting.count(half, 'trial')}: median {spec.metric} {reached}, {at} {surely} with 95%"
