"""Figures of what a study came to: each seed, the way from the baseline to the best, the metric over epochs."""

from collections.abc import Iterator, Mapping, Sequence
from textwrap import fill, shorten

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from study.analysis.figures.point_labels import LabelledPoint, label_points
from study.analysis.figures.style import (
    BLACK,
    BLUE,
    GREY,
    ORANGE,
    PALE_GREY,
    VERMILLION,
    MarkStyle,
    add_figure_legend,
    escape_dollars,
    format_metric_axis,
    label_curve_ends,
    new_figure,
    opacity_for_count,
    parameter_axis_label,
    with_figure_style,
    wrap_metric_name,
)
from study.analysis.figures.trade_off_figures import BREAKS_CONSTRAINT_MARK, broken_constraints_text
from study.analysis.statistics import formatting
from study.analysis.statistics.ablation_effects import AblationEffect, ablation_effects_by_metric
from study.analysis.statistics.importance import Importances, VarianceShare, compute_importances
from study.analysis.statistics.trials_frame import sample_evenly, trial_metric
from study.home.record import TrialRecord
from study.metrics import is_percent_metric
from study.ranking import Results
from study.ranking.arms import Arm, arm_of_candidate
from study.ranking.final_model import final_model_arm
from study.spec import StudySpec
from study.spec.rungs import RungSchedule
from study.text import pluralise

ROW_LABEL_WIDTH = 24
"""Characters of a line of a row's name beside a panel."""


@with_figure_style
def plot_fresh_seed_values(results: Results) -> Figure | None:
    """Plot the metric on every fresh seed, with mean and standard deviation, on both splits.

    The best reference, which has no seeds, is drawn beside them, and among those of a final training its model, where
    that is the ensemble.
    """
    spec, reference, fresh = results.spec, results.reference_as_result, results.fresh_seed_arms
    if not fresh:
        return None
    rival = None if reference or spec.final_seeds is not None else results.best_reference
    beside = [arm_of_candidate(spec, rival)] if rival else []
    before = len(fresh) - (fresh[-1].label == "baseline")
    arms = [*([arm_of_candidate(spec, reference)] if reference else []), *fresh[:before], *beside, *fresh[before:]]
    metrics = [name for name in (spec.metric, spec.test_metric) if any(arm.metric_statistics(name) for arm in arms)]
    metrics = metrics or [spec.metric]
    words = [wrap_metric_name(escape_dollars(name)) for name in metrics]
    height = 1.5 + 0.45 * len(arms) + 0.17 * max(label.count("\n") for label in words)
    figure, panels = new_figure(_fresh_seeds_title(metrics[0], arms), height, len(metrics), sharex=True)
    for axes, name, label in zip(panels, metrics, words, strict=True):
        for place, arm in enumerate(reversed(arms)):
            _plot_seed_row(axes, arm, name, place)
        axes.set_yticks(range(len(arms)), [fill(escape_dollars(arm.label), ROW_LABEL_WIDTH) for arm in reversed(arms)])
        axes.set_ylim(-0.6, len(arms) - 0.4)
        is_joined = any(arm.joined_folds and name in arm.joined_folds.metrics for arm in fresh)
        has_error = any(value.split_error is not None for arm in fresh if (value := arm.metric_statistics(name)))
        error = " ± standard error" * has_error
        of = f"all folds together{error}" if is_joined else f"{fresh[0].repeats_text}, mean ± sd"
        axes.set_xlabel(f"{label}\n{fill(of, 26)}")
        axes.xaxis.set_major_locator(MaxNLocator(4))
        format_metric_axis(axes, name, "x")
    if is_percent_metric(spec.metric) and panels[0].get_xlim()[1] > 1.0:  # of both, as they share it
        panels[0].set_xlim(right=1.0 + 0.03 * (1.0 - panels[0].get_xlim()[0]))
    if (model := final_model_arm(results)) and model.ensemble:
        label_points(figure, list(_plot_ensemble_marks(model, dict(zip(metrics, panels, strict=True)))))
    return figure


def _plot_ensemble_marks(model: Arm, panels: Mapping[str, Axes]) -> Iterator[tuple[Axes, list[LabelledPoint]]]:
    """Plot the model that an ensemble is; yield where it and its networks are, with the label to write beside it."""
    for metric, axes in panels.items():
        if value := model.metric_statistics(metric):
            axes.scatter([value.mean], [0.0], marker="D", s=40, color=ORANGE, edgecolors="white", zorder=4)
            own = [one for trial in model.trials if (one := trial_metric(model.spec, trial, metric)) is not None]
            marks = [*own, *([float(np.mean(own))] if own else [])]
            yield axes, [(value.mean, 0.0, "the model"), *((one, 0.0, "") for one in marks)]


