"""Which configurations run again on fresh seeds, or on all folds, once the search has ended (`search.confirm`)."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from study.home.events import ENDED_STATES
from study.home.record import StudyRecord, TrialRecord
from study.ranking.candidates import Candidate
from study.ranking.incumbents import is_incumbent
from study.spec import StudySpec, objective, stage_seeds
from study.spec.schema import ConfirmOptions


@dataclass(frozen=True, eq=False)
class Confirmation:
    """The confirmation of a study, by its file and its record.

    Attributes:
        searched: the search's complete configurations by the values of the search, the best first.
        baseline: if it is complete.
    """

    spec: StudySpec
    record: StudyRecord
    searched: Sequence[Candidate]
    baseline: Candidate | None

    @cached_property
    def settings(self) -> ConfirmOptions:
        """The study file's `search.confirm`, or what was asked for later: all rules then, or as many as before."""
        planned = self.spec.search.confirm
        if self.record.confirm_request is None:
            return planned
        top, seeds, rules = self.record.confirm_request
        return planned.model_copy(update={"top": top, "seeds": seeds, "rules": rules or planned.rules})

    @property
    def seeds(self) -> range:
        """Training seeds of the confirm and rule trials, none of which the search saw."""
        return stage_seeds.confirm_seeds(self.spec.seeds, self.settings, self.spec.folds)

    def trials_to_confirm(self, top: bool = True) -> list[TrialRecord]:
        """Return the trials whose configurations run again on fresh seeds.

        These are the baseline and, with `top`, the search's best and the best incumbent; with several metrics the
        search's front, up to the size in `search.confirm.front`.
        """
        if self.settings.top == 0:
            return []
        in_order = self.searched if top else []
        best = self._top_candidates(in_order)
        incumbents = [one for one in in_order if is_incumbent(self.spec, one)][:1]
        best += [candidate for candidate in incumbents if candidate not in best]
        return [candidate.trial for candidate in ([self.baseline] if self.baseline else []) + best]

    @cached_property
    def is_complete(self) -> bool:
        """Whether every configuration to confirm has run on all its seeds.

        Before that, their means are not comparable.
        """
        trials = self.trials_to_confirm()
        repeats = self.record.trials_of_stages("confirm")
        ended = [trial.repeated_trial for trial in repeats if trial.state in ENDED_STATES]
        seeds = self.settings.seeds * (self.spec.folds or 1)
        return bool(trials) and all(ended.count(trial.number) >= seeds for trial in trials)

    def _top_candidates(self, searched: Sequence[Candidate]) -> list[Candidate]:
        plan = self.settings
        if not self.spec.objective.has_several_metrics:
            return list(searched[: plan.top])
        scores = [candidate.score for candidate in searched]
        on_front = len(objective.front_positions(scores))  # they come first
        count = max(plan.top, min(plan.front or 0, on_front))
        if on_front <= count:
            return list(searched[:count])
        return [searched[place] for place in objective.spread_out_positions(scores[:on_front], count)]
