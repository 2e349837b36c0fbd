"""Configurations with complete trials, and references that were fitted: what is ranked in `study.ranking.results`."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from study.home.events import FoldsJoined
from study.home.record import TrialRecord
from study.ranking.chosen_epoch import metric_at_chosen_epoch
from study.ranking.trial_statistics import SeedStatistics, seed_statistics
from study.spec import StudySpec
from study.spec.objective import TrialScore
from study.spec.reference_models import REFERENCES, ReferenceKind


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


def search_statistics(spec: StudySpec, candidate: Candidate, name: str) -> SeedStatistics | None:
    """Return a metric of a configuration over the seeds that the search saw."""
    return seed_statistics(metric_at_chosen_epoch(spec.objective, trial, name) for trial in candidate.replicates)