def _fresh_seeds_title(name: str, arms: Sequence[Arm]) -> str:
    ends = [arms[0], *arms[1:][-1:]] if arms[-1].label == "baseline" else arms[:1]
    means = " against ".join(f"{formatting.format_arm_mean(arm, name)} ({arm.label})" for arm in ends)
    return f"{name}: {means}"


def _plot_seed_row(axes: Axes, arm: Arm, name: str, height: int) -> None:
    colour = BLACK if arm.label == "baseline" else GREY if arm.is_reference else BLUE
    values = [value for trial in arm.trials if (value := trial_metric(arm.spec, trial, name)) is not None]
    spread = arm.metric_statistics(name)
    if spread is None:
        axes.text(0.02, height, "not read", transform=axes.get_yaxis_transform(), color=GREY, va="center", fontsize=9.5)
        return
    joined = arm.joined_folds.metrics if arm.joined_folds and name.startswith("val/") else {}
    if joined.get(name) is not None:  # no mean of the folds, whose own values would mislead
        axes.errorbar(spread.mean, height, xerr=spread.split_error, fmt="D", color=colour, markersize=6)
        return
    deviation = spread.standard_deviation
    axes.errorbar(spread.mean, height, xerr=deviation, fmt="|", color=colour, markersize=16, markeredgewidth=2.2)
    if not arm.is_reference:
        ring: MarkStyle = {"s": 26, "facecolors": "white", "edgecolors": colour, "linewidths": 1.3, "zorder": 3}
        axes.scatter(values, [height] * len(values), **ring)


@with_figure_style
def plot_ablation(results: Results) -> Figure | None:
    """Plot a bar per step of the ablation's path with its interval, on both splits.

    None before a seed has run every configuration of the path.
    """
    paths = ablation_path_effects_by_metric(results)
    if not paths:
        return None
    first, gain = next(iter(paths.values()))
    steps = pluralise(len(first) - 1, "step")
    title = f"From the baseline in {steps} to {_total_gain_text(next(iter(paths)), gain)}"
    figure, panels = new_figure(title, 1.6 + 0.42 * len(first), 2, sharey=True)
    for axes, (name, (path, _)) in zip(panels, paths.items(), strict=False):
        _plot_ablation_bars(results.spec, axes, name, path)
    panels[0].set_yticks(range(len(first)), [escape_dollars(shorten(effect.label, 40)) for effect in first])
    panels[0].set_ylim(len(first) - 0.5, -0.5)
    for axes in panels[len(paths) :]:
        axes.set_visible(False)
    return figure


def ablation_path_effects_by_metric(results: Results) -> dict[str, tuple[list[AblationEffect], AblationEffect]]:
    """Return the steps of the path and the whole gain, by metric.

    Metrics are the study's own on each split where the path is complete.
    """
    return {
        name: (path, gain)
        for name, effects in ablation_effects_by_metric(results).items()
        if name in (results.spec.metric, results.spec.test_metric)
        and (gain := next(effect for effect in effects if effect.kind == "gain")).difference
        and (path := [effect for effect in effects if effect.kind == "path"])
    }


def _total_gain_text(name: str, gain: AblationEffect) -> str:
    assert gain.difference is not None
    change = formatting.format_difference(name, gain.difference.value)
    between = formatting.format_difference_interval(name, gain.difference)
    return f"{change} on {name}" if between == formatting.MISSING_TEXT else f"{change} ({between}) on {name}"


def _plot_ablation_bars(spec: StudySpec, axes: Axes, name: str, path: Sequence[AblationEffect]) -> None:
    """Plot the bars of one metric: each begins where the one before it ended."""
    assert path[0].statistics is not None
    sign = -1.0 if spec.direction(name) == "min" else 1.0
    at = path[0].statistics.mean
    axes.plot([at], [0], "|", color=BLACK, markersize=18, markeredgewidth=2.2)
    for height, step in enumerate(path[1:], 1):
        assert step.difference is not None
        colour = BLUE if sign * step.difference.value >= 0 else VERMILLION
        axes.barh(height, step.difference.value, left=at, height=0.5, color=colour, alpha=0.75)
        axes.plot([at, at], [height - 1, height + 0.25], color=GREY, linewidth=0.8)
        if step.difference.interval:
            low, high = step.difference.interval
            axes.plot([at + low, at + high], [height, height], color=BLACK, linewidth=1.4)
        at += step.difference.value
    axes.plot([at], [len(path) - 1], "|", color=BLACK, markersize=18, markeredgewidth=2.2)
    axes.use_sticky_edges = False  # a bar's end is no end of the axis
    axes.margins(x=0.08)
    axes.set_xlabel(wrap_metric_name(escape_dollars(name)))
    axes.xaxis.set_major_locator(MaxNLocator(5))
    format_metric_axis(axes, name, "x")


