"""What the interactive figures share: a trial's mark and hover text, and an axis' label.

Plotly interprets some HTML in texts, so every text from a user is escaped.
"""

from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np
import plotly.graph_objects as go
from plotly.colors import get_colorscale, sample_colorscale
from plotly.subplots import make_subplots

from study import metrics
from study.analysis.figures.scale import Scale
from study.analysis.figures.style import BLACK, BLUE, GREY, MARK_WORDS, ORANGE, PALE
from study.analysis.statistics import formatting
from study.analysis.statistics.frame import thin
from study.home.record import StudyRecord, TrialRecord
from study.ranking import baseline, candidates, epochs
from study.spec import StudySpec

GRID, GROUND, PALE_BLUE = "#E6E6E6", "#FFFFFF", "#BFDCEC"
"""Of lines behind marks, of the page, and of bands behind blue lines."""

MOST_MARKS = 1000
"""Trials of one kind in one figure at most, evenly chosen, so that the page stays small and quick."""

SYMBOLS = {
    "method.alpha": "α",  # noqa: RUF001
    "method.lambda": "λ",
    "method.epsilon": "ε",
    "method.tau_plus": "τ⁺",
    "method.beta": "β",
    "method.sigma2": "σ²",
    "method.temperature": "τ",
    "method.positives": "M",
    "data.rho": "ρ",  # noqa: RUF001
}
MARKS: dict[str, dict[str, Any]] = {
    "complete": {"symbol": "circle", "size": 8, "color": BLUE, "line": {"width": 1, "color": GROUND}},
    "pruned": {"symbol": "triangle-down-open", "size": 7, "color": GREY},
    "best": {"symbol": "circle-open", "size": 15, "color": ORANGE, "line": {"width": 3}},
    "baseline": {"symbol": "star", "size": 13, "color": BLACK},
}

DARK = {
    BLACK: "#E4E7EB",
    BLUE: "#56B4E9",
    GREY: "#A0A9B4",
    PALE: "#59636F",
    GRID: "#323A43",
    GROUND: "#15191E",
    PALE_BLUE: "#1F4A63",
    **{
        colour: light
        for scale in ("viridis", "cividis")
        for at, colour in get_colorscale(scale)
        for light in sample_colorscale(scale, [0.4 + 0.6 * at])
    },
}
"""What the page puts in place of each colour where the reader's screen is dark; of colour scales only the lighter part.
Figures name these colours alone, in this spelling, beside orange and vermillion."""

_AXIS: dict[str, Any] = {
    "gridcolor": GRID,
    "linecolor": GRID,
    "zerolinecolor": GRID,
    "automargin": True,
    "exponentformat": "e",
    "title": {"standoff": 12},
}
_HOVER = {"bgcolor": GROUND, "bordercolor": GREY, "font": {"color": BLACK}, "align": "left"}
_LAYOUT = {"paper_bgcolor": GROUND, "plot_bgcolor": GROUND, "hoverlabel": _HOVER, "xaxis": _AXIS, "yaxis": _AXIS}
TEMPLATE = go.layout.Template(layout=_LAYOUT)


def new(
    rows: int = 1,
    columns: int = 1,
    height: int = 400,
    subplot_titles: Sequence[str] | None = None,
    shared_yaxes: bool = True,
    horizontal: float = 0.04,
    **layout: Any,
) -> go.Figure:
    """A figure of panels, row by row.

    Args:
        height: in pixels.
        horizontal: the space between two columns, as a share of the width.
        layout: of Plotly.
    """
    spaces = {"horizontal_spacing": horizontal, "vertical_spacing": 0.2}
    figure = make_subplots(rows, columns, shared_yaxes=shared_yaxes, subplot_titles=subplot_titles, **spaces)
    figure.update_annotations(font_size=13)
    font = {"family": "system-ui, sans-serif", "size": 13, "color": BLACK}
    below = {"orientation": "h", "x": 0, "y": 0, "yanchor": "bottom", "yref": "container"}
    bottom = 85 if layout.get("showlegend", True) else 50
    margin = {"l": 60, "r": 20, "t": 55 if subplot_titles else 30, "b": bottom}
    figure.update_layout(template=TEMPLATE, height=height, font=font, legend=below, hovermode="closest")
    figure.update_layout(**{"margin": margin, **layout})
    return figure


