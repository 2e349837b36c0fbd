"""The metric over epochs, and over the trials of the search."""

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from study.analysis.figures.parameters import rows_of
from study.analysis.figures.style import (
    BLACK,
    BLUE,
    GREY,
    MARK_WORDS,
    MARKS,
    ORANGE,
    PALE,
    RASTERIZED,
    VERMILLION,
    end_labels,
    ended_value,
    fade,
    legend,
    metric_axis,
    new,
    plain,
    styled,
)
from study.analysis.statistics import formatting, seed_words
from study.analysis.statistics.frame import thin
from study.home.record import StudyRecord, TrialRecord
from study.ranking import baseline, candidates, searched
from study.spec import StudySpec, rungs

CURVES = 400  # of each kind at most, evenly chosen


@styled
def learning_curves(spec: StudySpec, record: StudyRecord) -> Figure | None:
    """The study's metric over epochs: a curve per trial, the pruned ones marked, best and baseline named.

    A final training has one curve per seed.
    """
    trials = with_curve(spec, record)
    if not trials:
        return None
    best, reference = next(iter(candidates(record, spec)), None), baseline(record, spec)
    figure, (axes, *_) = new(_curves_title(spec, trials), 4.3)
    named = [candidate.trial for candidate in (best, reference) if candidate]
    others, faded = [trial for trial in trials if trial not in named], fade(min(len(trials), CURVES))
    full = thin([trial for trial in others if trial.state != "pruned"], CURVES)
    pruned = thin([trial for trial in others if trial.state == "pruned"], CURVES)
    axes.add_collection(LineCollection([curve(spec, t) for t in pruned], colors=PALE, linewidths=0.9, alpha=faded))
    axes.add_collection(LineCollection([curve(spec, t) for t in full], colors=BLUE, linewidths=1.0, alpha=0.45 * faded))
    _ends(axes, spec, pruned, "pruned", marker="v", color=GREY, s=22, alpha=faded)
    _ends(axes, spec, [t for t in full if t.state == "complete"], "complete", marker="o", color=BLUE, s=18, alpha=faded)
    _ends(axes, spec, [t for t in full if t.state == "failed"], "failed", marker="X", color=VERMILLION, s=34)
    labels = []
    for candidate, name, colour, line in ((best, "best", BLUE, "-"), (reference, "baseline", BLACK, "--")):
        if candidate:
            points = curve(spec, candidate.trial)
            axes.plot(*points.T, color=colour, linewidth=2.4, linestyle=line, zorder=4)
            labels.append((*points[-1], f"{name} (trial {candidate.trial.number})", colour))
    if not named:
        labels = [(*curve(spec, t)[-1], f"seed {t.seed}", BLUE) for t in full if t.stage == "final"][:8]
    axes.autoscale_view()
    _rungs(axes, spec)
    axes.set(xlabel="epoch", ylabel=plain(spec.metric))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    metric_axis(axes, spec.metric)
    end_labels(axes, labels)
    legend(figure, axes)
    return figure


