"""The metric over two parameters, and the ranks of trials over every two."""

from html import escape

import numpy as np
import plotly.graph_objects as go

from study.analysis.figures.interactive.style import MOST_MARKS, colours, marks, new, percent, scaled_axis
from study.analysis.figures.ranks import COLOURS, pairs_of, placed
from study.analysis.figures.scale import Scale
from study.analysis.figures.style import ended_value
from study.analysis.figures.surface import parameter_pair
from study.analysis.statistics.frame import thin, varied
from study.home.record import StudyRecord
from study.ranking import candidates, searched
from study.spec import StudySpec


def surface(spec: StudySpec, record: StudyRecord) -> go.Figure:
    """The metric over two parameters."""
    pair = parameter_pair(spec, record)
    assert pair is not None  # only called where the Matplotlib figure was drawn
    axes = [scaled_axis(scale, key) for scale, key in zip(pair.scales, pair.keys, strict=True)]
    figure = new(xaxis=axes[0], yaxis=axes[1], height=480)
    (across, up), means = pair.tiles()
    low, high = pair.range()
    bounds = {"colorscale": colours(spec), "zmin": low, "zmax": high, "showscale": False}
    figure.add_trace(go.Heatmap(x=across, y=up, z=means.T, opacity=0.45, hoverinfo="skip", **bounds))
    pruned = [trial for trial in record.by_stage("search") if trial.state == "pruned"]
    stopped = thin([(trial, at) for trial in pruned if (at := pair.at(trial))], MOST_MARKS)
    if stopped:
        figure.add_trace(marks(spec, stopped, "pruned").update(name="pruned"))
    drawn = thin(
        [(trial, (x, y)) for trial, (x, y, _) in zip(pair.trials, pair.spots.tolist(), strict=True)], MOST_MARKS
    )
    bar = {"title": {"text": escape(spec.metric)}, **percent(spec.metric)}
    shades = {"colorscale": colours(spec), "cmin": low, "cmax": high, "colorbar": bar}
    color = np.array([ended_value(spec, trial) for trial, _ in drawn], dtype=float)
    figure.add_trace(marks(spec, drawn, "complete").update(marker={**shades, "color": color, "showscale": True}))
    best = candidates(record, spec)[0].trial
    if at := pair.at(best):
        figure.add_trace(marks(spec, [(best, at)], "best"))
    return figure


def ranks(spec: StudySpec, record: StudyRecord) -> go.Figure:
    """Each complete trial over every two parameters, coloured by its rank."""
    pairs = pairs_of(spec, record)
    columns = min(3, len(pairs))
    rows = -(-len(pairs) // columns)
    figure = new(rows, columns, height=80 + 290 * rows, shared_yaxes=False, horizontal=0.11, showlegend=False)
    bar = {"title": {"text": "rank"}, "thickness": 12}
    most = len(searched(record, spec))
    shades = {"colorscale": COLOURS, "cmin": 1, "cmax": most, "colorbar": bar, "reversescale": False}
    figure.update_layout(coloraxis=shades)
    for place, (across, up) in enumerate(pairs):
        cell = {"row": place // columns + 1, "col": place % columns + 1}
        x, y, rank, numbers = placed(spec, record, across, up)
        chosen = thin(range(len(x)), MOST_MARKS)
        spots = [(record.trials[int(numbers[at])], (x[at], y[at])) for at in chosen]
        color = {"color": [rank[at] for at in chosen], "coloraxis": "coloraxis"}
        figure.add_trace(marks(spec, spots, "complete").update(marker=color), **cell)
        figure.update_xaxes(**scaled_axis(Scale.of(varied(spec)[across]), across), **cell)
        figure.update_yaxes(**scaled_axis(Scale.of(varied(spec)[up]), up), **cell)
    return figure
