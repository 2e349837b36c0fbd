"""The figures again for the HTML page, with Plotly: the reader can point at a trial, zoom in, and pick by a parameter.

Each function draws what the figure of the same name shows, with the same marks; figures of few marks have no such form.
Plotly reads some HTML in texts, so that every text of a user's is escaped.
"""

from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import Any

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from study.analysis import words
from study.analysis.figures import compared_at, curve
from study.analysis.frame import param
from study.analysis.parallel import LINES, scales_of
from study.analysis.parameters import spot, varied
from study.analysis.plane import confirmed, pareto, point, trade_off_metrics, worst_group_metrics
from study.analysis.scale import Scale
from study.analysis.style import BLACK, BLUE, GREY, MARK_WORDS, ORANGE, PALE, ended_value, thin
from study.analysis.surface import plane
from study.ranking import baseline, candidates, searched
from study.record import StudyRecord, TrialRecord
from study.spec import StudySpec
from study.training.metrics import METRICS

MOST = 1000
"""Trials of one kind in one figure; of more, so many evenly chosen ones. The page stays small and quick."""
CURVES = 150

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
    "complete": {"symbol": "circle", "size": 8, "color": BLUE, "line": {"width": 1, "color": "white"}},
    "pruned": {"symbol": "triangle-down-open", "size": 7, "color": GREY},
    "best": {"symbol": "circle-open", "size": 15, "color": ORANGE, "line": {"width": 3}},
    "baseline": {"symbol": "star", "size": 13, "color": BLACK},
}


def learning_curves(spec: StudySpec, record: StudyRecord) -> go.Figure:
    """One line per trial; pointing at it tells its number."""
    trials = [trial for trial in record.by_stage("baseline", "search", "final") if curve(spec, trial).size]
    chosen, reference = next(iter(candidates(record, spec)), None), baseline(record, spec)
    named = [one.trial for one in (chosen, reference) if one]
    others = [trial for trial in trials if trial not in named]
    figure = _figure(xaxis={"title": "epoch"}, yaxis=_metric_axis(spec.metric))
    for pruned, name, colour in ((True, "stopped early", PALE), (False, "full budget", BLUE)):
        shown = thin([trial for trial in others if (trial.state == "pruned") == pruned], CURVES)
        figure.add_trace(_curves(spec, shown, name, {"color": colour, "width": 1.2}, opacity=1.0 if pruned else 0.5))
    for one, name, line in (
        (chosen, "best", {"color": BLUE, "width": 3.5}),
        (reference, "baseline", {"color": BLACK, "width": 3, "dash": "dash"}),
    ):
        if one:
            figure.add_trace(_curves(spec, [one.trial], f"{name} (trial {one.trial.number})", line))
    name, epochs = compared_at(spec)
    for rung in epochs:
        figure.add_vline(rung, line={"color": ORANGE, "width": 1, "dash": "dot"}, annotation_text=f"{name} {rung}")
    return figure


