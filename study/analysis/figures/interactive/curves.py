"""The metric over epochs and over the trials of the search."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from study.analysis.figures.curves import compared_at, curve, with_curve
from study.analysis.figures.interactive.style import by_kind, marks, metric_axis, new
from study.analysis.figures.parameters import rows_of
from study.analysis.figures.style import BLACK, BLUE, MARK_WORDS, ORANGE, PALE, ended_value
from study.analysis.statistics import formatting
from study.analysis.statistics.frame import thin
from study.home.record import StudyRecord, TrialRecord
from study.ranking import baseline, candidates, searched
from study.spec import StudySpec

CURVES = 150


def learning_curves(spec: StudySpec, record: StudyRecord) -> go.Figure:
    """One line per trial; pointing at it shows its number."""
    trials = with_curve(spec, record)
    best, reference = next(iter(candidates(record, spec)), None), baseline(record, spec)
    named = [candidate.trial for candidate in (best, reference) if candidate]
    others = [trial for trial in trials if trial not in named]
    figure = new(xaxis={"title": "epoch"}, yaxis=metric_axis(spec.metric))
    for pruned, name, colour in ((True, "pruned", PALE), (False, "complete", BLUE)):
        drawn = thin([trial for trial in others if (trial.state == "pruned") == pruned], CURVES)
        figure.add_trace(_curves(spec, drawn, name, {"color": colour, "width": 1.2}, opacity=1.0 if pruned else 0.5))
        if pruned and drawn:
            ends = [(trial, (points[-1][0], points[-1][1])) for trial in drawn if len(points := curve(spec, trial))]
            figure.add_trace(marks(spec, ends, "pruned", showlegend=False))
    for candidate, name, line in (
        (best, "best", {"color": BLUE, "width": 3.5}),
        (reference, "baseline", {"color": BLACK, "width": 3, "dash": "dash"}),
    ):
        if candidate:
            figure.add_trace(_curves(spec, [candidate.trial], f"{name} (trial {candidate.trial.number})", line))
    name, epochs = compared_at(spec)
    for rung in epochs:
        figure.add_vline(rung, line={"color": ORANGE, "width": 1, "dash": "dot"}, annotation_text=f"{name} {rung}")
    return figure


def progress(spec: StudySpec, record: StudyRecord) -> go.Figure:
    """The search trial by trial."""
    trials = [trial for trial in record.by_stage("search") if ended_value(spec, trial) is not None]
    axis = {"title": "trial, in the search's order"}
    rows = rows_of(spec, record, trials)
    ticks = rows.axis(spec.metric)
    figure = new(xaxis=axis, yaxis={**metric_axis(spec.metric), **ticks})
    for name, of_kind in by_kind(spec, record, trials).items():
        if name in MARK_WORDS:
            spots = [
                (trial, (float(trial.number), rows.heights.get(trial.number, ended_value(spec, trial))))
                for trial in of_kind
            ]
            figure.add_trace(marks(spec, spots, name))
    complete = sorted((candidate.trial.number, candidate.value) for candidate in searched(record, spec))
    if complete:
        pick = np.maximum if spec.mode == "max" else np.minimum
        best = pick.accumulate([value for _, value in complete])
        line = {"shape": "hv", "color": BLUE, "width": 2.5}
        x = [*(number for number, _ in complete), trials[-1].number]
        figure.add_trace(go.Scatter(x=x, y=[*best, best[-1]], mode="lines", line=line, name="best so far"))
    if reference := baseline(record, spec):
        figure.add_hline(reference.value, line={"color": BLACK, "dash": "dash"}, annotation_text="baseline")
    return figure


def _curves(
    spec: StudySpec, trials: Sequence[TrialRecord], name: str, line: dict[str, Any], **options: Any
) -> go.Scatter:
    """All these curves as one trace, with a gap after each."""
    parts = [np.empty((0, 3))]
    for trial in trials:
        points_of_trial = curve(spec, trial)
        parts += [
            np.column_stack([points_of_trial, np.full(len(points_of_trial), trial.number)]),
            np.full((1, 3), np.nan),
        ]
    points = np.concatenate(parts)
    value = "%{y:.1%}" if formatting.in_percent(spec.metric) else "%{y:.4g}"
    return go.Scatter(
        x=points[:, 0],
        y=points[:, 1],
        customdata=points[:, 2],
        mode="lines",
        line=line,
        name=name,
        legendgroup=name,
        hovertemplate=f"trial %{{customdata}}, epoch %{{x}}: {value}<extra></extra>",
        **options,
    )
