"""Two metrics against one another."""

from html import escape

import numpy as np
import plotly.graph_objects as go

from study.analysis.figures.interactive.style import by_kind, marks, metric_axis, new
from study.analysis.figures.style import BLACK, BLUE, GREY, ORANGE, VERMILLION
from study.analysis.figures.two_metrics import confirmed, front, point, trade_off_metrics, worst_group_metrics
from study.analysis.statistics import formatting
from study.home.record import StudyRecord
from study.ranking import baseline, searched
from study.spec import StudySpec


def trade_off(spec: StudySpec, record: StudyRecord) -> go.Figure:
    """Accuracy over the fairness gap, with the front."""
    names = trade_off_metrics(spec, record)
    assert names is not None  # only called where the Matplotlib figure was drawn
    figure = _figure(spec, record, names)
    points = [(each, at) for each in searched(record, spec) if (at := point(spec, each, *names))]
    if best := front(spec, points, *names):
        x, y = zip(*best, strict=True)
        line = {"color": ORANGE, "shape": "hv" if spec.direction(names[0]) == "min" else "vh"}
        figure.add_trace(go.Scatter(x=x, y=y, mode="lines", name="front", line=line, hoverinfo="skip"), row=1, col=1)
    for limit in spec.objective.constraints:
        mark = {"line": {"color": VERMILLION, "dash": "dot"}, "row": 1, "col": 1}
        words = escape(f"{limit.metric} {limit.sense} {formatting.setting(limit.limit)}")
        if limit.metric == names[0]:
            figure.add_vline(limit.limit, annotation_text=words, **mark)
        elif limit.metric == names[1]:
            figure.add_hline(limit.limit, annotation_text=words, **mark)
    return figure


def worst_group(spec: StudySpec, record: StudyRecord) -> go.Figure:
    """Worst-group over average accuracy."""
    figure = _figure(spec, record, worst_group_metrics(spec))
    line = {"color": GREY, "width": 1, "dash": "dash"}
    for column, ends in _ranges(figure).items():
        if ends[0] < ends[1]:
            equal = go.Scatter(x=ends, y=ends, mode="lines", line=line, name="all groups equal", hoverinfo="skip")
            figure.add_trace(equal.update(showlegend=column == 1), row=1, col=column)
    return figure


def _ranges(figure: go.Figure) -> dict[int, tuple[float, float]]:
    """The values that a panel's two axes have in common, by column."""
    ranges = {}
    for column, axis in enumerate(("x", "x2"), 1):
        traces = [trace for trace in figure.data if (trace.xaxis or "x") == axis and len(trace.x)]
        if traces:
            x, y = (
                np.concatenate([np.asarray(getattr(trace, name), dtype=float) for trace in traces]) for name in "xy"
            )
            ranges[column] = (float(max(x.min(), y.min())), float(min(x.max(), y.max())))
    return ranges


def _figure(spec: StudySpec, record: StudyRecord, names: tuple[str, str]) -> go.Figure:
    """The complete trials by two metrics; beside them the confirmed configurations with their spreads."""
    names_on_split, measured = confirmed(spec, record, *names)
    split = "test" if names_on_split[0].startswith("test/") else "validation"
    titles = ["the search, validation split", f"fresh seeds, {split} split, mean ± sd"]
    figure = new(1, 2 if measured else 1, subplot_titles=titles[: 2 if measured else 1])
    candidates = [candidate for candidate in searched(record, spec) if point(spec, candidate, *names)]
    reference = baseline(record, spec)
    places = {
        candidate.trial.number: point(spec, candidate, *names)
        for candidate in [*candidates, *([reference] if reference else [])]
    }
    for name, of_kind in by_kind(spec, record, [candidate.trial for candidate in candidates]).items():
        spots = [(trial, at) for trial in of_kind if (at := places.get(trial.number))]
        figure.add_trace(marks(spec, spots, name), row=1, col=1)
    figure.update_xaxes(metric_axis(names[0]), row=1, col=1)
    figure.update_yaxes(metric_axis(names[1]), row=1, col=1)
    for place, (side, (x, y)) in enumerate(measured):
        spreads = {"error_x": {"array": [x.deviation]}, "error_y": {"array": [y.deviation]}}
        colour = BLACK if side.label == "baseline" else BLUE
        mark = {"mode": "markers+text", "marker": {"color": colour, "size": 9}, "cliponaxis": False, **spreads}
        mark["textposition"] = "bottom left" if place % 2 else "top left"  # two that are alike are both readable
        trace = go.Scatter(x=[x.mean], y=[y.mean], text=[escape(side.label)], showlegend=False, **mark)
        figure.add_trace(trace.update(hoverinfo="x+y", textfont={"color": colour}), row=1, col=2)
    if measured:
        figure.update_xaxes(metric_axis(names_on_split[0]), row=1, col=2)
    return figure
