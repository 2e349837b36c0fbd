"""Incumbents, and by how much others are ahead of the best of them."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

from study.ranking.candidates import Candidate, FittedReference
from study.ranking.chosen_epoch import metric_at_chosen_epoch
from study.ranking.trial_statistics import (
    seed_statistics,
    seed_statistics_with_split_error,
    statistics_of_single_evaluation,
)
from study.spec import StudySpec
from study.spec.configuration import are_same_configuration


@dataclass(frozen=True)
class CandidateLead:
    """A configuration ahead of the best incumbent.

    Attributes:
        gain: by how much it is better in the study's metric, above 0.
        standard_error: the standard error of that difference, see `Results.incumbent_standing`; None: not known.
        includes_split_error: whether the error is also that of the split's samples, not of the seeds alone.
    """

    candidate: Candidate
    gain: float
    standard_error: float | None
    includes_split_error: bool

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
    value = partial(metric_at_chosen_epoch, spec.objective)
    arms = [arm.confirm_trials if confirmed else arm.replicates for arm in (one, other) if isinstance(arm, Candidate)]
    means = [found for trials in arms if (found := seed_statistics_with_split_error(trials, spec.metric, value))]
    if isinstance(other, FittedReference):
        means.append(statistics_of_single_evaluation(other.metrics, spec.metric, 1))
    of_split = [mean.split_error for mean in means if mean.split_error is not None]
    by_trial = ({trial.seed: value(trial, spec.metric) or 0.0 for trial in trials} for trials in arms)
    mine, theirs = [*by_trial, dict[int, float]()][:2]
    paired = seed_statistics(mine[seed] - theirs[seed] for seed in mine if seed in theirs)
    by_seed = [paired] if paired and paired.standard_deviation is not None else means
    of_seeds = [
        each.standard_deviation / math.sqrt(each.count) for each in by_seed if each.standard_deviation is not None
    ]
    return (math.hypot(*of_split, *of_seeds) if of_split or of_seeds else None), len(of_split) == len(means)