def parameters(spec: StudySpec, record: StudyRecord) -> go.Figure:
    """Each searched parameter against the metric."""
    space, reference = varied(spec), baseline(record, spec)
    trials = [trial for trial in record.by_stage("search") if ended_value(spec, trial) is not None]
    columns = min(3, len(space))
    rows = -(-len(space) // columns)
    figure = _figure(rows, columns, height=120 + 280 * rows)
    scales = scales_of(spec, reference)
    for place, (key, scale) in enumerate(scales.items()):
        cell = {"row": place // columns + 1, "col": place % columns + 1}
        for name, shown in _kinds(spec, record, trials).items():
            spots = [(trial, at) for trial in shown if (at := spot(spec, scale, trial, key))]
            figure.add_trace(_marks(spec, spots, name, showlegend=place == 0), **cell)
        figure.update_xaxes(**_scaled_axis(scale, key), **cell)
        figure.update_yaxes(**_metric_axis(spec.metric if cell["col"] == 1 else ""), **cell)
        if cell["col"] > 1:
            figure.update_yaxes(**_percent(spec.metric), **cell)
    return figure


def surface(spec: StudySpec, record: StudyRecord) -> go.Figure:
    """The metric over two parameters."""
    found = plane(spec, record)
    assert found is not None  # the figure was drawn
    axes = [_scaled_axis(scale, key) for scale, key in zip(found.scales, found.keys, strict=True)]
    figure = _figure(xaxis=axes[0], yaxis=axes[1], height=480, showlegend=False)
    values = found.spots[:, 2]
    (across, up), means = found.tiles()
    bounds = {"colorscale": _colours(spec), "zmin": values.min(), "zmax": values.max(), "showscale": False}
    figure.add_trace(go.Heatmap(x=across, y=up, z=means.T, opacity=0.45, hoverinfo="skip", **bounds))
    shown = thin([(trial, (x, y)) for trial, (x, y, _) in zip(found.trials, found.spots.tolist(), strict=True)], MOST)
    bar = {"title": escape(spec.metric), **_percent(spec.metric)}
    shades = {"colorscale": _colours(spec), "cmin": values.min(), "cmax": values.max(), "colorbar": bar}
    color = np.array([trial.last(spec.metric) for trial, _ in shown], dtype=float)
    figure.add_trace(_marks(spec, shown, "complete").update(marker={**shades, "color": color, "showscale": True}))
    return figure


def parallel(spec: StudySpec, record: StudyRecord) -> go.Figure:
    """Parallel coordinates; a range of an axis is picked by drawing along it."""
    shown = list(reversed(thin(searched(record, spec), LINES)))
    values = np.array([one.value for one in shown])
    dimensions: list[dict[str, Any]] = []
    for key, scale in scales_of(spec, None).items():
        shares = [scale.share(param(spec, one.trial, key)) for one in shown]
        ticks = scale.ticks()
        dimensions.append(
            {
                "label": _label(key),
                "values": [-0.12 if share is None else share for share in shares],  # below the axis: has no value there
                "range": [-0.12 if None in shares else 0.0, 1.0],
                "tickvals": [share for share, _ in ticks],
                "ticktext": [escape(name) for _, name in ticks],
            }
        )
    dimensions.append({"label": escape(spec.metric), "values": values, **_percent(spec.metric)})
    longest = max((len(str(name)) for name in dimensions[0]["ticktext"]), default=0)
    figure = _figure(height=440, margin={"l": 40 + 7 * longest, "r": 40, "t": 90, "b": 30})
    line = {"color": values, "colorscale": _colours(spec), "showscale": True, "colorbar": _percent(spec.metric)}
    figure.add_trace(go.Parcoords(dimensions=dimensions, line=line, labelangle=-20 if len(dimensions) > 5 else 0))
    return figure


def trade_off(spec: StudySpec, record: StudyRecord) -> go.Figure:
    """Accuracy over the fairness gap, with the front."""
    names = trade_off_metrics(spec, record)
    assert names is not None  # the figure was drawn
    figure = _plane(spec, record, names)
    points = [at for one in searched(record, spec) if (at := point(one, *names))]
    if points:
        x, y = zip(*[points[place] for place in pareto(points, *names)], strict=True)
        line = {"color": ORANGE, "shape": "hv" if METRICS[names[0].split("/")[1]].mode == "min" else "vh"}
        figure.add_trace(go.Scatter(x=x, y=y, mode="lines", name="front", line=line, hoverinfo="skip"), row=1, col=1)
    return figure


def worst_group(spec: StudySpec, record: StudyRecord) -> go.Figure:
    """Worst-group over average accuracy."""
    return _plane(spec, record, worst_group_metrics(spec))


def progress(spec: StudySpec, record: StudyRecord) -> go.Figure:
    """The search trial by trial."""
    trials = [trial for trial in record.by_stage("search") if ended_value(spec, trial) is not None]
    axis = {"title": "trial, in the order in which the search chose them"}
    figure = _figure(xaxis=axis, yaxis=_metric_axis(spec.metric))
    for name, shown in _kinds(spec, record, trials).items():
        if name in MARK_WORDS:
            spots = [(trial, (float(trial.number), trial.last(spec.metric))) for trial in shown]
            figure.add_trace(_marks(spec, spots, name))
    complete = sorted((one.trial.number, one.value) for one in searched(record, spec))
    if complete:
        pick = np.maximum if spec.mode == "max" else np.minimum
        best = pick.accumulate([value for _, value in complete])
        line = {"shape": "hv", "color": BLUE, "width": 2.5}
        x = [*(number for number, _ in complete), trials[-1].number]
        figure.add_trace(go.Scatter(x=x, y=[*best, best[-1]], mode="lines", line=line, name="best so far"))
    if reference := baseline(record, spec):
        figure.add_hline(reference.value, line={"color": BLACK, "dash": "dash"}, annotation_text="baseline")
    return figure


INTERACTIVE: Mapping[str, Callable[[StudySpec, StudyRecord], go.Figure]] = {
    "learning_curves": learning_curves,
    "trade_off": trade_off,
    "worst_group": worst_group,
    "parameters": parameters,
    "surface": surface,
    "parallel": parallel,
    "progress": progress,
}


def _figure(
    rows: int = 1, columns: int = 1, height: int = 400, subplot_titles: Sequence[str] | None = None, **layout: Any
) -> go.Figure:
    spaces = {"horizontal_spacing": 0.04, "vertical_spacing": 0.2}
    figure = make_subplots(rows, columns, shared_yaxes=True, subplot_titles=subplot_titles, **spaces)
    figure.update_annotations(font_size=13)
    font = {"family": "system-ui, sans-serif", "size": 13, "color": BLACK}
    below = {"orientation": "h", "x": 0, "y": -0.2 if rows == 1 else -0.12, "yanchor": "top", "yref": "paper"}
    margin = {"l": 60, "r": 20, "t": 55 if subplot_titles else 30, "b": 90}
    figure.update_layout(template="plotly_white", height=height, font=font, legend=below, hovermode="closest")
    figure.update_layout(**{"margin": margin, **layout})
    return figure


def _plane(spec: StudySpec, record: StudyRecord, names: tuple[str, str]) -> go.Figure:
    """The complete trials by two metrics; beside them what was confirmed, with its spread."""
    tested, measured = confirmed(spec, record, *names)
    split = "test" if tested[0].startswith("test/") else "validation"
    titles = ["the search, validation split", f"fresh seeds, {split} split, mean ± sd"]
    figure = _figure(1, 2 if measured else 1, subplot_titles=titles[: 2 if measured else 1])
    found = [one for one in searched(record, spec) if point(one, *names)]
    reference = baseline(record, spec)
    places = {one.trial.number: point(one, *names) for one in [*found, *([reference] if reference else [])]}
    for name, shown in _kinds(spec, record, [one.trial for one in found]).items():
        spots = [(trial, at) for trial in shown if (at := places.get(trial.number))]
        figure.add_trace(_marks(spec, spots, name), row=1, col=1)
    figure.update_xaxes(_metric_axis(names[0]), row=1, col=1)
    figure.update_yaxes(_metric_axis(names[1]), row=1, col=1)
    for side, (x, y) in measured:
        spreads = {"error_x": {"array": [x.deviation]}, "error_y": {"array": [y.deviation]}}
        colour = BLACK if side.label == "baseline" else BLUE
        mark = {"mode": "markers+text", "marker": {"color": colour, "size": 9}, "textposition": "top left", **spreads}
        trace = go.Scatter(x=[x.mean], y=[y.mean], text=[escape(side.label)], showlegend=False, **mark)
        figure.add_trace(trace.update(hoverinfo="x+y", textfont={"color": colour}), row=1, col=2)
    if measured:
        figure.update_xaxes(_metric_axis(tested[0]), row=1, col=2)
    return figure


def _kinds(spec: StudySpec, record: StudyRecord, trials: Sequence[TrialRecord]) -> dict[str, Sequence[TrialRecord]]:
    """Trials by how they are marked."""
    kinds = {state: thin([trial for trial in trials if trial.state == state], MOST) for state in ("complete", "pruned")}
    chosen, reference = next(iter(candidates(record, spec)), None), baseline(record, spec)
    named = {name: [one.trial] for name, one in (("baseline", reference), ("best", chosen)) if one}
    return {name: shown for name, shown in (kinds | named).items() if shown}


def _marks(
    spec: StudySpec, spots: Sequence[tuple[TrialRecord, tuple[float, float | None]]], kind: str, showlegend: bool = True
) -> go.Scatter:
    """Trials as marks that tell what they are."""
    return go.Scatter(
        x=np.array([at[0] for _, at in spots]),
        y=np.array([at[1] for _, at in spots]),
        mode="markers",
        marker=MARKS[kind],
        name=MARK_WORDS.get(kind, kind),
        legendgroup=kind,
        showlegend=showlegend,
        hovertext=[_told(spec, trial) for trial, _ in spots],
        hoverinfo="text",
    )


def _told(spec: StudySpec, trial: TrialRecord) -> str:
    """A trial in a few lines."""
    ended = "" if trial.state == "complete" else f", stopped early at epoch {trial.epochs}"
    lines = [f"trial {trial.number}{ended}", f"{spec.metric} {words.value(spec.metric, trial.last(spec.metric))}"]
    lines += [f"{key} {words.setting(given)}" for key, given in trial.params.items()]
    return "<br>".join(escape(line, quote=False) for line in lines)


def _curves(
    spec: StudySpec, trials: Sequence[TrialRecord], name: str, line: dict[str, Any], **options: Any
) -> go.Scatter:
    """All these curves as one trace, with a gap after each."""
    parts = [np.empty((0, 3))]
    for trial in trials:
        one = curve(spec, trial)
        parts += [np.column_stack([one, np.full(len(one), trial.number)]), np.full((1, 3), np.nan)]
    points = np.concatenate(parts)
    value = "%{y:.1%}" if words.in_percent(spec.metric) else "%{y:.4g}"
    return go.Scatter(
        x=points[:, 0],
        y=points[:, 1],
        customdata=points[:, 2],
        mode="lines",
        line=line,
        name=name,
        hovertemplate=f"trial %{{customdata}}, epoch %{{x}}: {value}<extra></extra>",
        **options,
    )


def _metric_axis(metric: str) -> dict[str, Any]:
    return {"title": escape(metric), **_percent(metric)}


def _percent(metric: str) -> dict[str, Any]:
    return {"tickformat": ".1~%"} if words.in_percent(metric) else {}


def _scaled_axis(scale: Scale, key: str) -> dict[str, Any]:
    axis: dict[str, Any] = {"title": _label(key)}
    if scale.names:
        short = [name if len(name) <= 12 else f"{name[:11]}…" for name in scale.names]  # all of it where one points
        return {**axis, "tickvals": list(range(len(short))), "ticktext": [escape(name) for name in short]}
    if not scale.domain.log:
        return axis
    low, high = scale.ends()
    return {**axis, "type": "log", **({"dtick": 1} if high / low >= 30 else {})}


def _label(key: str) -> str:
    return f"{SYMBOLS[key]} {key}" if key in SYMBOLS else escape(key)


def _colours(spec: StudySpec) -> str:
    return "Cividis" if spec.mode == "max" else "Cividis_r"
