"""Scores of trials by an objective, and which constraints they break."""

import statistics
from collections.abc import Sequence

from study.home.record import TrialRecord
from study.ranking.chosen_epoch import metric_at_chosen_epoch, metrics_at_chosen_epoch
from study.spec.objective import MetricConstraint, Objective, TrialScore


def mean_score(goal: Objective, trials: Sequence[TrialRecord]) -> TrialScore | None:
    """Return the score of each metric's mean over trials, at each trial's epoch; None if one lacks a metric."""
    if not all(trial.reports for trial in trials) or not trials:
        return None
    if len(trials) == 1:
        return goal.score_of_report(metrics_at_chosen_epoch(goal, trials[0]))
    means: dict[str, float | None] = {}
    for name in goal.needed_metrics:
        values = [value for trial in trials if (value := metric_at_chosen_epoch(goal, trial, name)) is not None]
        means[name] = statistics.fmean(values) if len(values) == len(trials) else None
    return goal.score_of_report(means)


def constraints_broken_by_trial(goal: Objective, trial: TrialRecord) -> list[MetricConstraint]:
    """Return the limits that a complete trial breaks by its own metrics; none for any other trial."""
    score = mean_score(goal, [trial]) if trial.state == "complete" else None
    return goal.broken_constraints(score) if score else []


def is_score_better(one: TrialScore, other: TrialScore) -> bool:
    """Return whether a score is better: less violation, then more gain; with several metrics, whether it dominates."""
    if one.has_single_metric:
        return one.first_metric_key < other.first_metric_key
    return one.constrained_dominates(other)
