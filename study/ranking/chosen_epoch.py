"""At which epoch a trial is taken, and with which values: one rule for worker, early stopping, sampler and results.

`search.epoch: last` takes the last epoch. `best` takes the best by an objective on the validation split: by its first
metric, after the constraints (those that keep them first; of two that do not, the one that misses them by less). Each
epoch counts as the mean of the last `search.epoch_window` epochs up to it, so that a lucky epoch does not win, and this
mean is the trial's value: the value of the best single epoch is biased upwards. Epochs before the first whole window
cannot win; a trial with fewer epochs than the window is taken at its last, with the mean of all. Ties go to the earlier
epoch. Every other metric is the mean over the same epochs; what `train.final` measures belongs to the weights at the
end of the chosen epoch, and stands in the last report.

Under several metrics the first alone chooses the epoch, and all metrics are those of that epoch.
"""

import math
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean
from typing import TYPE_CHECKING

from study.home.record import TrialRecord
from study.spec.objective import Objective, TrialScore

if TYPE_CHECKING:
    from study.training.checkpoint import ChoiceState

EpochReport = Mapping[str, float | None]


LAST_EPOCH_TEXT = "at the last epoch"


class BestEpochTracker:
    """The choice among the epochs of one trial that were heard so far.

    Its state can be saved and restored: what follows is then the same as without the interruption.

    Attributes:
        n_reports: how many epochs.
        chosen_epoch: the one chosen, from 1; 0 before the first.
        chosen_score: of that epoch, None where a metric that it needs is missing or not a number.
    """

    def __init__(self, goal: Objective) -> None:
        self._goal, self._recent = goal, deque[dict[str, float | None]](maxlen=goal.epoch_window or 1)
        self.n_reports, self.chosen_epoch = 0, 0
        self.chosen_score: TrialScore | None = None

    def update(self, report: EpochReport) -> bool:
        """Take in the next epoch's metrics, and return whether it is the chosen one now."""
        self.n_reports += 1
        if self._goal.epoch_window is None:  # a million reports are heard again when a large study is resumed
            self.chosen_epoch, self.chosen_score = self.n_reports, self._goal.score_of_report(report)
            return True
        self._recent.append({name: _finite_or_none(report.get(name)) for name in self._goal.needed_metrics})
        means = {name: _mean_of_metric(self._recent, name) for name in self._goal.needed_metrics}
        score = self._goal.score_of_report(means)
        before = self.chosen_score if self.n_reports > self._goal.epoch_window else None
        if before is not None and (score is None or score.first_metric_sort_key >= before.first_metric_sort_key):
            return False
        self.chosen_epoch, self.chosen_score = self.n_reports, score
        return True

    def state_dict(self) -> "ChoiceState":
        """Return the state as plain values."""
        parts = None
        if (score := self.chosen_score) is not None:
            parts = [list(part) for part in (score.values, score.values_to_maximise, score.constraint_violations)]
        return {"heard": self.n_reports, "epoch": self.chosen_epoch, "score": parts, "recent": list(self._recent)}

    def load_state_dict(self, state: "ChoiceState") -> None:
        """Restore the state that `state_dict` returned."""
        self.n_reports, self.chosen_epoch = state["heard"], state["epoch"]
        self.chosen_score = None if state["score"] is None else TrialScore(*map(tuple, state["score"]))
        self._recent.clear()
        self._recent.extend(state["recent"])


def metrics_at_chosen_epoch(goal: Objective, trial: TrialRecord) -> EpochReport:
    """Return a trial's metrics, and `epoch`: which one was chosen; empty before its first report."""
    if not trial.reports:
        return {}
    last = trial.reports[-1]
    if goal.epoch_window is None:
        return last
    known = trial.chosen_metrics_cache.get(goal)
    if known is None or known[0] is not last:
        known = trial.chosen_metrics_cache[goal] = last, _compute_metrics_at_chosen_epoch(goal, trial.reports)
    return known[1]


def metric_at_chosen_epoch(goal: Objective, trial: TrialRecord, name: str) -> float | None:
    """Return one metric of a trial, None where it is missing or not a number."""
    return metrics_at_chosen_epoch(goal, trial).get(name)


def iter_scores_if_ended(goal: Objective, reports: Sequence[EpochReport]) -> Iterator[tuple[int, TrialScore]]:
    """Yield each epoch with the score that the trial would have had if it had ended there; none where it lacks one."""
    choice = BestEpochTracker(goal)
    for report in reports:
        choice.update(report)
        if choice.chosen_score is not None:
            yield choice.n_reports, choice.chosen_score


def chosen_epoch_text(goal: Objective) -> str:
    """Return in words which epoch is chosen."""
    if goal.epoch_window is None:
        return LAST_EPOCH_TEXT
    limits = " within the limits" if goal.constraints else ""
    if goal.epoch_window == 1:
        return f"at the best epoch by {goal.metrics[0]}{limits}"
    return f"at the best epoch by {goal.metrics[0]}{limits}, as the mean of the {goal.epoch_window} epochs up to it"


def _compute_metrics_at_chosen_epoch(goal: Objective, reports: Sequence[EpochReport]) -> EpochReport:
    choice = BestEpochTracker(goal)
    for report in reports:
        choice.update(report)
    window = reports[max(0, choice.chosen_epoch - (goal.epoch_window or 1)) : choice.chosen_epoch]
    means = {name: _mean_of_metric(window, name) for name in reports[-1]}
    # what only the last report has is of the chosen weights
    of_weights = {name: value for name, value in reports[-1].items() if name not in window[0]}
    return means | of_weights | {"epoch": choice.chosen_epoch}


def _mean_of_metric(reports: Sequence[EpochReport] | deque[dict[str, float | None]], name: str) -> float | None:
    numbers = [number for report in reports if (number := report.get(name)) is not None]
    return fmean(numbers) if numbers and len(numbers) == len(reports) else None


def _finite_or_none(number: float | None) -> float | None:
    return number if number is not None and math.isfinite(number) else None
