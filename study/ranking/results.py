"""What a study found: one object between its ledger and all who read it.

The best configuration is found by one rule, for driver, export, summary and report alike. A configuration's value is
the study's metric at the last epoch, or at the best where `search.epoch` says so (`study.ranking.chosen_epoch`), the
mean over its replicates where it has some. Only complete trials count. Once the best configurations are all confirmed
on fresh seeds, the mean over these seeds decides, so that a lucky seed does not win; before that, the value in the
search. Several metrics and constraints are ordered as in `study.spec.objective.Objective.ranking_order`: front by
front, so that the best is on the front, and there the best in the first metric. Ties go to the earlier trial. Only
validation metrics are used.

With `search.margin` an incumbent (`StudySpec.incumbents`) leads until another configuration is better than the best of
them by more than so many standard errors of their difference (`Results.incumbent_standing`). The configurations were
searched on the very samples that judge them, and of many tried the luckiest leads: this is a rule of decision, and no
test. What needs no search (`FittedReference`) joins the incumbents under the same margin: where one of these stays,
that is the study's result (`Results.reference_as_result`), and the ranking here is that of configurations alone.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, wraps
from typing import TypeVar, cast

from study.home.events import ENDED_STATES, Stage
from study.home.folder import StudyFolder
from study.home.record import StudyRecord, TrialRecord
from study.ranking.arms import Arm, arm_of_candidate
from study.ranking.candidates import Candidate, FittedReference
from study.ranking.chosen_epoch import metric_at_chosen_epoch
from study.ranking.confirmation import Confirmation
from study.ranking.incumbents import (
    CandidateLead,
    IncumbentStanding,
    StandingWithReferences,
    difference_standard_error,
    is_incumbent,
)
from study.ranking.rule_picks import RulePick, fresh_seed_trials, is_rule_requested, pick_configurations
from study.ranking.tied_metrics import TiedMetric, find_tied_metrics
from study.ranking.trial_statistics import mean_score, seed_statistics, statistics_by_metric
from study.spec import StudySpec, objective
from study.spec.objective import TrialScore
from study.spec.reference_models import REFERENCES

ReturnT = TypeVar("ReturnT")


@dataclass(frozen=True, eq=False)
class Results:
    """What a study found, by its file and its record.

    Each number is computed when it is first asked for, and kept: nobody may change it. So an object is of one state of
    the record. Where the record goes on, as in a driver, whoever asks makes a new one for each state: that costs
    nothing, and what is made of it is of that moment.
    """

    spec: StudySpec
    record: StudyRecord
    _cache: dict[object, object] = field(default_factory=dict, init=False, repr=False)

    @classmethod
    def load(cls, folder: StudyFolder) -> "Results":
        """Load the results of a study as its ledger is now.

        Raises:
            UserError: its file or ledger cannot be read.
        """
        return cls(folder.load_spec(), StudyRecord.load(folder.ledger_file))

    @cached_property
    def ranked_search(self) -> list[Candidate]:
        """The search's complete trials, the best first: confirmed ones by their means, then the others."""
        return [candidate for candidate in self.ranked_all if candidate.trial.stage == "search"]

    @cached_property
    def ranked_by_search_value(self) -> list[Candidate]:
        """The search's complete trials by the value of the search alone, the best first."""
        found = self._complete_candidates("search")
        return self._sort_by_scores(found, [candidate.score for candidate in found])

    @cached_property
    def ranked_all(self) -> list[Candidate]:
        """Every complete configuration, the baseline too, the best first.

        The baseline leads if the search gained nothing, an incumbent as long as the margin keeps it.
        """
        chosen = self._standing_with_references.chosen if self._standing_with_references else None
        if not isinstance(chosen, Candidate):  # by configurations alone
            if self.incumbent_standing is None:
                return self._ranked_without_margin
            chosen = self.incumbent_standing.chosen
        number = chosen.trial.number
        return sorted(self._ranked_without_margin, key=lambda candidate: candidate.trial.number != number)

    @property
    def best(self) -> Candidate | None:
        """The best configuration, None if no trial is complete."""
        return next(iter(self.ranked_all), None)

    @cached_property
    def baseline(self) -> Candidate | None:
        """The baseline, if it completed."""
        return next(iter(self._complete_candidates("baseline")), None)

    @property
    def final_training_trials(self) -> list[TrialRecord]:
        """The complete trials of a final training."""
        return [trial for trial in self.record.trials_of_stages("final") if trial.state == "complete"]

    @cached_property
    def scored_candidates(self) -> list[tuple[Candidate, TrialScore]]:
        """The configurations that the best is chosen from, with what each is judged by, the best first.

        Once all that were to run on fresh seeds did so, those alone, by their means over these seeds; before, all, by
        the search's values.
        """
        means = [(one, score) for one in self.ranked_all if self.is_confirmed and (score := one.confirmed_score)]
        return means or [(candidate, candidate.score) for candidate in self.ranked_all]

    @cached_property
    def front(self) -> list[tuple[Candidate, TrialScore]]:
        """Configurations of `scored_candidates` that no other dominates, the best in the first metric first.

        The baseline may be among them; the best configuration is. Where none keeps the constraints, it is what misses
        them by least.
        """
        places = objective.front_positions([score for _, score in self.scored_candidates])
        on_front = [self.scored_candidates[place] for place in places]
        return sorted(on_front, key=lambda pair: -pair[1].values_to_maximise[0])

    @property
    def candidates_to_test(self) -> list[Candidate]:
        """The configurations that the test split is read for, besides the baseline.

        The best alone; with several metrics the whole front.
        """
        if self.spec.objective.has_several_metrics:
            return [candidate for candidate, _ in self.front]
        return self.ranked_all[:1]

    @cached_property
    def tied_metrics(self) -> list[TiedMetric]:
        """The study's metrics that do not tell its configurations apart, see `study.ranking.tied_metrics`."""
        return find_tied_metrics(self.spec, self.ranked_all)

    @cached_property
    def integer_keys(self) -> frozenset[str]:
        """The searched keys whose values are whole numbers, as the trials have them.

        Their declarations say it too, but would load PyTorch.
        """
        values: dict[str, list[object]] = {}
        for trial in self.record.trials_of_stages("search"):
            for key, value in trial.params.items():
                values.setdefault(key, []).append(value)
        return frozenset(key for key, own in values.items() if all(type(value) is int for value in own))

    @cached_property
    def incumbent_standing(self) -> IncumbentStanding[Candidate] | None:
        """The incumbent that has to be beaten, and the configurations ahead of it by what they are judged by.

        None without a margin, or where no incumbent is complete and keeps the constraints as well as what leads.

        The standard error of a difference has two parts. That of the validation samples does not shrink with seeds: it
        is what each trial reported beside its metric (binomial in each cell, `study.training.standard_errors`), the
        mean over its seeds, of the two as if they were judged by different samples. As both are judged by the same,
        that is too large rather than too small. That of the seeds is of the paired differences where two seeds are
        shared, else of each mean; one seed has none. Of two that ran on all folds it is that of the difference over
        samples drawn anew.
        """
        return cast(IncumbentStanding[Candidate] | None, self._compare_with_references(None))

    @cached_property
    def references(self) -> list[FittedReference]:
        """References that were fitted, the best first by the study's objective, last those that it cannot judge.

        Without test metrics until the search has ended or a configuration was tested: the choice is still to be made.
        """
        events = (self.record.reference_events.get(name) for name in REFERENCES)
        goal = self.spec.objective
        has_search_ended = self.record.state == "complete" or self.record.search_ended_by is not None
        is_tested = any(trial.n_test_readings for trial in list(self.record.trials.values()))
        hidden = () if has_search_ended or is_tested else ("test/",)
        found = [
            FittedReference(
                one.name,
                {name: value for name, value in one.metrics.items() if not name.startswith(hidden)},
                goal.score_of_report(one.metrics),
                one.draws or {},
            )
            for one in events
            if one and one.metrics is not None
        ]
        scored = [(one, one.score) for one in found if one.score is not None]
        in_order = [scored[place][0] for place in goal.ranking_order([score for _, score in scored])]
        return in_order + [one for one in found if one.score is None]

    @property
    def why_references_failed(self) -> dict[str, str]:
        """Reasons why references could not be fitted, by name."""
        return {name: event.reason for name, event in self.record.reference_events.items() if event.reason is not None}

    @cached_property
    def best_reference(self) -> FittedReference | None:
        """The best reference that can be chosen; None where the objective can judge none."""
        return next((one for one in self.references if one.score and not one.kind.predicts_by_group), None)

    @property
    def are_references_comparable(self) -> bool:
        """Whether configurations are judged on the samples of references: not while a search has run on some folds."""
        is_on_all_samples = self.spec.folds is None or self.spec.search.folds == "each" or self.is_confirmed
        return is_on_all_samples or self.record.state == "complete"

    @property
    def reference_as_result(self) -> FittedReference | None:
        """The reference that is the study's result, as no configuration is better by more than the margin.

        One that breaks the limits is never the result.
        """
        chosen = self._standing_with_references.chosen if self._standing_with_references else None
        return chosen if isinstance(chosen, FittedReference) else None

    @cached_property
    def references_above_best(self) -> list[FittedReference]:
        """The references above the leading configuration, which is then not the best.

        First the one that is the study's result, if any, then those that are better than that configuration and keep
        the limits.
        """
        won, reference = self.best, self.reference_as_result
        score = won and (won.confirmed_score if self.is_confirmed else won.score)
        references = self.references if self.are_references_comparable else []
        keeping = [(one, own) for one in references if (own := one.score) and not own.total_violation]
        found = [one for one, own in keeping if score and own.constrained_dominates(score)]
        return [*([reference] if reference else []), *(one for one in found if one != reference)]

    @property
    def reference_standing(self) -> StandingWithReferences | None:
        """The best reference, and which configurations are ahead of it.

        None with several metrics, and where a configuration that is an incumbent itself leads.
        """
        held = self._standing_with_references
        if held is None or self.spec.objective.has_several_metrics:
            return None
        return held if isinstance(held.incumbent, FittedReference) else None

    @cached_property
    def confirmation(self) -> Confirmation:
        """What runs again on fresh seeds."""
        return Confirmation(self.spec, self.record, self.ranked_by_search_value, self.baseline)

    @property
    def is_confirmed(self) -> bool:
        """Whether every configuration to confirm has run on all its seeds."""
        return self.confirmation.is_complete

    @property
    def first_unused_seed(self) -> int:
        """The smallest seed above every seed of the study, planned fresh ones included."""
        return max([self.confirmation.seeds.stop, *(trial.seed + 1 for trial in list(self.record.trials.values()))])

    @cached_property
    def baseline_and_best_arms(self) -> tuple[Arm | None, Arm | None]:
        """The baseline and the best searched configuration, each None if no such trial is complete."""
        best = next(iter(self.ranked_search), None)
        chosen = replace(arm_of_candidate(self.spec, best), n_candidates=self.n_candidates_for(best)) if best else None
        return arm_of_candidate(self.spec, self.baseline) if self.baseline else None, chosen

    @cached_property
    def baseline_and_result_arms(self) -> tuple[Arm | None, Arm | None]:
        """The baseline, and the best searched configuration or the reference that is the result instead."""
        baseline, best = self.baseline_and_best_arms
        return baseline, arm_of_candidate(self.spec, self.reference_as_result) if self.reference_as_result else best

    def rule_pick_arm(self, best: Arm) -> Arm | None:
        """Return the best on the fresh seeds of a rule's pick; None where it was confirmed or ran on none."""
        trials = [trial for trial in self.record.repeat_trials(best.trial_number, "rule") if trial.state == "complete"]
        is_confirmed = bool(self.record.repeat_trials(best.trial_number))
        return Arm(best.label, best.trial_number, trials, self.spec) if trials and not is_confirmed else None

    def n_candidates_for(self, best: Candidate) -> int:
        """Return from how many configurations the best was chosen by the trials of its arm.

        Once all are confirmed, these are the confirmed ones. Before that, fresh seeds had no part in the choice.
        Without any, it was chosen among all configurations of the search, those that early stopping ended too.
        """
        if not best.confirm_statistics:
            return sum(trial.state in ("complete", "pruned") for trial in self.record.trials_of_stages("search"))
        if not self.is_confirmed:
            return 1
        return sum(candidate.confirmed_score is not None for candidate in self.ranked_search)

    @cached_property
    def final_training_arm(self) -> Arm | None:
        """The final trials of an exported configuration, None if none is complete."""
        trials = self.final_training_trials
        return Arm("final training", trials[0].number, trials, self.spec) if trials else None

    @cached_property
    def fresh_seed_arms(self) -> list[Arm]:
        """The configurations that ran on fresh seeds, the best first and the baseline last; or the final training."""
        listed = [*self.ranked_search, *([self.baseline] if self.baseline else [])]
        found = [arm_of_candidate(self.spec, candidate) for candidate in listed if candidate.confirm_statistics]
        return found or ([self.final_training_arm] if self.final_training_arm else [])

    @cached_property
    def rule_picks(self) -> list[RulePick]:
        """The pick of each selection rule that has one, see `study.ranking.rule_picks`; none for a final training."""
        return pick_configurations(self.spec, self.ranked_all) if self.spec.final_seeds is None else []

    @property
    def rule_picked_trials(self) -> list[TrialRecord]:
        """Trials that some rule picks, each once; where `search.confirm` names rules, picks of these alone."""
        chosen = [pick for pick in self.rule_picks if is_rule_requested(pick.rule, self.confirmation.settings.rules)]
        return list({pick.trial_number: pick.candidate.trial for pick in chosen}.values())

    @property
    def are_rule_picks_confirmed(self) -> bool:
        """Whether every rule's pick has run on all fresh seeds and test was read for it, as far as it could be."""
        repeats = self.record.trials_of_stages("confirm", "rule")
        ended = {(trial.repeated_trial, trial.seed) for trial in repeats if trial.state in ENDED_STATES}
        numbers = [trial.number for trial in self.rule_picked_trials]
        fresh = [trial for number in numbers for trial in fresh_seed_trials(self.record, number)]
        are_tested = all(trial.test_metrics or trial.test_failure for trial in fresh)
        return are_tested and all((number, seed) in ended for number in numbers for seed in self.confirmation.seeds)

    @cached_property
    def _ranked_without_margin(self) -> list[Candidate]:
        complete = self._complete_candidates("baseline", "search")
        first = [candidate for candidate in complete if self.is_confirmed and candidate.confirmed_score]
        others = [candidate for candidate in complete if candidate not in first]
        means = [candidate.confirmed_score for candidate in first if candidate.confirmed_score]
        by_search = self._sort_by_scores(others, [candidate.score for candidate in others])
        return self._sort_by_scores(first, means) + by_search

    @cached_property
    def _standing_with_references(self) -> StandingWithReferences | None:
        """The standing with the best fitted reference added to the incumbents, of which it does not need another.

        With several metrics, only a reference that is better in every one than what is chosen of the front. None
        without such a reference, or where it breaks the limits: that it does so by less says nothing for it.
        """
        reference = self.best_reference if self.are_references_comparable else None
        if reference is None or reference.score is None or reference.score.total_violation:
            return None
        if not self.spec.objective.has_several_metrics:
            return self._compare_with_references(reference)
        first = next(iter(self._ranked_without_margin), None)
        score = first and (first.confirmed_score if self.is_confirmed else first.score)
        dominates = bool(score and reference.score.constrained_dominates(score))
        return StandingWithReferences(reference, (), self.spec.search.margin) if dominates else None

    def _compare_with_references(self, reference: FittedReference | None) -> StandingWithReferences | None:
        confirmed = self.is_confirmed
        rivals: list[tuple[Candidate | FittedReference, TrialScore]] = [
            (candidate, score)
            for candidate in self._ranked_without_margin
            if (score := candidate.confirmed_score if confirmed else candidate.score)
        ]
        if rivals and reference and (own := reference.score):
            better = sum(score.first_metric_sort_key < own.first_metric_sort_key for _, score in rivals)
            rivals.insert(better, (reference, own))
        place = next((at for at, (one, _) in enumerate(rivals) if is_incumbent(self.spec, one)), None)
        if place is None or rivals[place][1].total_violation > rivals[0][1].total_violation:
            return None
        incumbent, own = rivals[place]
        gains = [
            (one, score.values_to_maximise[0] - own.values_to_maximise[0])
            for one, score in rivals[:place]
            if isinstance(one, Candidate)
        ]
        ahead = [
            CandidateLead(each, gain, *difference_standard_error(self.spec, each, incumbent, confirmed))
            for each, gain in gains
            if gain > 0
        ]
        return StandingWithReferences(incumbent, ahead, self.spec.search.margin)

    def _complete_candidates(self, *stages: Stage) -> list[Candidate]:
        """Return the complete configurations of these stages, by number."""
        return [found for trial in self.record.trials_of_stages(*stages) if (found := self._build_candidate(trial))]

    def _build_candidate(self, trial: TrialRecord) -> Candidate | None:
        """Return a configuration by its trials; None where one of them is not complete."""
        spec, record = self.spec, self.record
        seeds = [trial, *record.repeat_trials(trial.number, "replicate")]
        needed = 1 if trial.stage == "final" else len(spec.runs_of_configuration())
        score = mean_score(spec.objective, seeds)
        if score is None or len(seeds) < needed or any(each.state != "complete" for each in seeds):
            return None
        repeats = [each for each in record.repeat_trials(trial.number) if each.state == "complete"]
        joined = record.joined_folds.get(trial.number)
        if joined is not None and set(joined.runs) == {each.number for each in repeats}:
            values, names = statistics_by_metric(spec.objective, repeats, joined), spec.objective.needed_metrics
            if all(name in values for name in names):
                means = spec.objective.score_of_report({name: values[name].mean for name in names})
                return Candidate(trial, score.values[0], score, seeds, repeats, values[spec.metric], means, joined)
        confirmed = seed_statistics(metric_at_chosen_epoch(spec.objective, each, spec.metric) for each in repeats)
        means = mean_score(spec.objective, repeats)
        return Candidate(trial, score.values[0], score, seeds, repeats, confirmed, means)

    def _sort_by_scores(self, candidates: list[Candidate], scores: Sequence[TrialScore]) -> list[Candidate]:
        return [candidates[place] for place in self.spec.objective.ranking_order(scores)]


def cached_per_results(compute: Callable[[Results], ReturnT]) -> Callable[[Results], ReturnT]:
    """Wrap a function of results so that it is computed once for each; nobody may change what it returns."""

    @wraps(compute)
    def kept(results: Results) -> ReturnT:
        if compute not in results._cache:
            results._cache[compute] = compute(results)
        return cast(ReturnT, results._cache[compute])

    return kept
