"""The difference between two configurations, with its interval.

Configurations that ran on the same seeds share what these seeds do to any configuration: the order of the samples, the
first weights. So they are compared seed by seed. The best was chosen by the values that it is then judged by, and the
interval allows for that, see `selection_adjusted_t`.
"""

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain

from study.home.events import EnsembleMeasured, FoldsJoined
from study.home.record import TrialRecord
from study.home.trial_record import EpochMetrics
from study.knobs import Value
from study.metrics import find_metric
from study.ranking.candidates import (
    NORMAL_DEGREES_OF_FREEDOM,
    RELATIVE_TOLERANCE,
    Candidate,
    FittedReference,
    SeedStatistics,
    seed_statistics,
    split_sample_statistics,
    trial_metric,
)
from study.spec import StudySpec

# Student's t of the best of several: how far its mean lies from its true one, in its own standard errors.
#
# The best of m configurations was chosen by the means of values whose luck is still in them: its own mean is too high.
# With normal values, the means over the seeds are independent of the standard deviations, so the chosen one's standard
# error has n - 1 degrees of freedom whatever was chosen, and its luck is at most the largest of m. So
#
#     P(T > c) <= 1 - E[Phi(c S)^m], S^2 = chi^2(n - 1) / (n - 1),
#
# with equality where the m are alike and independent. Positive correlation, as by a shared baseline and shared seeds,
# makes the largest smaller (Slepian 1962), and no variance has to equal another. The value at which the right side is
# 2.5% takes the place of Student's quantile. It is below Bonferroni's, and its equal for m = 1.

MAX_LUCK_STANDARD_ERRORS = 12.0
"""Largest luck of a mean, in standard errors, that is counted; below zero it cannot pass for better."""


@cache
def selection_adjusted_t(level: float, degrees_of_freedom: float, n_candidates: int = 1) -> float:
    """Return the t that the best of `n_candidates` equal configurations exceeds with probability 1 - `level` at most.

    Args:
        level: above 0.5.
        degrees_of_freedom: degrees of freedom of a single one's standard error.
        n_candidates: 1: Student's quantile.
    """
    import numpy as np  # here: what has no interval is told at once
    from scipy.special import chdtr, ndtr, stdtrit

    student = float(stdtrit(degrees_of_freedom, level))
    if n_candidates == 1:
        return student
    bonferroni = -float(stdtrit(degrees_of_freedom, (1 - level) / n_candidates))
    luck = np.linspace(0.0, MAX_LUCK_STANDARD_ERRORS, 6001)
    density = n_candidates * np.exp(-(luck**2) / 2) / np.sqrt(2 * np.pi) * ndtr(luck) ** (n_candidates - 1)

    def beyond(quantile: float) -> float:
        probability = chdtr(degrees_of_freedom, degrees_of_freedom * (luck / quantile) ** 2)
        return float(np.trapezoid(density * probability, luck)) - (1 - level)

    return find_root(beyond, student * 0.99, bonferroni * 1.01)


def find_root(function: Callable[[float], float], low: float, high: float) -> float:
    """Return where a function that falls or rises all the way is zero, to ten digits, by the Illinois method.

    Importing scipy.optimize for it would take most of a second.

    Args:
        low, high: its signs differ there.
    """
    before, at, of_before, of_at = low, high, function(low), function(high)
    while of_at and abs(at - before) > 1e-12:
        found = at - of_at * (at - before) / (of_at - of_before)
        of_found = function(found)
        if (of_found > 0) == (of_at > 0):
            of_before /= 2  # the same end a second time would make it slow
        else:
            before, of_before = at, of_at
        if abs(found - at) <= 1e-10 * max(1.0, abs(found)):
            return found
        at, of_at = found, of_found
    return at


