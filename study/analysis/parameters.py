"""Each searched parameter against the study's metric, as small multiples."""

import math
from collections.abc import Callable, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from study.analysis import words
from study.analysis.frame import param
from study.analysis.style import (
    BASELINE_MARK,
    BEST_MARK,
    BLACK,
    MARK_WORDS,
    MARKS,
    ended_value,
    fade,
    label,
    legend,
    metric_axis,
    new,
    plain,
    styled,
)
from study.ranking import Candidate, baseline, candidates
from study.record import StudyRecord, TrialRecord
from study.spec import StudySpec
from study.spec.schema import Domain

LETTERS = 24
"""That many have room in a row below a panel."""

TURN = 0.6180339887  # multiples of the golden ratio spread evenly: jitter that is the same in every run


@styled
def parameters(spec: StudySpec, record: StudyRecord) -> Figure | None:
    """Each searched parameter against the study's metric; best and baseline marked."""
    trials = [trial for trial in record.by_stage("search") if ended_value(spec, trial) is not None]
    space, reference = _varied(spec), baseline(record, spec)
    if not trials or not space:
        return None
    chosen = next(iter(candidates(record, spec)), None)
    columns = min(3, len(space))
    rows = -(-len(space) // columns)
    figure, panels = new(_title(spec, chosen), 0.9 + 2.7 * rows, columns, rows)
    for axes, (key, domain) in zip(panels, space.items(), strict=False):
        place = _axis(axes, domain, [param(spec, reference.trial, key)] if reference else [])
        for state, mark in MARKS.items():
            shown = [trial for trial in trials if trial.state == state]
            _scatter(axes, spec, shown, place, key, label=MARK_WORDS[state], alpha=fade(len(trials)), **mark)
        if reference:
            axes.axhline(reference.value, color=BLACK, linewidth=1.1, linestyle="--", zorder=1)
            _scatter(axes, spec, [reference.trial], place, key, label="baseline", zorder=5, **BASELINE_MARK)
        if chosen:
            _scatter(axes, spec, [chosen.trial], place, key, label="best", zorder=6, **BEST_MARK)
        axes.set_xlabel(label(key))
        metric_axis(axes, spec.metric)
    for index, axes in enumerate(panels):
        axes.set_ylabel(plain(spec.metric) if index % columns == 0 else "")
        axes.set_visible(index < len(space))
    legend(figure, panels[0])
    return figure


def _title(spec: StudySpec, chosen: Candidate | None) -> str:
    if chosen is None:
        return f"{spec.metric} over each searched parameter: no trial has run to the end"
    by = "confirmed on fresh seeds" if chosen.confirmed else "by one seed"
    own = chosen.trial.params
    values = (f"{_short(key)} {words.setting(own[key], 3)}" for key in _varied(spec) if key in own)
    return f"Best, {by}: {', '.join(values)}"


def _varied(spec: StudySpec) -> dict[str, Domain]:
    """The searched parameters, constants left out."""
    return {key: domain for key, domain in spec.search.space.items() if len(domain.ends()) > 1}


def _short(key: str) -> str:
    section, name = key.split(".")
    return section if name == "name" else name


def _axis(axes: Axes, domain: Domain, more: Sequence[Any]) -> Callable[[Any, int], float | None]:
    """Scale an axis for a domain; gives where on it a trial's value lies, None for nowhere."""
    if domain.choices is None:
        if domain.log:
            _log_axis(axes, domain)
        axes.margins(x=0.08)
        return lambda given, _: None if given is None or (domain.log and given <= 0) else float(given)
    names = list(dict.fromkeys(words.setting(choice) for choice in [*domain.choices, *more]))
    axes.set_xticks(range(len(names)), [plain(name) for name in names])
    if sum(map(len, names)) > LETTERS:
        axes.tick_params(axis="x", rotation=30, labelsize="small")
        for name in axes.get_xticklabels():
            name.set(horizontalalignment="right", rotation_mode="anchor")
    axes.set_xlim(-0.6, len(names) - 0.4)
    axes.grid(visible=False, axis="x")
    return lambda given, number: (
        names.index(text) + 0.5 * ((number * TURN) % 1 - 0.5) if (text := words.setting(given)) in names else None
    )


def _log_axis(axes: Axes, domain: Domain) -> None:
    """Powers of ten; of a range within one, its ends and their geometric mean."""
    axes.set_xscale("log")
    axes.xaxis.set_minor_formatter(NullFormatter())
    if domain.low is not None and domain.high is not None and domain.high < 10 * domain.low:
        ticks = [domain.low, math.sqrt(domain.low * domain.high), domain.high]
        axes.set_xticks(ticks, [words.setting(float(tick), 2) for tick in ticks])


def _scatter(
    axes: Axes,
    spec: StudySpec,
    trials: Sequence[TrialRecord],
    place: Callable[[Any, int], float | None],
    key: str,
    **mark: Any,
) -> None:
    points = [(place(param(spec, trial, key), trial.number), trial.last(spec.metric)) for trial in trials]
    kept = [point for point in points if None not in point]
    if kept:
        axes.scatter(*zip(*kept, strict=True), **mark)
