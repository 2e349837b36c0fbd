"""Metrics of trials, their mean and spread over seeds, and what they score by an objective."""

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from study.home.events import FoldsJoined
from study.home.record import TrialRecord
from study.metrics import find_metric, is_fraction_metric, is_gap_metric, is_standard_error
from study.metrics.intervals import mean_confidence_interval
from study.ranking.chosen_epoch import metric_at_chosen_epoch, metrics_at_chosen_epoch
from study.spec import StudySpec
from study.spec.constraints import MetricConstraint
from study.spec.objective import Objective, TrialScore
from study.text import pluralise


@dataclass(frozen=True, repr=False)
class SeedStatistics:
    """Mean, sample standard deviation (None for fewer than two values) and count.

    Attributes:
        split_error: the standard error of the mean because its split is a sample, whatever the seeds do; None: not
            known.
        is_proportion: whether the values are shares, within 0 and 1.
        min_value: the least that values of another kind can be, 0 of a loss; None: there is no bound.
    """

    mean: float
    standard_deviation: float | None
    count: int
    split_error: float | None = None
    is_proportion: bool = True
    min_value: float | None = None

    def __float__(self) -> float:
        return self.mean

    def __str__(self) -> str:
        spread = "" if self.standard_deviation is None else f" ± {self.standard_deviation:.2g}"
        return f"{self.mean:.4g}{spread} ({pluralise(self.count, 'seed')})"

    __repr__ = __str__

    def with_split_error(self, name: str, error: float | None) -> "SeedStatistics":
        """Return these of a metric with its split's error, but of a gap, and with the bounds of its values."""
        metric, is_share = find_metric(name), is_fraction_metric(name)
        least = metric.min_value if metric else None
        known = None if is_gap_metric(name) else error
        return replace(self, split_error=known, is_proportion=is_share, min_value=least)

    def to_dict(self) -> dict[str, float | None]:
        """Return plain values for JSON: mean, sd, n."""
        return {"mean": self.mean, "sd": self.standard_deviation, "n": self.count}

    def confidence_interval(self, confidence: float = 0.95) -> tuple[float, float] | None:
        """Return the interval of a metric, see `mean_confidence_interval`; None without a split error."""
        if self.split_error is None or self.split_error <= 0:
            return None
        return mean_confidence_interval(
            self.mean,
            self.standard_deviation,
            self.count,
            self.split_error,
            is_proportion=self.is_proportion,
            min_value=self.min_value,
            confidence=confidence,
        )


RELATIVE_TOLERANCE = 1e-6
"""Share of a metric's size: numbers that differ by less are equal but for the rounding of 32-bit floats."""


def seed_statistics(values: Iterable[float | None]) -> SeedStatistics | None:
    """Return mean, sample standard deviation and count of the values that are not None; None without any.

    The deviation is 0 where it is the noise of rounding (`RELATIVE_TOLERANCE`).
    """
    numbers = [value for value in values if value is not None]
    if not numbers:
        return None
    deviation = statistics.stdev(numbers) if len(numbers) > 1 else None
    is_noise = deviation is not None and deviation <= RELATIVE_TOLERANCE * max(map(abs, numbers))
    return SeedStatistics(statistics.fmean(numbers), 0.0 if is_noise else deviation, len(numbers))


def statistics_by_metric(
    goal: Objective, trials: Sequence[TrialRecord], joined: FoldsJoined | None = None
) -> dict[str, SeedStatistics]:
    """Return statistics over trials of every validation metric, and of every test metric that was read.

    Trials are of several seeds; validation metrics are those of each trial's epoch by this objective. Standard errors
    stand in the statistics of what they are of, as the mean over the trials.

    Args:
        joined: what the trials, which ran on all folds, are worth on the samples together: it replaces their means. It
            has no deviation: its error is that of the samples.
    """
    by_name = {}
    names = {name for trial in trials for name in trial.reports[-1] if name.startswith("val/")}
    for name in sorted(name for name in names if not is_standard_error(name)):
        by_name[name] = seed_statistics_with_split_error(trials, name, partial(metric_at_chosen_epoch, goal))
    for name in sorted({name for trial in trials for name in trial.test_metrics if not is_standard_error(name)}):
        by_name[name] = seed_statistics_with_split_error(trials, name, _test_metric)
    of_all = {name: value for name, value in (joined.metrics if joined else {}).items() if value is not None}
    for name in [name for name in of_all if not is_standard_error(name)]:
        by_name[name] = statistics_of_single_evaluation(of_all, name, len(trials))
    return {name: value for name, value in by_name.items() if value}


def statistics_of_single_evaluation(metrics: Mapping[str, float | None], name: str, count: int) -> SeedStatistics:
    """Return a metric of one judgement of a split's samples, or of those of all folds together, with its error."""
    of_samples = SeedStatistics(metrics[name] or 0.0, None, count)
    return of_samples.with_split_error(name, metrics.get(f"{name}_standard_error"))


def seed_statistics_with_split_error(
    trials: Sequence[TrialRecord], name: str, value: Callable[[TrialRecord, str], float | None]
) -> SeedStatistics | None:
    """Return seed statistics of a metric of trials, with the split's error as the mean of those that they report."""
    found, error = (
        seed_statistics(value(trial, each) for trial in trials) for each in (name, f"{name}_standard_error")
    )
    return found.with_split_error(name, error.mean) if found and error else found


def _test_metric(trial: TrialRecord, name: str) -> float | None:
    return trial.test_metrics.get(name)


def trial_metric(spec: StudySpec, trial: TrialRecord, name: str) -> float | None:
    """Return a metric of a trial: its reading of the test split if there is one, else the value at its epoch."""
    tested = trial.test_metrics
    return tested[name] if name in tested else metric_at_chosen_epoch(spec.objective, trial, name)


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
    """Return the constraints that a complete trial breaks by its own metrics; none for any other trial."""
    score = mean_score(goal, [trial]) if trial.state == "complete" else None
    return goal.broken_constraints(score) if score else []