@styled
def progress(spec: StudySpec, record: StudyRecord) -> Figure | None:
    """The search trial by trial: each value, the best of the complete trials so far, and the baseline."""
    trials = [trial for trial in record.by_stage("search") if ended_value(spec, trial) is not None]
    if not trials:
        return None
    reference, complete = baseline(record, spec), searched(record, spec)
    figure, (axes, *_) = new(_search_title(spec, record), 3.6)
    rows = rows_of(spec, record, trials)
    for state, mark in MARKS.items():
        of_state = [trial for trial in trials if trial.state == state]
        if of_state:
            ends = [(trial.number, rows.heights.get(trial.number, ended_value(spec, trial))) for trial in of_state]
            x, y = zip(*ends, strict=True)
            dim, many = fade(len(trials)), len(ends) > RASTERIZED
            axes.scatter(x, y, label=MARK_WORDS[state], alpha=dim, rasterized=many, **mark)
    last, labels = max(trial.number for trial in trials), []
    if complete:
        numbers = sorted(candidate.trial.number for candidate in complete)
        values = {candidate.trial.number: candidate.value for candidate in complete}
        pick = max if spec.mode == "max" else min
        so_far = list(accumulate((values[number] for number in numbers), pick))
        axes.step([*numbers, last], [*so_far, so_far[-1]], where="post", color=BLUE, linewidth=2.2, zorder=5)
        labels.append((last, so_far[-1], "best so far", BLUE))
    if reference:
        axes.hlines(reference.value, 0, last, color=BLACK, linewidth=1.3, linestyle="--", zorder=5)
        labels.append((last, reference.value, "baseline", BLACK))
    axes.set(xlabel="trial, in the search's order", ylabel=plain(spec.metric))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    metric_axis(axes, spec.metric)
    rows.apply(axes, spec.metric)
    end_labels(axes, labels)
    legend(figure, axes)
    return figure


def with_curve(spec: StudySpec, record: StudyRecord) -> list[TrialRecord]:
    """The trials that have a curve, without those that repeat others."""
    trials = record.by_stage("baseline", "search", "final")
    return [trial for trial in trials if any(report.get(spec.metric) is not None for report in trial.reports)]


def curve(spec: StudySpec, trial: TrialRecord) -> np.ndarray:
    """(epochs, 2): epoch and metric where it is a number."""
    points = [(r["epoch"], r[spec.metric]) for r in trial.reports if r.get(spec.metric) is not None]
    return np.array(points, dtype=float).reshape(-1, 2)


def _ends(axes: Axes, spec: StudySpec, trials: Sequence[TrialRecord], name: str, **mark: Any) -> None:
    if trials:
        axes.scatter(*np.array([curve(spec, trial)[-1] for trial in trials]).T, label=name, zorder=3, **mark)


def compared_at(spec: StudySpec) -> tuple[str, list[int]]:
    """The epochs at which early stopping compares trials; for the median rule, which compares at each, the first."""
    rule = spec.search.early_stopping
    epochs = sorted({rung for bracket in rungs.brackets(rule, spec.epochs) for rung in bracket.rungs})
    name, marked = ("median from", epochs[:1]) if rule.name == "median" else ("rung", epochs)
    return name, marked if spec.search.space else []


def _rungs(axes: Axes, spec: StudySpec) -> None:
    name, epochs = compared_at(spec)
    for rung in epochs:
        axes.axvline(rung, color=ORANGE, linewidth=1.0, linestyle=":", zorder=1)
        axes.annotate(
            f"{name} {rung}",
            (rung, 1.0),
            xycoords=("data", "axes fraction"),
            color="#8A5F00",
            fontsize=8.5,
            ha="center",
            va="bottom",
        )


def _curves_title(spec: StudySpec, trials: Sequence[TrialRecord]) -> str:
    pruned = sum(trial.state == "pruned" for trial in trials)
    if trials[0].stage == "final":
        return f"{spec.metric} of {formatting.count(len(trials), 'final training', 'final trainings')}, one per seed"
    if pruned:
        epochs, budget = sum(trial.epochs for trial in trials), spec.epochs * len(trials)
        trials_in_all = formatting.count(len(trials), "trial")
        return f"{pruned} of {trials_in_all} pruned: {epochs} epochs run instead of {budget}"
    return f"{spec.metric} of {formatting.count(len(trials), 'trial')}, none pruned"


def _search_title(spec: StudySpec, record: StudyRecord) -> str:
    reference, complete = baseline(record, spec), searched(record, spec)
    if not complete:
        return "No trial of the search is complete"
    best = complete[0]
    value = formatting.value(spec.metric, best.value)
    title = f"Best of the search, {seed_words.searched(spec)}: {value} (trial {best.trial.number})"
    return f"{title}, baseline {formatting.value(spec.metric, reference.value)}" if reference else title