CONFIDENCE_LEVEL = 0.95

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
    def knows_no_seed(self) -> bool:
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
            return split_sample_statistics(self.ensemble.metrics, name, len(self.trials)) if has_value else None
        if self.joined_folds and self.joined_folds.metrics.get(name) is not None:
            return split_sample_statistics(self.joined_folds.metrics, name, len(self.trials))
        return seed_statistics(trial_metric(self.spec, trial, name) for trial in self.trials)

    def metric_seeds(self, name: str) -> list[int]:
        """Return the seeds of the trials behind `metric_statistics`."""
        return [trial.seed for trial in self.trials if trial_metric(self.spec, trial, name) is not None]

    @property
    def was_tested(self) -> bool:
        """Whether it has metrics of the test split."""
        if self.ensemble:
            return any(name.startswith("test/") for name in self.ensemble.metrics)
        return any(trial.test_metrics for trial in self.trials)

    @property
    def repeated_over(self) -> str:
        """What the trials differ in, besides chance: `seeds`, or `folds and seeds`."""
        return "folds and seeds" if any(trial.fold is not None for trial in self.trials) else "seeds"

    def spread_over(self, name: str) -> str:
        """Return what the interval of a difference is over: `other samples`, of all folds together, or its repeats."""
        return "other samples" if self.joined_folds and name in self.joined_folds.draws else self.repeated_over

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
        return difference_by_error(value, error, NORMAL_DEGREES_OF_FREEDOM, CONFIDENCE_LEVEL, True, self.n_candidates)

    def metric_by_seed(self, name: str) -> dict[int, float]:
        """Return a metric by seed, of the trials that have it; of a seed that ran twice the first."""
        by_seed: dict[int, float] = {}
        for trial in self.trials:
            if (value := trial_metric(self.spec, trial, name)) is not None:
                by_seed.setdefault(trial.seed, value)
        return by_seed


@dataclass(frozen=True)
class Difference:
    """A difference of means and its interval, None where there are too few values for one.

    Attributes:
        value: 0 where it is the noise of rounding (`study.ranking.RELATIVE_TOLERANCE`).
        is_paired: whether it is the mean over shared seeds of the difference on each.
        n_candidates: from how many configurations the first was chosen, which the interval allows for.
        standard_error, degrees_of_freedom: of the value; None without an interval.
    """

    value: float
    interval: tuple[float, float] | None
    is_paired: bool = False
    n_candidates: int = 1
    standard_error: float | None = None
    degrees_of_freedom: float | None = None

    @property
    def is_clear(self) -> bool | None:
        """Whether zero lies outside the interval; None without an interval."""
        return None if self.interval is None else self.interval[0] > 0 or self.interval[1] < 0

    @property
    def is_over_samples(self) -> bool:
        """Whether it is of the samples of all folds together, any interval over such samples drawn anew, not seeds."""
        return self.degrees_of_freedom == NORMAL_DEGREES_OF_FREEDOM

    @property
    def has_zero_width(self) -> bool:
        """Whether every seed, or every draw of the samples, gave the same values, so that the interval has no width."""
        return self.interval is not None and self.interval[0] == self.interval[1]

    @property
    def is_unclear_for_few_seeds(self) -> bool:
        """Whether an interval with fewer than 2 degrees of freedom holds zero.

        With two seeds Student's t is 12.7, and the interval may reach over more than all values that the metric has.
        """
        return self.is_clear is False and self.degrees_of_freedom is not None and self.degrees_of_freedom < 2

    def to_dict(self) -> dict[str, Value]:
        """Return plain values for JSON: difference, interval, paired, among."""
        interval = list(self.interval) if self.interval else None
        return {"difference": self.value, "interval": interval, "paired": self.is_paired, "among": self.n_candidates}

    def to_document_value(self) -> dict[str, Value]:
        """Return plain values for a document: also whether it rests on too few seeds to judge."""
        return {**self.to_dict(), "too_few_seeds": self.is_unclear_for_few_seeds}


