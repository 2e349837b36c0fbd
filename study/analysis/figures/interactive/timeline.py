"""When each trial ran."""

import numpy as np
import plotly.graph_objects as go

from study.analysis.figures.best_over_time import unit_of
from study.analysis.figures.interactive.style import new
from study.analysis.figures.timeline import NAMED, STATES, names
from study.analysis.statistics.occupancy import occupancy, places
from study.home.record import StudyRecord
from study.spec import StudySpec


def timeline(spec: StudySpec, record: StudyRecord) -> go.Figure:
    """A line for each run of a trial; pointing at its ends shows its number and how long it took."""
    frame = occupancy(record)
    lanes = places(frame)
    scale, unit = unit_of(float(frame["end"].max()))
    height = 150 + 30 * min(NAMED, len(lanes))
    figure = new(height=height)
    rows = frame.assign(row=[lanes.index(place) + 1 for place in zip(frame["node"], frame["lane"], strict=True)])
    for state, colour in STATES.items():
        runs = rows[rows["state"] == state]
        if not len(runs):
            continue
        gap = np.full(len(runs), np.nan)
        took = runs["end"] - runs["start"]
        figure.add_trace(
            go.Scatter(
                x=np.column_stack([runs["start"] / scale, runs["end"] / scale, gap]).ravel().astype("float32"),
                y=np.repeat(runs["row"].to_numpy("float32"), 3),
                customdata=np.repeat(np.column_stack([runs.index, took]).astype("float32"), 3, axis=0),
                mode="lines",
                line={"color": colour, "width": max(2.0, 0.7 * (height - 120) / len(lanes))},
                name=state,
                hovertemplate=f"trial %{{customdata[0]:.0f}}, {state}, %{{customdata[1]:.4g}} s<extra></extra>",
            )
        )
    ticks = {"tickvals": list(range(1, len(lanes) + 1)), "ticktext": names(lanes)} if len(lanes) <= NAMED else {}
    figure.update_xaxes(title=f"{unit}, without pauses", rangemode="tozero")
    figure.update_yaxes(range=[len(lanes) + 0.5, 0.5], showgrid=False, **ticks)
    return figure