MAX_CURVES_PER_KIND = 400  # largest number of each kind; of more, some are chosen evenly


@with_figure_style
def plot_learning_curves(results: Results) -> Figure | None:
    """Plot the study's metric over epochs: a curve per trial, the pruned ones marked, best and baseline named.

    A final training has one curve per seed.
    """
    spec = results.spec
    trials = trials_with_curve(results)
    if not trials:
        return None
    best, baseline = next(iter(results.ranked_search), None), results.baseline
    figure, (axes, *_) = new_figure(_learning_curves_title(spec, trials), 4.3)
    named = [candidate.trial for candidate in (best, baseline) if candidate]
    others = [trial for trial in trials if trial not in named]
    faded = opacity_for_count(min(len(trials), MAX_CURVES_PER_KIND))
    full = sample_evenly([trial for trial in others if trial.state != "pruned"], MAX_CURVES_PER_KIND)
    pruned = sample_evenly([trial for trial in others if trial.state == "pruned"], MAX_CURVES_PER_KIND)
    for drawn, colour, width, opacity in ((pruned, PALE_GREY, 0.9, faded), (full, BLUE, 1.0, 0.45 * faded)):
        curves = [learning_curve(spec, trial) for trial in drawn]
        axes.add_collection(LineCollection(curves, colors=colour, linewidths=width, alpha=opacity))
    broken = {
        each.trial.number: each.score for each in results.ranked_by_search_value if each.score.total_violation > 0
    }
    marks: dict[str, MarkStyle] = {
        "pruned": {"marker": "v", "color": GREY, "s": 22, "alpha": faded, "zorder": 3},
        "complete": {"marker": "o", "color": BLUE, "s": 18, "alpha": faded, "zorder": 3},
        "failed": {"marker": "X", "color": VERMILLION, "s": 34, "zorder": 3},
    }
    for state, mark in marks.items():
        ends = [learning_curve(spec, t)[-1] for t in (*pruned, *full) if t.state == state and t.number not in broken]
        if ends:
            axes.scatter(*np.array(ends).T, label=state, **mark)
    if ends := [learning_curve(spec, t)[-1] for t in full if t.number in broken]:
        hollow: MarkStyle = {**marks["complete"], **BREAKS_CONSTRAINT_MARK, "zorder": 3.5}
        axes.scatter(*np.array(ends).T, label=broken_constraints_text(spec, *broken.values()), **hollow)
    labels = []
    for candidate, name, colour, line in (
        (best, formatting.name_of_best(results), BLUE, "-"),
        (baseline, "baseline", BLACK, "--"),
    ):
        if candidate:
            points = learning_curve(spec, candidate.trial)
            axes.plot(*points.T, color=colour, linewidth=2.4, linestyle=line, zorder=4)
            labels.append((*points[-1], f"{name} (trial {candidate.trial.number})", colour))
    if not named:
        labels = [(*learning_curve(spec, t)[-1], f"seed {t.seed}", BLUE) for t in full if t.stage == "final"][:8]
    axes.autoscale_view()
    _plot_rung_lines(axes, spec)
    axes.set(xlabel="epoch", ylabel=escape_dollars(spec.metric))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    format_metric_axis(axes, spec.metric)
    label_curve_ends(axes, labels)
    add_figure_legend(figure, axes)
    return figure


def trials_with_curve(results: Results) -> list[TrialRecord]:
    """Return the trials that reported the metric, without confirm trials and others that repeat a configuration.

    Empty where all of them reported it once: that is no curve.
    """
    trials = list(results.record.trials_of_stages("baseline", "search", "final"))
    values = [[report.get(results.spec.metric) is not None for report in trial.reports] for trial in trials]
    if not any(sum(reported) > 1 for reported in values):
        return []
    return [trial for trial, reported in zip(trials, values, strict=True) if any(reported)]


