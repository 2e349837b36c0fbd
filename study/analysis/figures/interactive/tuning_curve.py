"""The tuning curve of a random search."""

import plotly.graph_objects as go

from study.analysis.figures.interactive.style import PALE_BLUE, metric_axis, new
from study.analysis.figures.style import BLACK, BLUE
from study.analysis.figures.tuning_curve import known, view
from study.analysis.statistics import formatting
from study.analysis.statistics.tuning_curve import curve
from study.home.record import StudyRecord
from study.ranking import baseline
from study.spec import StudySpec


def tuning_curve(spec: StudySpec, record: StudyRecord) -> go.Figure:
    """The median of the best of k trials with its band; pointing at it shows its ends."""
    found = known(spec, record)
    figure = new(columns=len(found), subplot_titles=[one.metric for one in found] if len(found) > 1 else None)
    for column, one in enumerate(found, 1):
        frame = curve(one)
        value = ".1%" if formatting.in_percent(one.metric) else ".4g"
        line = {"color": BLUE, "width": 0}
        figure.add_trace(
            go.Scatter(x=frame.index, y=frame["low"], line=line, showlegend=False, hoverinfo="skip"), 1, column
        )
        figure.add_trace(
            go.Scatter(
                x=frame.index,
                y=frame["high"],
                line=line,
                fill="tonexty",
                fillcolor=PALE_BLUE,
                name="95% band",
                showlegend=column == 1,
                hoverinfo="skip",
            ),
            1,
            column,
        )
        figure.add_trace(
            go.Scatter(
                x=frame.index,
                y=frame["median"],
                line={"color": BLUE, "width": 2.5},
                name="median of the best",
                showlegend=column == 1,
                customdata=frame[["low", "high"]].to_numpy(),
                hovertemplate=f"%{{x}} trials: %{{y:{value}}}, %{{customdata[0]:{value}}} to "
                f"%{{customdata[1]:{value}}}<extra></extra>",
            ),
            1,
            column,
        )
        figure.update_xaxes(title="trials", row=1, col=column)
        figure.update_yaxes(**metric_axis(one.metric), range=list(view(one, frame)), row=1, col=column)
    if found and (reference := baseline(record, spec)):
        figure.add_hline(
            reference.value, line={"color": BLACK, "dash": "dash"}, annotation_text="baseline", row=1, col=1
        )
    return figure