def is_fitted_once(spec: StudySpec, trials: Sequence[TrialRecord]) -> bool:
    """Return whether these are the one trial of a model of scikit-learn: it knows no seed, or hardly."""
    return spec.is_scikit_learn_reference and len(trials) == 1


def to_arm(spec: StudySpec, candidate: Candidate | FittedReference) -> Arm:
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


ArmValues = Mapping[int, float] | SeedStatistics | None


def mean_difference(
    one: ArmValues, other: ArmValues, n_candidates: int = 1, confidence: float = CONFIDENCE_LEVEL
) -> Difference | None:
    """Return `one` minus `other`, with the paired t interval by the seeds that both have.

    Where that is not possible, it is the difference of the means with Welch's interval: of spreads, as those of printed
    numbers, with fewer than two seeds in common, or where the difference is the same on all of them, which small splits
    bring about by chance.

    Args:
        one, other: a metric by seed, or its spread alone.
        n_candidates: from how many configurations `one` was chosen by these values, or by others of the same trials.

    Returns:
        None if either has no value. Without an interval where an arm has a single value.
    """
    if not isinstance(one, Mapping) or not isinstance(other, Mapping):
        return _welch_difference(_to_statistics(one), _to_statistics(other), n_candidates, confidence)
    by_seed = seed_statistics(one[seed] - other[seed] for seed in one if seed in other)
    noise = RELATIVE_TOLERANCE * max(map(abs, chain(one.values(), other.values())), default=0.0)
    if by_seed is None or by_seed.standard_deviation is None or by_seed.standard_deviation <= noise:
        return _welch_difference(_to_statistics(one), _to_statistics(other), n_candidates, confidence)
    error, value = by_seed.standard_deviation / math.sqrt(by_seed.count), by_seed.mean
    return difference_by_error(
        value if abs(value) > noise else 0.0, error, by_seed.count - 1, confidence, True, n_candidates
    )


def _to_statistics(values: ArmValues) -> SeedStatistics | None:
    return seed_statistics(values.values()) if isinstance(values, Mapping) else values


def _welch_difference(
    one: SeedStatistics | None, other: SeedStatistics | None, n_candidates: int, confidence: float
) -> Difference | None:
    if one is None or other is None:
        return None
    value = one.mean - other.mean
    if abs(value) <= RELATIVE_TOLERANCE * max(abs(one.mean), abs(other.mean)):
        value = 0.0
    if one.standard_deviation is None or other.standard_deviation is None:
        return Difference(value, None, False, n_candidates)
    variances = [arm.standard_deviation**2 / arm.count for arm in (one, other) if arm.standard_deviation is not None]
    total = sum(variances)
    if total == 0.0:
        return Difference(value, (value, value), False, n_candidates, 0.0, math.inf)
    shares = [variance / total for variance in variances]  # squares of these cannot vanish, as those of variances can
    freedom = 1 / sum(share**2 / (arm.count - 1) for share, arm in zip(shares, (one, other), strict=True))
    return difference_by_error(value, math.sqrt(total), freedom, confidence, False, n_candidates)


def difference_by_error(
    value: float, error: float, freedom: float, confidence: float, is_paired: bool, n_candidates: int
) -> Difference:
    """Return a difference of this value and standard error, with its interval."""
    reach = selection_adjusted_t((1 + confidence) / 2, freedom, max(1, n_candidates)) * error
    return Difference(value, (value - reach, value + reach), is_paired, n_candidates, error, freedom)


def metrics_of_both_splits(spec: StudySpec, compared: Sequence[Arm | None]) -> list[str]:
    """Return the study's metric on both splits, then every other `val/*` and `test/*` metric of the arms."""
    trials = list(chain.from_iterable(arm.trials for arm in compared if arm))
    names = {key for trial in trials for source in (*trial.reports[-1:], trial.test_metrics) for key in source}
    first = [spec.metric, spec.test_metric]
    return [*first, *sorted(n for n in names if n.startswith(("val/", "test/")) and n not in first)]