def learning_curve(spec: StudySpec, trial: TrialRecord) -> NDArray[np.float64]:
    """Return (epochs, 2): epoch and metric, where it is a number."""
    points = [(r["epoch"], r[spec.metric]) for r in trial.reports if r.get(spec.metric) is not None]
    return np.array(points, dtype=float).reshape(-1, 2)


def _plot_rung_lines(axes: Axes, spec: StudySpec) -> None:
    for rung in RungSchedule(spec.search.early_stopping, spec.epochs).rung_epochs if spec.search.space else ():
        axes.axvline(rung, color=ORANGE, linewidth=1.0, linestyle=":", zorder=1)
        above = axes.get_xaxis_transform()
        axes.text(rung, 1.0, f"epoch {rung}", transform=above, color="#8A5F00", fontsize=8.5, ha="center", va="bottom")


def _learning_curves_title(spec: StudySpec, trials: Sequence[TrialRecord]) -> str:
    pruned = sum(trial.state == "pruned" for trial in trials)
    if trials[0].stage == "final":
        return f"{spec.metric} of {pluralise(len(trials), 'final training', 'final trainings')}, one per seed"
    if pruned:
        epochs, budget = sum(trial.n_epochs for trial in trials), spec.epochs * len(trials)
        trials_in_all = pluralise(len(trials), "trial")
        return f"{pruned} of {trials_in_all} pruned: {epochs} epochs run instead of {budget}"
    return f"{spec.metric} of {pluralise(len(trials), 'trial')}, none pruned"


MIN_SHARE_IN_TITLE = 0.1
"""A share that is worth a sentence; said only where the whole interval is above it."""


@with_figure_style
def plot_importance(results: Results) -> Figure | None:
    """Plot `compute_importances` as bars: each parameter alone, their interactions, the remainder."""
    found = compute_importances(results)
    if not found.share_by_key:
        return None
    bars = importance_bars(found)
    figure, (axes, *_) = new_figure(importance_title(results.spec, found), 1.4 + 0.5 * len(bars))
    for place, (_, share, colour) in enumerate(reversed(bars)):
        axes.barh(place, share.value, height=0.6, color=colour)
        axes.plot([share.low, share.high], [place, place], color=GREY, linewidth=1.6)
        words = f"{share_in_percent(share)}  ({100 * share.low:.0f} to {100 * share.high:.0f})"
        at = max(share.high, share.value)
        axes.annotate(words, (at, place), xytext=(5, 0), textcoords="offset points", va="center", fontsize=8.5)
    axes.set_yticks(range(len(bars)), [name for name, _, _ in reversed(bars)])
    axes.set_xlabel(f"share of the variance of {results.spec.metric} over the space, 95% interval")
    axes.set_xlim(0, 1.2)
    axes.set_xticks([0, 0.2, 0.4, 0.6, 0.8, 1.0], ["0", "20%", "40%", "60%", "80%", "100%"])
    axes.grid(visible=False, axis="y")
    return figure


def importance_bars(found: Importances) -> list[tuple[str, VarianceShare, str]]:
    """Return label, share and colour of each bar: parameters by share, then interactions and remainder."""
    bars: list[tuple[str, VarianceShare, str]] = [
        (f"{parameter_axis_label(key)}\n{pluralise(found.n_trials_by_key[key], 'trial')}", share, BLUE)
        for key, share in found.share_by_key.items()
    ]
    bars += [("interactions of pairs", found.interactions_share, ORANGE)] if found.interactions_share else []
    if found.remainder_share:
        bars.append(("remainder: noise, and\nwhat is not resolved", found.remainder_share, PALE_GREY))
    return bars


def importance_title(spec: StudySpec, found: Importances) -> str:
    """Return what is sure enough to be said in a sentence."""
    key, share = next(iter(found.share_by_key.items()))
    over = "among the trials that early stopping let through" if found.are_trials_selected else "over the space"
    if share.low >= MIN_SHARE_IN_TITLE:
        return f"{key} alone explains {_share_with_interval(share)} of the variance of {spec.metric} {over}"
    said = f"No parameter alone surely explains {100 * MIN_SHARE_IN_TITLE:.0f}% of the variance of {spec.metric} {over}"
    together = found.interactions_share
    if together and together.low >= MIN_SHARE_IN_TITLE:
        said += f"; interactions explain {_share_with_interval(together)}"
    return said


def share_in_percent(share: VarianceShare) -> str:
    """Return a share as `48%`."""
    return f"{100 * share.value:.0f}%"


def _share_with_interval(share: VarianceShare) -> str:
    return f"{share_in_percent(share)} (95%: {100 * share.low:.0f} to {100 * share.high:.0f})"
