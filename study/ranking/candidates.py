"""Configurations and what they are worth: spreads over seeds, scores, and by how much one is ahead of another.

Functions of trials and values alone; what they come to in a study is in `study.ranking.results`.
"""

import math
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Generic, TypeVar

from study.home.events import FoldsJoined
from study.home.record import TrialRecord
from study.metrics import find_metric, is_fraction_metric, is_gap_metric, is_standard_error
from study.metrics.selection_rules import SELECTION_RULES
from study.metrics.worst_group_statement import wilson_interval
from study.ranking import epochs
from study.ranking.json_documents import Statement
from study.spec import StudySpec
from study.spec.configuration import are_same_configuration
from study.spec.constraints import MetricConstraint
from study.spec.objective import Objective, TrialScore
from study.spec.reference_models import REFERENCES, ReferenceKind
from study.text import pluralise

NORMAL_DEGREES_OF_FREEDOM = 1e6
"""Degrees of freedom at which Student's t is practically the normal distribution."""


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
        """Return the interval of a metric, by the spread over seeds and the split's error.

        Seeds share their split, so that its error stays whatever their number; of one seed it is the only one. The two
        variances are added, with Satterthwaite's degrees of freedom. Wilson's interval, of as many samples as would
        give that variance, stays within 0 and 1 (as Korn and Graubard's for surveys); of others Student's t, from
        `min_value` on. That of a log loss is of its logarithm: losses of few samples are skewed, and a mean that lacks
        the rare large ones has too small an error, too. None where the split's error is not known.
        """
        if self.split_error is None or self.split_error <= 0:
            return None
        from scipy.special import stdtrit  # here: most of what asks for a spread needs no interval

        of_seeds = self.standard_deviation**2 / self.count if self.standard_deviation is not None else 0.0
        variance = of_seeds + self.split_error**2
        freedom = (self.count - 1) * (variance / of_seeds) ** 2 if of_seeds else math.inf
        reach = float(stdtrit(min(freedom, NORMAL_DEGREES_OF_FREEDOM), (1 + confidence) / 2))
        if not self.is_proportion:
            half = reach * math.sqrt(variance)
            if self.min_value == 0.0 and half < self.mean:
                return self.mean * math.exp(-half / self.mean), self.mean * math.exp(half / self.mean)
            return max(-math.inf if self.min_value is None else self.min_value, self.mean - half), self.mean + half
        least = min(self.split_error / math.sqrt(2), 0.5)  # of none right: half a sample, as its error was taken
        share = min(max(self.mean, least), 1 - least)
        return wilson_interval(self.mean, share * (1 - share) / variance, reach)


@dataclass(frozen=True)
class FittedReference:
    """A reference that was fitted.

    Attributes:
        metrics: by name, `val/NAME` and, where the test split was read, `test/NAME`.
        score: by the study's objective; None: it lacks a metric of it, and is shown alone.
        bootstrap_draws: where it was judged on all folds, its metrics for samples drawn anew, those of
            `FoldsJoined.draws`.
    """

    name: str
    metrics: Mapping[str, float | None]
    score: TrialScore | None
    bootstrap_draws: Mapping[str, list[float]]

    @property
    def kind(self) -> ReferenceKind:
        return REFERENCES[self.name]

    @property
    def name_in_sentence(self) -> str:
        """Name within a sentence."""
        return self.kind.description

    @property
    def name_with_needs(self) -> str:
        """Name in a list of results, with what the reference needs."""
        needs = " (needs the group, randomised)" if self.kind.predicts_by_group else ""
        return f"{self.name_in_sentence}{needs}"


@dataclass(frozen=True)
class Candidate:
    """A configuration with complete trials.

    Attributes:
        trial: the baseline, search or final trial.
        search_value: its metric, the first of several; the mean over `replicates`.
        score: all its metrics, and by how much it misses the constraints.
        replicates: the trial itself and those on further seeds that the search saw.
        confirm_trials: its complete confirm trials.
        confirm_statistics: the metric over the confirm trials, None without any.
        confirmed_score: the score of the confirm trials' means.
        joined_folds: where its confirm trials ran on all folds, what it is worth on their samples together: then
            `confirm_statistics` and `confirmed_score` are that.
    """

    trial: TrialRecord
    search_value: float
    score: TrialScore
    replicates: list[TrialRecord] = field(default_factory=list)
    confirm_trials: list[TrialRecord] = field(default_factory=list)
    confirm_statistics: SeedStatistics | None = None
    confirmed_score: TrialScore | None = None
    joined_folds: FoldsJoined | None = None


