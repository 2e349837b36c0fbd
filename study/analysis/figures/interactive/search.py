"""How a search went: its best value over time, and the hypervolume of its front."""

import plotly.graph_objects as go

from study.analysis.figures.best_over_time import TIMES, unit_of
from study.analysis.figures.hypervolume import steps
from study.analysis.figures.interactive.style import MOST_MARKS, metric_axis, new
from study.analysis.figures.style import BLACK, BLUE
from study.analysis.statistics import formatting
from study.analysis.statistics.search_efficiency import best_so_far, search_time
from study.home.record import StudyRecord
from study.ranking import baseline
from study.spec import StudySpec


def best_over_time(spec: StudySpec, record: StudyRecord) -> go.Figure:
    """The best value of the complete trials so far, over wall-clock time and over the trials' summed time."""
    frame = best_so_far(spec, record).dropna(subset=["best"])
    if len(frame) > MOST_MARKS:
        frame = frame[frame["best"].ne(frame["best"].shift())]  # the line is the same without the others
    total, best = search_time(record), frame["best"].tolist()
    figure = new(columns=2, showlegend=False)
    for column, (name, description) in enumerate(TIMES.items(), 1):
        scale, unit = unit_of(total[name])
        told = [f"trial {number}: best {formatting.value(spec.metric, value)}" for number, value in frame.best.items()]
        line = go.Scatter(
            x=[seconds / scale for seconds in (*frame[name], total[name])],
            y=[*best, best[-1]],
            mode="lines+markers",
            line={"shape": "hv", "color": BLUE, "width": 2.5},
            marker={"size": [*[6] * (len(told) - 1), 6, 9], "color": BLUE},
            hovertext=[*told, f"the end: best {formatting.value(spec.metric, best[-1])}"],
            hoverinfo="text",
        )
        figure.add_trace(line, row=1, col=column)
        figure.update_xaxes(title=f"{unit} {description}", rangemode="tozero", row=1, col=column)
        figure.update_yaxes(
            **metric_axis(f"best {spec.metric} so far" if column == 1 else "", spec.metric), row=1, col=column
        )
    if reference := baseline(record, spec):
        figure.add_hline(reference.value, line={"color": BLACK, "dash": "dash"}, annotation_text="baseline", col=1)
        figure.add_hline(reference.value, line={"color": BLACK, "dash": "dash"}, col=2)
    return figure


def hypervolume(spec: StudySpec, record: StudyRecord) -> go.Figure:
    """How the front grew over the trials."""
    numbers, heights = steps(spec, record)
    figure = new(xaxis={"title": "trial"}, yaxis={"title": "hypervolume"}, height=340, showlegend=False)
    line = {"shape": "hv", "color": BLUE, "width": 2.5}
    hover = "trial %{x}: %{y:.4g}<extra></extra>"
    figure.add_trace(go.Scatter(x=numbers, y=heights, mode="lines", line=line, hovertemplate=hover))
    return figure
