"""Figures of bars: how much each parameter explains, and the way from the baseline to the best."""

from html import escape

import plotly.graph_objects as go

from study.analysis.figures.ablation import paths_of
from study.analysis.figures.importance import bars_of
from study.analysis.figures.interactive.style import label, metric_axis, new
from study.analysis.figures.style import BLACK, BLUE, GREY, VERMILLION
from study.analysis.statistics import formatting
from study.analysis.statistics.importance import explained
from study.home.record import StudyRecord
from study.spec import StudySpec


def importance(spec: StudySpec, record: StudyRecord) -> go.Figure:
    """Each parameter alone, their interactions, the remainder, with intervals."""
    bars = list(reversed(bars_of(explained(spec, record), label, "<br>")))
    names = [name for name, _, _ in bars]
    shares = [share for _, share, _ in bars]
    figure = new(height=140 + 46 * len(bars), showlegend=False)
    ends = {
        "array": [share.high - share.value for share in shares],
        "arrayminus": [share.value - share.low for share in shares],
        "color": GREY,
    }
    told = [f"{share.value:.0%}, 95% interval {share.low:.0%} to {share.high:.0%}" for share in shares]
    bar = {"color": [colour for _, _, colour in bars], "line": {"width": 0}}
    values = {"x": [share.value for share in shares], "y": names, "error_x": {"type": "data", **ends}}
    figure.add_trace(go.Bar(**values, orientation="h", marker=bar, hovertext=told, hoverinfo="text"))
    axis = {"title": f"share of the variance of {escape(spec.metric)} over the space, 95% interval"}
    figure.update_xaxes(**axis, tickformat=".0%", range=[0, max(1.0, *(share.high for share in shares)) + 0.02])
    return figure


def ablation(spec: StudySpec, record: StudyRecord) -> go.Figure:
    """A bar per step on the path with its interval, on both splits."""
    paths = paths_of(spec, record)
    first, _ = next(iter(paths.values()))
    figure = new(columns=len(paths), height=170 + 40 * len(first), showlegend=False)
    names = [escape(effect.label) for effect in first]
    for column, (name, (path, _)) in enumerate(paths.items(), 1):
        assert path[0].values is not None
        sign, at = -1.0 if spec.direction(name) == "min" else 1.0, path[0].values.mean
        starts, widths, colours, above, below, told = [at], [0.0], [BLACK], [0.0], [0.0], [formatting.value(name, at)]
        for step in path[1:]:
            assert step.difference is not None
            change = step.difference.value
            low, high = step.difference.interval or (change, change)
            starts, widths = [*starts, at], [*widths, change]
            colours = [*colours, BLUE if sign * change >= 0 else VERMILLION]
            above, below = [*above, high - change], [*below, change - low]
            words = f"{formatting.change(name, change)} ({formatting.interval(name, step.difference)})"
            at += change
            told = [*told, f"{words}, to {formatting.value(name, at)}"]
        figure.add_trace(
            go.Bar(
                base=starts,
                x=widths,
                y=names,
                orientation="h",
                marker={"color": colours, "opacity": 0.8, "line": {"width": 0}},
                error_x={"type": "data", "array": above, "arrayminus": below, "color": BLACK},
                hovertext=told,
                hoverinfo="text",
            ),
            row=1,
            col=column,
        )
        for value in (path[0].values.mean, at):
            figure.add_vline(value, line={"color": GREY, "width": 1, "dash": "dot"}, row=1, col=column)
        figure.update_xaxes(**metric_axis(name), row=1, col=column)
    figure.update_yaxes(autorange="reversed")
    return figure
