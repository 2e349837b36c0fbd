"""Two metrics against one another."""

from html import escape

import plotly.graph_objects as go

from study.analysis.figures.interactive.style import by_kind, marks, metric_axis, new
from study.analysis.figures.style import BLACK, BLUE, ORANGE
from study.analysis.figures.two_metrics import confirmed, front, point, trade_off_metrics, worst_group_metrics
from study.home.record import StudyRecord
from study.metrics import lower_is_better
from study.ranking import baseline, searched
from study.spec import StudySpec


def trade_off(spec: StudySpec, record: StudyRecord) -> go.Figure:
    """Accuracy over the fairness gap, with the front."""
    names = trade_off_metrics(spec, record)
    assert names is not None  # only called where the Matplotlib figure was drawn
    figure = _figure(spec, record, names)
    points = [(each, at) for each in searched(record, spec) if (at := point(spec, each, *names))]
    if best := front(points, *names):
        x, y = zip(*best, strict=True)
        line = {"color": ORANGE, "shape": "hv" if lower_is_better(names[0]) else "vh"}
        figure.add_trace(go.Scatter(x=x, y=y, mode="lines", name="front", line=line, hoverinfo="skip"), row=1, col=1)
    return figure


def worst_group(spec: StudySpec, record: StudyRecord) -> go.Figure:
    """Worst-group over average accuracy."""
    return _figure(spec, record, worst_group_metrics(spec))


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
    for side, (x, y) in measured:
        spreads = {"error_x": {"array": [x.deviation]}, "error_y": {"array": [y.deviation]}}
        colour = BLACK if side.label == "baseline" else BLUE
        mark = {"mode": "markers+text", "marker": {"color": colour, "size": 9}, "textposition": "top left", **spreads}
        trace = go.Scatter(x=[x.mean], y=[y.mean], text=[escape(side.label)], showlegend=False, **mark)
        figure.add_trace(trace.update(hoverinfo="x+y", textfont={"color": colour}), row=1, col=2)
    if measured:
        figure.update_xaxes(metric_axis(names_on_split[0]), row=1, col=2)
    return figure