@dataclass(frozen=True)
class CandidateLead:
    """A configuration ahead of the best incumbent.

    Attributes:
        gain: by how much it is better in the study's metric, above 0.
        standard_error: the standard error of that difference, see `Results.incumbent_standing`; None: not known.
        is_split_error: whether the error is also that of the split's samples, not of the seeds alone.
    """

    candidate: Candidate
    gain: float
    standard_error: float | None
    is_split_error: bool

    def exceeds_margin(self, margin: float) -> bool:
        """Return whether it is ahead by more than so many standard errors; where these are not known, it is."""
        return self.standard_error is None or self.gain > margin * self.standard_error


Incumbent = TypeVar("Incumbent", bound=Candidate | FittedReference)


@dataclass(frozen=True)
class IncumbentStanding(Generic[Incumbent]):
    """The best incumbent, and those ahead of it, the best first: `chosen` is the first that clears the margin."""

    incumbent: Incumbent
    leads: Sequence[CandidateLead]
    margin: float

    @property
    def chosen(self) -> Candidate | Incumbent:
        """Best configuration or incumbent: the first that clears the margin, else the incumbent."""
        return next((lead.candidate for lead in self.leads if lead.exceeds_margin(self.margin)), self.incumbent)

    @property
    def held_back_lead(self) -> CandidateLead | None:
        """First of those ahead, where the margin keeps it from being chosen; else None."""
        return self.leads[0] if self.leads and not self.leads[0].exceeds_margin(self.margin) else None


StandingWithReferences = IncumbentStanding[Candidate | FittedReference]

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
        by_name[name] = _statistics_with_split_error(trials, name, partial(epochs.chosen_metric, goal))
    for name in sorted({name for trial in trials for name in trial.test_metrics if not is_standard_error(name)}):
        by_name[name] = _statistics_with_split_error(trials, name, _test_metric)
    of_all = {name: value for name, value in (joined.metrics if joined else {}).items() if value is not None}
    for name in [name for name in of_all if not is_standard_error(name)]:
        by_name[name] = split_sample_statistics(of_all, name, len(trials))
    return {name: value for name, value in by_name.items() if value}


def split_sample_statistics(metrics: Mapping[str, float | None], name: str, count: int) -> SeedStatistics:
    """Return a metric of one judgement of a split's samples, or of those of all folds together, with its error."""
    of_samples = SeedStatistics(metrics[name] or 0.0, None, count)
    return of_samples.with_split_error(name, metrics.get(f"{name}_standard_error"))


def _statistics_with_split_error(
    trials: Sequence[TrialRecord], name: str, value: Callable[[TrialRecord, str], float | None]
) -> SeedStatistics | None:
    found, error = (
        seed_statistics(value(trial, each) for trial in trials) for each in (name, f"{name}_standard_error")
    )
    return found.with_split_error(name, error.mean) if found and error else found


def _test_metric(trial: TrialRecord, name: str) -> float | None:
    return trial.test_metrics.get(name)


def trial_metric(spec: StudySpec, trial: TrialRecord, name: str) -> float | None:
    """Return a metric of a trial: its reading of the test split if there is one, else the value at its epoch."""
    return trial.test_metrics[name] if name in trial.test_metrics else epochs.chosen_metric(spec.objective, trial, name)


def search_statistics(spec: StudySpec, candidate: Candidate, name: str) -> SeedStatistics | None:
    """Return a metric of a configuration over the seeds that the search saw."""
    return seed_statistics(epochs.chosen_metric(spec.objective, trial, name) for trial in candidate.replicates)


def mean_score(goal: Objective, trials: Sequence[TrialRecord]) -> TrialScore | None:
    """Return the score of each metric's mean over trials, at each trial's epoch; None if one lacks a metric."""
    if not all(trial.reports for trial in trials) or not trials:
        return None
    if len(trials) == 1:
        return goal.score_of_report(epochs.chosen_metrics(goal, trials[0]))
    means: dict[str, float | None] = {}
    for name in goal.needed_metrics:
        values = [value for trial in trials if (value := epochs.chosen_metric(goal, trial, name)) is not None]
        means[name] = statistics.fmean(values) if len(values) == len(trials) else None
    return goal.score_of_report(means)


def trial_broken_limits(goal: Objective, trial: TrialRecord) -> list[MetricConstraint]:
    """Return the limits that a complete trial breaks by its own metrics; none for any other trial."""
    score = mean_score(goal, [trial]) if trial.state == "complete" else None
    return goal.broken_constraints(score) if score else []


def score_is_better(one: TrialScore, other: TrialScore) -> bool:
    """Return whether a score is better: less violation, then more gain; with several metrics, whether it dominates."""
    if one.has_single_metric:
        return one.first_metric_key < other.first_metric_key
    return one.constrained_dominates(other)


