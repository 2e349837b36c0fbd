"""The metric over the searched parameters: each, two of them, all of them."""

from html import escape
from typing import Any

import numpy as np
import plotly.graph_objects as go

from study.analysis.figures.interactive.style import (
    MOST_MARKS,
    by_kind,
    colours,
    label,
    marks,
    metric_axis,
    new,
    percent,
    scaled_axis,
)
from study.analysis.figures.parallel import LINES, scales_of
from study.analysis.figures.parameters import ESTIMATED, estimated, spot
from study.analysis.figures.style import ended_value
from study.analysis.figures.surface import parameter_pair
from study.analysis.statistics.frame import param, thin, varied
from study.home.record import StudyRecord
from study.ranking import baseline, searched
from study.spec import StudySpec


def parameters(spec: StudySpec, record: StudyRecord) -> go.Figure:
    """Each searched parameter against the metric."""
    space, reference = varied(spec), baseline(record, spec)
    trials = [trial for trial in record.by_stage("search") if ended_value(spec, trial) is not None]
    columns = min(3, len(space))
    rows = -(-len(space) // columns)
    figure = new(rows, columns, height=120 + 280 * rows)
    scales, estimates = scales_of(spec, reference), estimated(spec, record)
    for place, (key, scale) in enumerate(scales.items()):
        cell = {"row": place // columns + 1, "col": place % columns + 1}
        for name, of_kind in by_kind(spec, record, trials).items():
            spots = [(trial, at) for trial in of_kind if (at := spot(spec, scale, trial, key, estimates))]
            drawn = marks(spec, spots, name, showlegend=place == 0)
            figure.add_trace(drawn.update(name=ESTIMATED) if name == "pruned" and estimates else drawn, **cell)
        figure.update_xaxes(**scaled_axis(scale, key), **cell)
        figure.update_yaxes(**metric_axis(spec.metric if cell["col"] == 1 else ""), **cell)
        if cell["col"] > 1:
            figure.update_yaxes(**percent(spec.metric), **cell)
    return figure


def surface(spec: StudySpec, record: StudyRecord) -> go.Figure:
    """The metric over two parameters."""
    pair = parameter_pair(spec, record)
    assert pair is not None  # only called where the Matplotlib figure was drawn
    axes = [scaled_axis(scale, key) for scale, key in zip(pair.scales, pair.keys, strict=True)]
    figure = new(xaxis=axes[0], yaxis=axes[1], height=480, showlegend=False)
    (across, up), means = pair.tiles()
    low, high = pair.range()
    bounds = {"colorscale": colours(spec), "zmin": low, "zmax": high, "showscale": False}
    figure.add_trace(go.Heatmap(x=across, y=up, z=means.T, opacity=0.45, hoverinfo="skip", **bounds))
    drawn = thin(
        [(trial, (x, y)) for trial, (x, y, _) in zip(pair.trials, pair.spots.tolist(), strict=True)], MOST_MARKS
    )
    bar = {"title": escape(spec.metric), **percent(spec.metric)}
    shades = {"colorscale": colours(spec), "cmin": low, "cmax": high, "colorbar": bar}
    color = np.array([ended_value(spec, trial) for trial, _ in drawn], dtype=float)
    figure.add_trace(marks(spec, drawn, "complete").update(marker={**shades, "color": color, "showscale": True}))
    return figure


def parallel(spec: StudySpec, record: StudyRecord) -> go.Figure:
    """Parallel coordinates; drawing along an axis picks a range of it."""
    drawn = list(reversed(thin(searched(record, spec), LINES)))
    values = np.array([candidate.value for candidate in drawn])
    dimensions: list[dict[str, Any]] = []
    for key, scale in scales_of(spec, None).items():
        shares = [scale.share(param(spec, candidate.trial, key)) for candidate in drawn]
        ticks = scale.ticks()
        dimensions.append(
            {
                "label": label(key),
                "values": [-0.12 if share is None else share for share in shares],  # below the axis: no value
                "range": [-0.12 if None in shares else 0.0, 1.0],
                "tickvals": [share for share, _ in ticks],
                "ticktext": [escape(name) for _, name in ticks],
            }
        )
    dimensions.append({"label": escape(spec.metric), "values": values, **percent(spec.metric)})
    longest = max((len(str(name)) for name in dimensions[0]["ticktext"]), default=0)
    figure = new(height=440, margin={"l": 40 + 7 * longest, "r": 40, "t": 90, "b": 30})
    line = {"color": values, "colorscale": colours(spec), "showscale": True, "colorbar": percent(spec.metric)}
    figure.add_trace(go.Parcoords(dimensions=dimensions, line=line, labelangle=-20 if len(dimensions) > 5 else 0))
    return figure
