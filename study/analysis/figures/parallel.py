"""Parallel coordinates: each trial a line through its parameters to its value."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

from study.analysis.figures.scale import Scale
from study.analysis.figures.style import BLACK, SYMBOLS, VERMILLION, fade, legend, metric_axis, new, plain, styled
from study.analysis.figures.surface import COLOURS
from study.analysis.statistics import formatting
from study.analysis.statistics.frame import param, thin, varied
from study.home.record import StudyRecord
from study.ranking import Candidate, baseline, candidates, searched
from study.spec import StudySpec

BEHIND = {"boxstyle": "square,pad=0.1", "facecolor": "white", "alpha": 0.7, "edgecolor": "none"}
LINES = 300  # more would be a surface


@styled
def parallel(spec: StudySpec, record: StudyRecord) -> Figure | None:
    """Every complete trial of the search as a line, coloured by its value; best and baseline highlighted."""
    trials = searched(record, spec)
    if len(varied(spec)) < 2 or len(trials) < 2:
        return None
    drawn = list(reversed(thin(trials, LINES)))  # the best on top
    reference = baseline(record, spec)
    scales = scales_of(spec, reference)
    values = [candidate.value for candidate in [*trials, *([reference] if reference else [])]]
    low, high = min(values), max(values)
    figure, (axes, *_) = new(_title(spec, record, len(drawn), len(trials)), 4.2)
    shades = LineCollection(
        [_line(spec, scales, candidate, (low, high)) for candidate in drawn],
        array=np.array([candidate.value for candidate in drawn]),
        cmap=COLOURS if spec.mode == "max" else f"{COLOURS}_r",
        linewidths=1.4,
        alpha=max(0.35, fade(2 * len(drawn))),
    )
    axes.add_collection(shades)
    best = candidates(record, spec)[0]
    named = [("best", best, VERMILLION, "-"), *([("baseline", reference, BLACK, "--")] if reference else [])]
    for name, candidate, colour, style in named:
        line = _line(spec, scales, candidate, (low, high))
        axes.plot(*line.T, color=colour, linewidth=2.4, linestyle=style, label=name, zorder=5)
    for place, scale in enumerate(scales.values()):
        _ticks(axes, place, scale)
    axes.set_xticks(range(len(scales) + 1), [*(_name(key, len(scales) > 4) for key in scales), plain(spec.metric)])
    if len(scales) > 4:
        for text in axes.get_xticklabels():
            text.set(rotation=30, ha="right", rotation_mode="anchor", fontsize=9)
    for share in (0.0, 0.5, 1.0) if high > low else (0.5,):
        _number(axes, len(scales), share, formatting.value(spec.metric, low + share * (high - low)))
    axes.set_xlim(-0.35, len(scales) + 0.05)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.spines["bottom"].set_visible(False)
    for place in range(len(scales) + 1):
        axes.axvline(place, color=BLACK, linewidth=0.9, zorder=0)
    bar = figure.colorbar(shades, ax=axes, pad=0.0)
    metric_axis(bar.ax, spec.metric)
    legend(figure, axes)
    return figure


def scales_of(spec: StudySpec, reference: Candidate | None) -> dict[str, Scale]:
    """The axis of each searched parameter, with the baseline's values among its choices."""
    domains = varied(spec)
    baseline_values = {key: [param(spec, reference.trial, key)] if reference else [] for key in domains}
    return {key: Scale.of(domain, baseline_values[key]) for key, domain in domains.items()}


def _line(spec: StudySpec, scales: dict[str, Scale], candidate: Candidate, ends: tuple[float, float]) -> np.ndarray:
    """(parameters + 1, 2): a trial's line, with a gap where the trial has no value on an axis."""
    low, high = ends
    last = (candidate.value - low) / (high - low) if high > low else 0.5
    shares = [scale.share(param(spec, candidate.trial, key)) for key, scale in scales.items()]
    return np.array([(x, np.nan if y is None else y) for x, y in enumerate([*shares, last])], dtype=float)


def _ticks(axes: Axes, place: int, scale: Scale) -> None:
    """Write the values along an axis to its left."""
    for share, name in scale.ticks():
        _number(axes, place, share, name)


def _number(axes: Axes, place: int, share: float, name: str) -> None:
    spot: dict[str, Any] = {"xytext": (-4, 0), "textcoords": "offset points", "ha": "right", "va": "center"}
    axes.annotate(plain(name), (place, share), fontsize=8.5, zorder=6, bbox=BEHIND, **spot)


def _name(key: str, short: bool) -> str:
    """A parameter's name below its axis, on two lines or on one."""
    name, separator = (plain(key.split(".")[1]), " ") if short else (plain(key), "\n")
    return f"{SYMBOLS[key]}{separator}{name}" if key in SYMBOLS else name


def _title(spec: StudySpec, record: StudyRecord, drawn: int, count: int) -> str:
    which = f"{drawn} of {count} complete trials" if drawn < count else formatting.count(count, "complete trial")
    pruned = sum(trial.state == "pruned" for trial in record.by_stage("search"))
    without = f" ({pruned} pruned ones are left out)" if pruned else ""
    return f"{which}{without}, each a line from its parameters to its {spec.metric}"