def is_incumbent(spec: StudySpec, candidate: Candidate | FittedReference) -> bool:
    """Return whether others have to beat it by the margin: a reference, or one of the study's incumbents."""
    return isinstance(candidate, FittedReference) or any(
        are_same_configuration(candidate.trial.params, params) for params in spec.incumbents
    )


def _bootstrap_draws(arm: Candidate | FittedReference, metric: str) -> Sequence[float]:
    """Return the metric for samples drawn anew, if it was judged on all folds."""
    if isinstance(arm, FittedReference):
        return arm.bootstrap_draws.get(metric, ())
    return arm.joined_folds.draws.get(metric, ()) if arm.joined_folds else ()


def difference_standard_error(
    spec: StudySpec, one: Candidate, other: Candidate | FittedReference, confirmed: bool
) -> tuple[float | None, bool]:
    """Return the standard error of the difference of two in the study's metric.

    Returns:
        The error, None where nothing is known of it, and whether the error of the split's samples is in it. A reference
        has no seeds.
    """
    first, second = (_bootstrap_draws(arm, spec.metric) if confirmed else () for arm in (one, other))
    if first and second:  # the same samples, drawn anew
        return statistics.stdev(mine - theirs for mine, theirs in zip(first, second, strict=True)), True
    value = partial(epochs.chosen_metric, spec.objective)
    arms = [arm.confirm_trials if confirmed else arm.replicates for arm in (one, other) if isinstance(arm, Candidate)]
    means = [found for trials in arms if (found := _statistics_with_split_error(trials, spec.metric, value))]
    if isinstance(other, FittedReference):
        means.append(split_sample_statistics(other.metrics, spec.metric, 1))
    of_split = [mean.split_error for mean in means if mean.split_error is not None]
    by_trial = ({trial.seed: value(trial, spec.metric) or 0.0 for trial in trials} for trials in arms)
    mine, theirs = [*by_trial, dict[int, float]()][:2]
    paired = seed_statistics(mine[seed] - theirs[seed] for seed in mine if seed in theirs)
    by_seed = [paired] if paired and paired.standard_deviation is not None else means
    of_seeds = [
        each.standard_deviation / math.sqrt(each.count) for each in by_seed if each.standard_deviation is not None
    ]
    return (math.hypot(*of_split, *of_seeds) if of_split or of_seeds else None), len(of_split) == len(means)


MIN_CONFIGURATIONS_FOR_TIES = 4
"""Smallest number of complete configurations before anything is said."""


class TiedMetric(Statement):
    """A metric that cannot choose between most of the complete configurations.

    Attributes:
        metric: as `val/NAME`.
        value: that they share.
        sharing, complete: how many share it, of how many.
        instead: the metrics of rules that are reported and do not tie.
    """

    metric: str
    value: float
    sharing: int
    complete: int
    instead: tuple[str, ...]

    def __str__(self) -> str:
        tied = f"{self.metric} is {self.value:.4g} in {self.sharing} of {self.complete} complete configurations"
        others = f" Metrics that tell more: {', '.join(self.instead)}." if self.instead else ""
        return f"{tied}: it does not tell these apart.{others}"


def find_ties(spec: StudySpec, comparable: Iterable[Candidate]) -> list[TiedMetric]:
    """Return the study's metrics of which more than half of the complete configurations share a value.

    Configurations are those of baseline and search. Empty for a final training, and while fewer than
    `MIN_CONFIGURATIONS_FOR_TIES` configurations are complete.
    """
    complete = sorted(comparable, key=lambda one: one.trial.stage == "search")
    if spec.final_seeds is not None or len(complete) < MIN_CONFIGURATIONS_FOR_TIES:
        return []
    by_metric = zip(spec.objective.metrics, zip(*(one.score.values for one in complete), strict=True), strict=True)
    most = [(metric, *Counter(values).most_common(1)[0]) for metric, values in by_metric]
    tied = [(metric, value, count) for metric, value, count in most if 2 * count > len(complete)]
    instead = _untied_metrics(complete) if tied else ()
    return [TiedMetric(metric, value, count, len(complete), instead) for metric, value, count in tied]


def _untied_metrics(complete: Sequence[Candidate]) -> tuple[str, ...]:
    """Return the rules' metrics, as `val/NAME`, that all of them report and of which at most half share a value.

    Those that know most of the samples come first: `accuracy` is the last resort on a biased split.
    """
    names = dict.fromkeys(f"val/{rule.metric}" for rule in reversed(SELECTION_RULES) if rule.limit is None)
    values = {name: [one.trial.last_metric(name) for one in complete] for name in names}
    return tuple(
        name
        for name, own in values.items()
        if None not in own and 2 * Counter(own).most_common(1)[0][1] <= len(complete)
    )
