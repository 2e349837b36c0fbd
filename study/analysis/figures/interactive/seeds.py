"""Every seed of the confirmed or finally trained configurations."""

from html import escape

import plotly.graph_objects as go

from study.analysis.figures.interactive.style import GROUND, metric_axis, new
from study.analysis.figures.seeds import sides_of
from study.analysis.figures.style import BLACK, BLUE, GREY
from study.analysis.statistics import formatting
from study.analysis.statistics.frame import metric
from study.home.record import StudyRecord
from study.spec import StudySpec

NOT_READ = {"text": "not read", "showarrow": False, "xanchor": "left", "font": {"color": GREY}}


def seeds(spec: StudySpec, record: StudyRecord) -> go.Figure:
    """The metric on every seed, with mean and standard deviation, on both splits; pointing at a ring shows its seed."""
    sides, metrics = sides_of(spec, record)
    figure = new(columns=len(metrics), height=190 + 45 * len(sides), showlegend=False)
    for column, name in enumerate(metrics, 1):
        for side in sides:
            spread = side.spread(name)
            colour, label = BLACK if side.label == "baseline" else BLUE, escape(side.label)
            if spread is None:
                figure.add_annotation(x=0.02, xref="x domain", y=label, row=1, col=column, **NOT_READ)
                figure.add_trace(go.Scatter(x=[None], y=[label]), row=1, col=column)
                continue
            mean = {"symbol": "line-ns", "size": 18, "line": {"width": 3, "color": colour}}
            figure.add_trace(
                go.Scatter(
                    x=[spread.mean],
                    y=[label],
                    error_x={"array": [spread.deviation or 0.0], "color": colour, "thickness": 2, "width": 0},
                    mode="markers",
                    marker=mean,
                    hovertext=[f"{label}: {formatting.mean(name, spread)}"],
                    hoverinfo="text",
                ),
                row=1,
                col=column,
            )
            values = [(trial, value) for trial in side.trials if (value := metric(side.spec, trial, name)) is not None]
            ring = {"size": 9, "color": GROUND, "line": {"width": 2, "color": colour}}
            told = [f"{label}, seed {trial.seed}: {formatting.value(name, value)}" for trial, value in values]
            at = {"x": [value for _, value in values], "y": [label] * len(values)}
            figure.add_trace(
                go.Scatter(**at, mode="markers", marker=ring, hovertext=told, hoverinfo="text"), row=1, col=column
            )
        figure.update_xaxes(**metric_axis(name), row=1, col=column)
    order = [escape(side.label) for side in reversed(sides)]
    figure.update_yaxes(type="category", categoryorder="array", categoryarray=order)
    return figure
