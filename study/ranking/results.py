"""What a study found: one object between its ledger and all who read it.

The best configuration is found by one rule, for driver, export, summary and report alike. A configuration's value is
the study's metric at the last epoch, or at the best where `search.epoch` says so (`study.ranking.epochs`), the mean
over its replicates where it has some. Only complete trials count. Once the best configurations are all confirmed on
fresh seeds, the mean over these seeds decides, so that a lucky seed does not win; before that, the value in the search.
Several metrics and constraints are ordered as in `study.spec.objective.Objective.order`: front by front, so that the
best is on the front, and there by `search.choose`. Ties go to the earlier trial. Only validation metrics are used.

With `search.margin` an incumbent (`StudySpec.incumbents`) leads until another configuration is better than the best of
them by more than so many standard errors of their difference (`Results.standing`). The configurations were searched on
the very samples that judge them, and of many tried the luckiest leads: this is a rule of decision, and no test. What
needs no search (`Reference`) joins the incumbents under the same margin: where one of these stays, that is the study's
result (`Results.unbeaten`), and the ranking here is that of configurations alone.

Trials of different numbers of epochs are not compared. Once all that were extended (`study extend`) have ended, those
of that many epochs come first and are ordered as above; the others follow, by what they were worth when they ended.
Until then all count as they had ended before.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, wraps
from typing import TypeVar, cast

from study.home.events import ENDED, Stage
from study.home.folder import StudyFolder
from study.home.record import StudyRecord, TrialRecord, without_extensions
from study.ranking import epochs
from study.ranking.candidates import (
    AnyStanding,
    Candidate,
    Lead,
    Reference,
    Standing,
    Tie,
    error_of_difference,
    is_above,
    is_one_of,
    mean_score,
    spread,
    spreads,
    ties,
)
from study.ranking.difference import Side, side_of
from study.ranking.picks import Pick, fresh_trials, is_asked, picks
from study.spec import StudySpec, objective
from study.spec.objective import Score
from study.spec.reference_models import REFERENCES
from study.spec.schema import Confirm

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Results:
    """What a study found, by its file and its record.

    Each number is computed when it is first asked for, and kept: nobody may change it. So an object is of one state of
    the record. Where the record goes on, as in a driver, whoever asks makes a new one for each state: that costs
    nothing, and what is made of it is of that moment.
    """

    spec: StudySpec
    record: StudyRecord
    _kept: dict[object, object] = field(default_factory=dict, init=False, repr=False)

    @classmethod
    def load(cls, folder: StudyFolder) -> "Results":
        """Load the results of a study as its ledger is now.

        Raises:
            UserError: its file or ledger cannot be read.
        """
        return cls(folder.spec(), StudyRecord.load(folder.ledger_file))

    @cached_property
    def without_extensions(self) -> "Results":
        """Results without what trials did once they were extended, see `study.home.record.without_extensions`."""
        record = without_extensions(self.record)
        return self if record is self.record else Results(self.spec, record)

    @cached_property
    def candidates(self) -> list[Candidate]:
        """The search's compared trials, the best first: confirmed ones by their means, then the others."""
        return [candidate for candidate in self.comparable if candidate.trial.stage == "search"]

    @cached_property
    def searched(self) -> list[Candidate]:
        """The search's complete trials that are compared, by the value of the search alone, the best first."""
        found = self._compared(self._complete("search"))
        return self._sorted(found, [candidate.score for candidate in found])

    @cached_property
    def ranked(self) -> list[Candidate]:
        """Every complete configuration, the baseline too, the best first.

        The baseline leads if the search gained nothing, an incumbent as long as the margin keeps it. Those that are not
        compared with the best come last.
        """
        chosen = self._with_references.chosen if self._with_references else None
        if not isinstance(chosen, Candidate):  # by configurations alone
            if self.standing is None:
                return self._by_value
            chosen = self.standing.chosen
        number = chosen.trial.number
        return sorted(self._by_value, key=lambda candidate: candidate.trial.number != number)

    @cached_property
    def comparable(self) -> list[Candidate]:
        """Configurations of `ranked` that are compared with one another."""
        return self._compared(self.ranked)

    @property
    def best(self) -> Candidate | None:
        """The best configuration, None if no trial is complete."""
        return next(iter(self.ranked), None)

    @cached_property
    def baseline(self) -> Candidate | None:
        """The baseline, if it completed."""
        return next(iter(self._complete("baseline")), None)

    @property
    def final_trials(self) -> list[TrialRecord]:
        """The complete trials of a final training."""
        return [trial for trial in self.record.by_stage("final") if trial.state == "complete"]

    @cached_property
    def judged(self) -> list[tuple[Candidate, Score]]:
        """The configurations that the best is chosen from, with what each is judged by, the best first.

        Once all that were to run on fresh seeds did so, those alone, by their means over these seeds; before, all, by
        the search's values.
        """
        means = [(one, score) for one in self.comparable if self.is_confirmed and (score := one.confirmed_score)]
        return means or [(candidate, candidate.score) for candidate in self.comparable]

    @cached_property
    def front(self) -> list[tuple[Candidate, Score]]:
        """Configurations of `judged` that no other dominates, the best in the first metric first.

        The baseline may be among them; the best configuration is. Where none keeps the constraints, it is what misses
        them by least.
        """
        on_front = [self.judged[place] for place in objective.front([score for _, score in self.judged])]
        return sorted(on_front, key=lambda pair: -pair[1].gains[0])

    @property
    def tested(self) -> list[Candidate]:
        """The configurations that the test split is read for, besides the baseline.

        The best alone; with several metrics the whole front, but not in studies from before the front ran again.
        """
        if self.spec.objective.several and self.spec.search.confirm.front is not None:
            return [candidate for candidate, _ in self.front]
        return self.ranked[:1]

    @cached_property
    def ties(self) -> list[Tie]:
        """The study's metrics that do not tell its configurations apart, see `study.ranking.candidates.ties`."""
        return ties(self.spec, self.comparable)

    @cached_property
    def integers(self) -> frozenset[str]:
        """The searched keys whose values are whole numbers, as the trials have them.

        Their declarations say it too, but would load PyTorch.
        """
        values: dict[str, list[object]] = {}
        for trial in self.record.by_stage("search"):
            for key, value in trial.params.items():
                values.setdefault(key, []).append(value)
        return frozenset(key for key, own in values.items() if all(type(value) is int for value in own))

    @cached_property
    def standing(self) -> Standing[Candidate] | None:
        """The incumbent that has to be beaten, and the configurations ahead of it by what they are judged by.

        None without a margin, or where no incumbent is complete and keeps the constraints as well as what leads.

        The standard error of a difference has two parts. That of the validation samples does not shrink with seeds: it
        is what each trial reported beside its metric (binomial in each cell, `study.training.standard_errors`), the
        mean over its seeds, of the two as if they were judged by different samples. As both are judged by the same,
        that is too large rather than too small. That of the seeds is of the paired differences where two seeds are
        shared, else of each mean; one seed has none. Of two that ran on all folds it is that of the difference over
        samples drawn anew.
        """
        return cast(Standing[Candidate] | None, self._standing(None))

    @cached_property
    def references(self) -> list[Reference]:
        """References that were fitted, the best first by the study's objective, last those that it cannot judge."""
        events = (self.record.references.get(name) for name in REFERENCES)
        goal = self.spec.objective
        found = [
            Reference(one.name, one.metrics, goal.score(one.metrics), one.draws or {})
            for one in events
            if one and one.metrics is not None
        ]
        scored = [(one, one.score) for one in found if one.score is not None]
        in_order = [scored[place][0] for place in goal.order([score for _, score in scored])]
        return in_order + [one for one in found if one.score is None]

    @property
    def failed_references(self) -> dict[str, str]:
        """Reasons why references could not be fitted, by name."""
        return {name: event.reason for name, event in self.record.references.items() if event.reason is not None}

    @cached_property
    def best_reference(self) -> Reference | None:
        """The best reference that can be chosen; None where the objective can judge none."""
        return next((one for one in self.references if one.score and not one.kind.needs_group), None)

    @property
    def unbeaten(self) -> Reference | None:
        """The reference that is the study's result, as no configuration is better by more than the margin."""
        chosen = self._with_references.chosen if self._with_references else None
        return chosen if isinstance(chosen, Reference) else None

    @cached_property
    def above(self) -> list[Reference]:
        """The references above the leading configuration, which is then not the best.

        First the one that is the study's result, if any, then those that are better than that configuration.
        """
        won, stays = self.best, self.unbeaten
        score = won and (won.confirmed_score if self.is_confirmed else won.score)
        found = [one for one in self.references if score and one.score and is_above(one.score, score)]
        return [*([stays] if stays else []), *(one for one in found if one != stays)]

    @property
    def ahead_of(self) -> AnyStanding | None:
        """The best reference, and which configurations are ahead of it.

        None with several metrics, and where a configuration that is an incumbent itself leads.
        """
        held = self._with_references
        return held if held and isinstance(held.incumbent, Reference) and not self.spec.objective.several else None

    @cached_property
    def confirm(self) -> Confirm:
        """The study file's `search.confirm`, or what was asked for later: all rules then, or as many as before."""
        planned = self.spec.search.confirm
        if self.record.confirming is None:
            return planned
        top, seeds, rules = self.record.confirming
        return planned.model_copy(update={"top": top, "seeds": seeds, "rules": rules or planned.rules})

    @property
    def confirm_seeds(self) -> range:
        """Training seeds of the confirm and rule trials, none of which the search saw.

        With folds, each seed has one of its own, all folds in turn (`StudySpec.fresh_fold`).
        """
        plan, first = self.confirm, max(self.spec.seeds) + 1
        return range(first, first + (plan.seeds * (self.spec.folds or 1) if plan.top or plan.rules else 0))

    @property
    def unused_seed(self) -> int:
        """The smallest seed above every seed of the study, planned fresh ones included."""
        return max([self.confirm_seeds.stop, *(trial.seed + 1 for trial in list(self.record.trials.values()))])

    def to_confirm(self, top: bool = True) -> list[TrialRecord]:
        """Return the trials whose configurations run again on fresh seeds.

        These are the baseline and, with `top`, the search's best and the best incumbent; with several metrics the
        search's front, up to the size in `search.confirm.front`.
        """
        if self.confirm.top == 0:
            return []
        in_order = self.searched if top else []
        best = self._best_of_search(in_order)
        incumbents = [one for one in in_order if is_one_of(one, self.spec.incumbents)][:1]
        best += [candidate for candidate in incumbents if candidate not in best]
        return [candidate.trial for candidate in ([self.baseline] if self.baseline else []) + best]

    @cached_property
    def is_confirmed(self) -> bool:
        """Whether every configuration to confirm has run on all its seeds.

        Before that, their means are not comparable.
        """
        trials = self.to_confirm()
        repeats = (self._version(trial, self.compared_at) for trial in self.record.by_stage("confirm"))
        ended = [trial.repeats for trial in repeats if trial and trial.state in ENDED]
        seeds = self.confirm.seeds * (self.spec.folds or 1)
        return bool(trials) and all(ended.count(trial.number) >= seeds for trial in trials)

    @cached_property
    def compared_at(self) -> int:
        """How many epochs the trials ran that are compared.

        The study's, or those of the last extension that is over and left a complete trial of the search.
        """
        for extension in reversed(self.record.lengthened):
            last, trials = extension.epochs, (self.record.trials[number] for number in extension.trials)
            ends = [end for trial in trials if (end := self._version(trial, last))]
            searched = [end for end in ends if end.stage == "search"] or ends
            if all(end.state in ENDED for end in ends) and any(end.state == "complete" for end in searched):
                return last
        return self.spec.epochs

    @cached_property
    def sides(self) -> tuple[Side | None, Side | None]:
        """The baseline and the best searched configuration, each None if no such trial is complete."""
        best = next(iter(self.candidates), None)
        chosen = replace(side_of(self.spec, best), n_candidates=self.chosen_among(best)) if best else None
        return side_of(self.spec, self.baseline) if self.baseline else None, chosen

    @cached_property
    def result_sides(self) -> tuple[Side | None, Side | None]:
        """The baseline, and the best searched configuration or the reference that is the result instead."""
        reference, best = self.sides
        return reference, side_of(self.spec, self.unbeaten) if self.unbeaten else best

    def of_a_rule(self, best: Side) -> Side | None:
        """Return the best on the fresh seeds of a rule's pick; None where it was confirmed or ran on none."""
        trials = [trial for trial in self.record.repeats_of(best.number, "rule") if trial.state == "complete"]
        is_confirmed = bool(self.record.repeats_of(best.number))
        return Side(best.label, best.number, trials, self.spec) if trials and not is_confirmed else None

    def chosen_among(self, best: Candidate) -> int:
        """Return from how many configurations the best was chosen by the trials of its side.

        Once all are confirmed, these are the confirmed ones. Before that, fresh seeds had no part in the choice.
        Without any, it was chosen among all configurations of the search, those that early stopping ended too.
        """
        if not best.confirmed:
            return sum(trial.state in ("complete", "pruned") for trial in self.record.by_stage("search"))
        if not self.is_confirmed:
            return 1
        return sum(candidate.confirmed_score is not None for candidate in self.candidates)

    @cached_property
    def final_side(self) -> Side | None:
        """The final trials of an exported configuration, None if none is complete."""
        trials = self.final_trials
        return Side("final training", trials[0].number, trials, self.spec) if trials else None

    @cached_property
    def fresh_sides(self) -> list[Side]:
        """The configurations that ran on fresh seeds, the best first and the baseline last; or the final training."""
        listed = [*self.candidates, *([self.baseline] if self.baseline else [])]
        found = [side_of(self.spec, candidate) for candidate in listed if candidate.confirmed]
        return found or ([self.final_side] if self.final_side else [])

    @cached_property
    def picks(self) -> list[Pick]:
        """The pick of each selection rule that has one, see `study.ranking.picks`; none for a final training."""
        return picks(self.spec, self.comparable) if self.spec.final_seeds is None else []

    @property
    def picked(self) -> list[TrialRecord]:
        """Trials that some rule picks, each once; where `search.confirm` names rules, picks of these alone."""
        chosen = [pick for pick in self.picks if is_asked(pick.rule, self.confirm.rules)]
        return list({pick.number: pick.candidate.trial for pick in chosen}.values())

    @property
    def picks_are_confirmed(self) -> bool:
        """Whether every rule's pick has run on all fresh seeds and test was read for it, as far as it could be."""
        repeats = self.record.by_stage("confirm", "rule")
        ended = {(trial.repeats, trial.seed) for trial in repeats if trial.state in ENDED}
        numbers = [trial.number for trial in self.picked]
        fresh = [trial for number in numbers for trial in fresh_trials(self.record, number)]
        return all((number, seed) in ended for number in numbers for seed in self.confirm_seeds) and all(
            trial.tested or trial.untested for trial in fresh
        )

    @cached_property
    def _by_value(self) -> list[Candidate]:
        complete = self._complete("baseline", "search")
        alike, apart = self._compared(complete), self._compared(complete, are=False)
        first = [candidate for candidate in alike if self.is_confirmed and candidate.confirmed_score]
        others = [candidate for candidate in alike if candidate not in first]
        means = [candidate.confirmed_score for candidate in first if candidate.confirmed_score]
        in_order = self._sorted(first, means) + self._sorted(others, [candidate.score for candidate in others])
        return in_order + self._sorted(apart, [candidate.score for candidate in apart])

    @cached_property
    def _with_references(self) -> AnyStanding | None:
        """The best reference among the incumbents, and the configurations ahead of it.

        It is as `standing`, but does not need another incumbent. With several metrics, only a reference that is better
        in every one than what `search.choose` chose. None without such a reference.
        """
        reference = self.best_reference
        if reference is None or not self.spec.objective.several:
            return None if reference is None else self._standing(reference)
        first = next(iter(self._compared(self._by_value)), None)
        score = first and (first.confirmed_score if self.is_confirmed else first.score)
        is_better = bool(score and reference.score and reference.score.dominates(score))
        return AnyStanding(reference, (), self.spec.search.margin) if is_better else None

    def _standing(self, reference: Reference | None) -> AnyStanding | None:
        confirmed = self.is_confirmed
        rivals: list[tuple[Candidate | Reference, Score]] = [
            (candidate, score)
            for candidate in self._compared(self._by_value)
            if (score := candidate.confirmed_score if confirmed else candidate.score)
        ]
        if rivals and reference and (own := reference.score):
            better = sum((score.violation, -score.gains[0]) < (own.violation, -own.gains[0]) for _, score in rivals)
            rivals.insert(better, (reference, own))
        place = next((at for at, (one, _) in enumerate(rivals) if is_one_of(one, self.spec.incumbents)), None)
        if place is None or rivals[place][1].violation > rivals[0][1].violation:
            return None
        incumbent, own = rivals[place]
        gains = [(one, score.gains[0] - own.gains[0]) for one, score in rivals[:place] if isinstance(one, Candidate)]
        ahead = [
            Lead(each, gain, *error_of_difference(self.spec, each, incumbent, confirmed))
            for each, gain in gains
            if gain > 0
        ]
        return AnyStanding(incumbent, ahead, self.spec.search.margin)

    def _best_of_search(self, searched: list[Candidate]) -> list[Candidate]:
        plan = self.confirm
        if not self.spec.objective.several or plan.front is None:
            return searched[: plan.top]
        scores = [candidate.score for candidate in searched]
        on_front = len(objective.front(scores))  # they come first
        count = max(plan.top, min(plan.front, on_front))
        if on_front <= count:
            return searched[:count]
        return [searched[place] for place in objective.spread_out(scores[:on_front], count)]

    def _complete(self, *stages: Stage) -> list[Candidate]:
        """Return the complete configurations of these stages, by number."""
        return [found for trial in self.record.by_stage(*stages) if (found := self._candidate(trial))]

    def _candidate(self, trial: TrialRecord) -> Candidate | None:
        """Return a configuration by its trials of the most epochs, at most `compared_at`, that are all complete."""
        complete = (version for version in trial.versions if version.state == "complete")
        alike = (version for version in complete if version.total(self.spec.epochs) <= self.compared_at)
        return next((candidate for candidate in map(self._of_epochs, alike) if candidate), None)

    def _of_epochs(self, trial: TrialRecord) -> Candidate | None:
        """Return a configuration by its trials that ran as many epochs as this one, which is complete."""
        spec, record, ran = self.spec, self.record, trial.total(self.spec.epochs)
        versions = [self._version(each, ran) for each in record.repeats_of(trial.number, "replicate")]
        seeds = [trial, *(each for each in versions if each)]
        needed = 1 if trial.stage == "final" else len(spec.runs())
        score = mean_score(spec.objective, seeds)
        if score is None or len(seeds) < needed or any(each.state != "complete" for each in seeds):
            return None
        fresh = (self._version(each, ran) for each in record.repeats_of(trial.number))
        repeats = [each for each in fresh if each and each.state == "complete"]
        joined = record.joined.get(trial.number)
        if joined is not None and set(joined.runs) == {each.number for each in repeats}:
            values = spreads(spec.objective, repeats, joined)
            if all(name in values for name in spec.objective.needed):
                means = spec.objective.score({name: values[name].mean for name in spec.objective.needed})
                return Candidate(trial, score.values[0], score, seeds, repeats, values[spec.metric], means, ran, joined)
        confirmed = spread(epochs.value(spec.objective, each, spec.metric) for each in repeats)
        means = mean_score(spec.objective, repeats)
        return Candidate(trial, score.values[0], score, seeds, repeats, confirmed, means, ran)

    def _version(self, trial: TrialRecord, ran: int) -> TrialRecord | None:
        """Return a trial as it was, or is, after `ran` epochs; None where it did not end there."""
        return next((version for version in trial.versions if version.total(self.spec.epochs) == ran), None)

    def _compared(self, candidates: Iterable[Candidate], are: bool = True) -> list[Candidate]:
        """Return the candidates whose trials ran as many epochs as are compared, or the others."""
        return [candidate for candidate in candidates if (candidate.epochs == self.compared_at) is are]

    def _sorted(self, candidates: list[Candidate], scores: Sequence[Score]) -> list[Candidate]:
        return [candidates[place] for place in self.spec.objective.order(scores)]


def once(compute: Callable[[Results], T]) -> Callable[[Results], T]:
    """Wrap a function of results so that it is computed once for each; nobody may change what it returns."""

    @wraps(compute)
    def kept(results: Results) -> T:
        if compute not in results._kept:
            results._kept[compute] = compute(results)
        return cast(T, results._kept[compute])

    return kept
