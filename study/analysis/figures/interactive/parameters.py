"""The metric over the searched parameters: over each, and over all of them."""

from html import escape
from typing import Any

import numpy as np
import plotly.graph_objects as go

from study.analysis.figures.interactive.style import (
    by_kind,
    colours,
    in_legend,
    label,
    marks,
    metric_axis,
    new,
    percent,
    scaled_axis,
)
from study.analysis.figures.parallel import LINES, scales_of
from study.analysis.figures.parameters import ORDER, rows_of, spot
from study.analysis.figures.style import BLACK, ended_value
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
    scales, stopped = scales_of(spec, reference), rows_of(spec, record, trials)
    axis = stopped.axis(spec.metric)
    bar = {"title": {"text": "trial"}, "thickness": 12}
    shades = {"colorscale": ORDER, "cmin": 0, "cmax": max(1, len(record.trials) - 1), "colorbar": bar}
    figure.update_layout(coloraxis=shades)
    figure.add_trace(in_legend("complete"), row=1, col=1)
    for place, (key, scale) in enumerate(scales.items()):
        cell = {"row": place // columns + 1, "col": place % columns + 1}
        for name, of_kind in by_kind(spec, record, trials).items():
            spots = [(trial, at) for trial in of_kind if (at := spot(spec, scale, trial, key, stopped.heights))]
            drawn = marks(spec, spots, name, showlegend=place == 0)
            if name == "complete":
                drawn.update(
                    showlegend=False, marker={"color": [trial.number for trial, _ in spots], "coloraxis": "coloraxis"}
                )
            figure.add_trace(drawn, **cell)
        figure.update_xaxes(**scaled_axis(scale, key), **cell)
        figure.update_yaxes(**metric_axis(spec.metric if cell["col"] == 1 else "", spec.metric), **axis, **cell)
        if reference:
            line = {"color": BLACK, "dash": "dash", "width": 1}
            figure.add_hline(reference.value, line=line, layer="below", **cell)
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