def by_kind(spec: StudySpec, record: StudyRecord, trials: Sequence[TrialRecord]) -> dict[str, Sequence[TrialRecord]]:
    """Trials by their kind of mark: `complete`, `pruned`, `baseline`, `best`."""
    by_state = {
        state: thin([trial for trial in trials if trial.state == state], MOST_MARKS) for state in ("complete", "pruned")
    }
    best, reference = next(iter(candidates(record, spec)), None), baseline(record, spec)
    named = {name: [candidate.trial] for name, candidate in (("baseline", reference), ("best", best)) if candidate}
    return {name: of_kind for name, of_kind in (by_state | named).items() if of_kind}


def marks(
    spec: StudySpec, spots: Sequence[tuple[TrialRecord, tuple[float, float | None]]], kind: str, showlegend: bool = True
) -> go.Scatter:
    """Trials as marks with hover texts."""
    return go.Scatter(
        x=np.array([at[0] for _, at in spots]),
        y=np.array([at[1] for _, at in spots]),
        mode="markers",
        marker=MARKS[kind],
        name=MARK_WORDS.get(kind, kind),
        legendgroup=kind,
        showlegend=showlegend,
        hovertext=[_hover_text(spec, trial) for trial, _ in spots],
        hoverinfo="text",
    )


def in_legend(kind: str) -> go.Scatter:
    """A line in the legend for marks whose colours mean something else."""
    name = MARK_WORDS.get(kind, kind)
    return go.Scatter(x=[None], y=[None], mode="markers", marker=MARKS[kind], name=name, legendgroup=kind)


def _hover_text(spec: StudySpec, trial: TrialRecord) -> str:
    """A trial in a few lines."""
    ended = "" if trial.state == "complete" else f", pruned at epoch {trial.epochs}"
    reached = epochs.value(spec.objective, trial, spec.metric)
    lines = [f"trial {trial.number}{ended}", f"{spec.metric} {formatting.value(spec.metric, reached)}"]
    lines += [f"{key} {formatting.setting(value)}" for key, value in trial.params.items()]
    return "<br>".join(escape(line, quote=False) for line in lines)


def metric_axis(title: str, metric: str | None = None) -> dict[str, Any]:
    """An axis of a metric, no further beyond its bounds than marks need; under another title, if one is given."""
    axis = {"title": {"text": escape(title)}, **percent(metric or title)}
    known = metrics.find(metric or title)
    if known and known.low is not None and known.high is not None:
        room = 0.05 * (known.high - known.low)
        axis["autorangeoptions"] = {"clipmin": known.low - room, "clipmax": known.high + room}
    return axis


def percent(metric: str) -> dict[str, Any]:
    return {"tickformat": ".1~%"} if formatting.in_percent(metric) else {}


def scaled_axis(scale: Scale, key: str) -> dict[str, Any]:
    axis: dict[str, Any] = {"title": label(key)}
    if scale.names:
        short = [name if len(name) <= 12 else f"{name[:11]}…" for name in scale.names]  # the hover text has all of it
        return {**axis, "tickvals": list(range(len(short))), "ticktext": [escape(name) for name in short]}
    if not scale.domain.log:
        return axis
    low, high = scale.ends()
    return {**axis, "type": "log", **({"dtick": 1} if high / low >= 30 else {})}


def label(key: str) -> str:
    return f"{SYMBOLS[key]} {key}" if key in SYMBOLS else escape(key)


def colours(spec: StudySpec) -> str:
    return "Cividis" if spec.mode == "max" else "Cividis_r"
