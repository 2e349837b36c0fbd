"""Each searched parameter against the study's metric, as small multiples."""

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.figure import Figure

from study.analysis.figures.rungs import RungRows
from study.analysis.figures.scale import Scale
from study.analysis.figures.style import (
    BASELINE_MARK,
    BEST_MARK,
    BLACK,
    MARK_WORDS,
    MARKS,
    RASTERIZED,
    ended_value,
    fade,
    label,
    legend,
    metric_axis,
    new,
    plain,
    styled,
)
from study.analysis.statistics import seed_words
from study.analysis.statistics.frame import param, varied
from study.home.record import StudyRecord, TrialRecord
from study.ranking import Candidate, baseline, candidates
from study.spec import StudySpec
from study.spec.rungs import turn
from study.text.short import parameter

ORDER = "viridis"
"""Colours of trials in their order; those of values are others."""


@styled
def parameters(spec: StudySpec, record: StudyRecord) -> Figure | None:
    """Each searched parameter against the study's metric, coloured by the trials' order; best and baseline marked."""
    trials = [trial for trial in record.by_stage("search") if ended_value(spec, trial) is not None]
    space, reference = varied(spec), baseline(record, spec)
    if not trials or not space:
        return None
    best, found = next(iter(candidates(record, spec)), None), rows_of(spec, record, trials)
    columns = min(3, len(space))
    rows = -(-len(space) // columns)
    figure, panels = new(_title(spec, best), 0.9 + 2.7 * rows, columns, rows)
    shades = None
    for axes, (key, domain) in zip(panels, space.items(), strict=False):
        scale = Scale.of(domain, [param(spec, reference.trial, key)] if reference else [])
        scale.apply(axes)
        spots = [(trial, at) for trial in trials if (at := spot(spec, scale, trial, key, found.heights))]
        stopped = [at for trial, at in spots if trial.state == "pruned"]
        _scatter(axes, stopped, label=MARK_WORDS["pruned"], alpha=fade(len(trials)), **MARKS["pruned"])
        complete = [(*at, trial.number) for trial, at in spots if trial.state == "complete"]
        shades = _in_order(axes, complete, len(record.trials)) or shades
        if reference:
            axes.axhline(reference.value, color=BLACK, linewidth=1.1, linestyle="--", zorder=1)
            _scatter(axes, [spot(spec, scale, reference.trial, key)], label="baseline", zorder=5, **BASELINE_MARK)
        if best:
            _scatter(axes, [spot(spec, scale, best.trial, key)], label="best", zorder=6, **BEST_MARK)
        axes.set_xlabel(label(key))
        metric_axis(axes, spec.metric)
        found.apply(axes, spec.metric)
    for index, axes in enumerate(panels):
        axes.set_ylabel(plain(spec.metric) if index % columns == 0 else "")
        axes.set_visible(index < len(space))
    if shades is not None:
        figure.colorbar(shades, ax=list(panels), label="trial, in order", pad=0.01, aspect=30)
    legend(figure, panels[0])
    return figure


def rows_of(spec: StudySpec, record: StudyRecord, trials: Sequence[TrialRecord]) -> RungRows:
    """Rows for the pruned trials, which have no value at the end."""
    reference = baseline(record, spec)
    values = [ended_value(spec, trial) for trial in trials if trial.state == "complete"]
    shown = [*values, reference.value if reference else None]
    return RungRows.of(trials, [value for value in shown if value is not None])


def _in_order(axes: Axes, spots: Sequence[tuple[float, float, int]], most: int) -> PathCollection | None:
    """Complete trials, coloured by their number."""
    if not spots:
        return None
    x, y, numbers = zip(*spots, strict=True)
    mark: dict[str, Any] = {name: value for name, value in MARKS["complete"].items() if name != "color"}
    shades: dict[str, Any] = {"cmap": ORDER, "vmin": 0, "vmax": max(1, most - 1), "rasterized": len(spots) > RASTERIZED}
    return axes.scatter(x, y, c=numbers, label=MARK_WORDS["complete"], alpha=fade(len(spots)), **mark, **shades)


def _title(spec: StudySpec, best: Candidate | None) -> str:
    if best is None:
        return f"{spec.metric} over each searched parameter: no trial is complete"
    by = "confirmed on fresh seeds" if best.confirmed else f"by {seed_words.searched(spec)}"
    params = best.trial.params
    values = (f"{_short(key)} {parameter(params[key], 3)}" for key in varied(spec) if key in params)
    return f"Best, {by}: {', '.join(values)}"


def spot(
    spec: StudySpec, scale: Scale, trial: TrialRecord, key: str, heights: Mapping[int, float] | None = None
) -> tuple[float, float] | None:
    """Where a trial's mark lies; marks on a choice are spread a little, so that they do not hide one another.

    Args:
        heights: of trials that are not drawn at the one that they had at their end.
    """
    value = (heights or {}).get(trial.number, ended_value(spec, trial))
    place = scale.place(param(spec, trial, key))
    if place is None or value is None:
        return None
    return place + (0.5 * (turn(trial.number) - 0.5) if scale.names else 0.0), value


def _short(key: str) -> str:
    section, name = key.split(".")
    return section if name == "name" else name


def _scatter(axes: Axes, spots: Sequence[tuple[float, float] | None], **mark: Any) -> None:
    places = [at for at in spots if at]
    if places:
        axes.scatter(*zip(*places, strict=True), rasterized=len(places) > RASTERIZED, **mark)
