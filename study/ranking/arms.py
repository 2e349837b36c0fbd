"""Arms: what is compared, a configuration or a reference, with the trials that its metrics are from."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain

from study.home.events import EnsembleMeasured, FoldsJoined
from study.home.record import TrialRecord
from study.home.trial_record import EpochMetrics
from study.metrics import find_metric
from study.metrics.intervals import NORMAL_DEGREES_OF_FREEDOM
from study.ranking.candidates import Candidate, FittedReference
from study.ranking.difference import CONFIDENCE_LEVEL, Difference, difference_from_error, mean_difference
from study.ranking.trial_statistics import (
    RELATIVE_TOLERANCE,
    SeedStatistics,
    seed_statistics,
    statistics_of_single_evaluation,
    trial_metric,
)
from study.spec import StudySpec

NO_TRIAL_NUMBER = -1
"""Number of an arm that is no trial: of a reference."""


@dataclass(frozen=True)
class Arm:
    """One configuration and the trials that its metrics are taken from, or a reference.

    Where a configuration was confirmed on fresh seeds, the trial by which it was chosen is left out: its value is the
    luckiest of many.

    Attributes:
        n_candidates: from how many configurations it was chosen by the very trials that it has here; 1: these had no
            part in the choice.
        joined_folds: where the trials ran on all folds, what their samples together say.
        ensemble: where the networks of the trials are one model, what was measured of that.
    """

    label: str
    trial_number: int
    trials: Sequence[TrialRecord]
    spec: StudySpec
    n_candidates: int = 1
    joined_folds: FoldsJoined | None = None
    ensemble: EnsembleMeasured | None = None

    @property
    def is_reference(self) -> bool:
        """Whether it is a reference, which has no seeds."""
        return self.trial_number == NO_TRIAL_NUMBER

    @property
    def is_fitted_without_seed(self) -> bool:
        """Whether it was fitted without one, by the search or finally."""
        return self.is_reference or is_fitted_once(self.spec, self.trials)

    @property
    def label_in_sentence(self) -> str:
        """Label within a sentence: `trial 3`, `the baseline`."""
        is_whole = self.is_reference or self.label.startswith("trial")
        return self.label if is_whole else f"the {self.label}"

    def metric_statistics(self, name: str) -> SeedStatistics | None:
        """Return mean and sample standard deviation of a metric over the trials that have it.

        Where the trials ran on all folds, it is the metric of the samples of all folds together, with their error; of
        networks that are one model, that of the model.
        """
        if self.ensemble:
            has_value = self.ensemble.metrics.get(name) is not None
            return statistics_of_single_evaluation(self.ensemble.metrics, name, len(self.trials)) if has_value else None
        if self.joined_folds and self.joined_folds.metrics.get(name) is not None:
            return statistics_of_single_evaluation(self.joined_folds.metrics, name, len(self.trials))
        return seed_statistics(trial_metric(self.spec, trial, name) for trial in self.trials)

    def metric_seeds(self, name: str) -> list[int]:
        """Return the seeds of the trials behind `metric_statistics`."""
        return [trial.seed for trial in self.trials if trial_metric(self.spec, trial, name) is not None]

    @property
    def has_test_metrics(self) -> bool:
        """Whether it has metrics of the test split."""
        if self.ensemble:
            return any(name.startswith("test/") for name in self.ensemble.metrics)
        return any(trial.test_metrics for trial in self.trials)

    @property
    def has_all_folds(self) -> bool:
        """Whether it ran on every fold, as a reference does; true of data without folds."""
        folds = self.spec.folds or 0
        return self.is_reference or len({trial.fold for trial in self.trials} - {None}) >= folds

    @property
    def repeats_text(self) -> str:
        """What the trials differ in, besides chance: `seeds`, or `folds and seeds`."""
        return "folds and seeds" if any(trial.fold is not None for trial in self.trials) else "seeds"

    def interval_over_text(self, name: str) -> str:
        """Return what the interval of a difference is over: `other samples`, of all folds together, or its repeats."""
        return "other samples" if self.joined_folds and name in self.joined_folds.draws else self.repeats_text

    def is_mean_over_folds(self, split: str) -> bool:
        """Whether its metrics of a split are means over the models of folds, not those of one or of joined samples."""
        is_reference = self.is_reference and self.spec.folds is not None
        are_several = len({trial.fold for trial in self.trials}) > 1
        return are_several and self.joined_folds is None if split == "val" else are_several or is_reference

    def difference_to(self, other: "Arm", name: str) -> "Difference | None":
        """Return this arm minus another one in a metric, see `mean_difference`; None where one of the two has no value.

        Of two that ran on all folds it is that of their samples together: its error is that of samples drawn anew, the
        same ones for both, and not known of a metric without such draws. An interval ends where the metric does: no
        accuracy rises by more than 100 points.
        """
        found = self._unbounded_difference_to(other, name)
        if found is None or found.interval is None or not (metric := find_metric(name)) or metric.max_value is None:
            return found
        least, largest = metric.min_value or 0.0, metric.max_value
        known = [*self.metric_by_seed(name).values(), *other.metric_by_seed(name).values()]
        if not all(least <= value <= largest for value in known):
            return found  # a function's own accuracy in percent
        low, high = (max(least - largest, min(largest - least, end)) for end in found.interval)
        return replace(found, interval=(low, high))

    def _unbounded_difference_to(self, other: "Arm", name: str) -> "Difference | None":
        joined = [arm.joined_folds for arm in (self, other) if arm.joined_folds]
        mine, theirs = (of.metrics.get(name) for of in joined) if len(joined) == 2 else (None, None)
        if mine is None or theirs is None:
            return mean_difference(self.metric_by_seed(name), other.metric_by_seed(name), self.n_candidates)
        noise = RELATIVE_TOLERANCE * max(abs(mine), abs(theirs))
        value = mine - theirs if abs(mine - theirs) > noise else 0.0
        draws = [of.draws.get(name) for of in joined]
        if not draws[0] or not draws[1]:
            return Difference(value, None, True, self.n_candidates, degrees_of_freedom=NORMAL_DEGREES_OF_FREEDOM)
        error = statistics.stdev(ours - other for ours, other in zip(*draws, strict=True))
        error = error if error > noise else 0.0
        return difference_from_error(value, error, NORMAL_DEGREES_OF_FREEDOM, CONFIDENCE_LEVEL, True, self.n_candidates)

    def metric_by_seed(self, name: str) -> dict[int, float]:
        """Return a metric by seed, of the trials that have it; of a seed that ran twice the first."""
        by_seed: dict[int, float] = {}
        for trial in self.trials:
            if (value := trial_metric(self.spec, trial, name)) is not None:
                by_seed.setdefault(trial.seed, value)
        return by_seed


def is_fitted_once(spec: StudySpec, trials: Sequence[TrialRecord]) -> bool:
    """Return whether these are the one trial of a model of scikit-learn: it knows no seed, or hardly."""
    return spec.is_scikit_learn_reference and len(trials) == 1


def arm_of_candidate(spec: StudySpec, candidate: Candidate | FittedReference) -> Arm:
    """Return a configuration with its confirm trials, or without any with the trials that the search saw.

    A reference is given as one trial, on the study's first seed, whose metrics are its own.
    """
    if isinstance(candidate, FittedReference):
        tested = {name: value for name, value in candidate.metrics.items() if name.startswith("test/")}
        others = {name: value for name, value in candidate.metrics.items() if name not in tested}
        epoch, read = EpochMetrics(1, others), {**tested}
        trial = TrialRecord(
            NO_TRIAL_NUMBER, "search", {}, spec.seeds[0], state="complete", reports=[epoch], test_metrics=read
        )
        metrics, draws = dict(candidate.metrics), dict(candidate.bootstrap_draws)
        joined = FoldsJoined(NO_TRIAL_NUMBER, (), metrics, draws, time=0.0) if draws else None
        return Arm(candidate.name_in_sentence, NO_TRIAL_NUMBER, [trial], spec, joined_folds=joined)
    label = "baseline" if candidate.trial.stage == "baseline" else f"trial {candidate.trial.number}"
    trials = candidate.confirm_trials if candidate.confirm_statistics else candidate.replicates
    joined = candidate.joined_folds if candidate.confirm_statistics else None
    return Arm(label, candidate.trial.number, trials, spec, joined_folds=joined)


def metrics_of_both_splits(spec: StudySpec, compared: Sequence[Arm | None]) -> list[str]:
    """Return the study's metric on both splits, then every other `val/*` and `test/*` metric of the arms."""
    trials = list(chain.from_iterable(arm.trials for arm in compared if arm))
    names = {key for trial in trials for source in (*trial.reports[-1:], trial.test_metrics) for key in source}
    first = [spec.metric, spec.test_metric]
    return [*first, *sorted(n for n in names if n.startswith(("val/", "test/")) and n not in first)]
