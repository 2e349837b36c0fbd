"""The picks of each selection rule: the rules of `study.metrics.selection_rules` on the trials of one study.

A rule picks as a user would have who searched by it: by the values of the search, the mean over replicates, among all
complete configurations of as many epochs as the best, the baseline too. With several metrics the study's own pick is
what the study chose: what leads the front of the search may not be on that of the fresh seeds. Nothing of it changes
the study's own choice (`study.ranking.results`). The picks that run again on fresh seeds are trials of a stage of their
own, `rule`, which no ranking looks at.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from study.home.record import StudyRecord, TrialRecord
from study.metrics import metric_direction
from study.metrics.selection_rules import SELECTION_RULES, RequiredLabels, SelectionRule
from study.ranking.candidates import Candidate
from study.ranking.trial_statistics import mean_score
from study.spec import StudySpec
from study.spec.constraints import MetricConstraint
from study.spec.objective import Objective, TrialScore
from study.spec.schema import ConfirmOptions


@dataclass(frozen=True)
class ObjectiveRule:
    """A rule as the trials of a study can be ordered by it.

    Attributes:
        name: in words.
        required_labels: what must be known of validation samples, see `study.metrics.selection_rules.RequiredLabels`;
            None: the study's own rule, which the table does not have.
        objective: its metric on the validation split, and its limit.
        is_study_objective: whether the study itself searched by it.
    """

    name: str
    required_labels: RequiredLabels | None
    objective: Objective
    is_study_objective: bool


@dataclass(frozen=True)
class RulePick:
    """The configuration that a rule picks.

    Attributes:
        candidate: what is picked.
        score: its worth by the rule, in the search.
        n_tied: how many configurations share the top, 1: the pick alone; the earliest of them is picked.
        n_candidates: how many configurations have what the rule looks at.
        rank: the pick's place by the study's own ranking, from 1.
    """

    rule: ObjectiveRule
    candidate: Candidate
    score: TrialScore
    n_tied: int
    n_candidates: int
    rank: int

    @property
    def trial_number(self) -> int:
        """Number of the trial that is picked."""
        return self.candidate.trial.number


def objective_rules(spec: StudySpec) -> list[ObjectiveRule]:
    """Return every rule of the table, those that need least first.

    The study's own comes last if the table lacks it.
    """
    own = spec.objective
    goals = {_rule_objective(rule, own): rule for rule in SELECTION_RULES}
    rules = [ObjectiveRule(rule.name, rule.required_labels, goal, goal == own) for goal, rule in goals.items()]
    return rules if own in goals else [*rules, ObjectiveRule(_study_objective_name(own), None, own, True)]


def pick_configurations(spec: StudySpec, ranked: Sequence[Candidate]) -> list[RulePick]:
    """Return the pick of each rule of `objective_rules` whose metrics some complete configuration has.

    Args:
        ranked: the configurations that are compared, the best first.
    """
    ranks = {candidate.trial.number: place for place, candidate in enumerate(ranked, 1)}
    found = []
    for rule in objective_rules(spec):
        scored = score_candidates(rule.objective, ranked)
        if scored:
            place = rule.objective.ranking_order([score for _, score in scored])[0]
            if rule.objective.has_several_metrics:
                place = [candidate.trial.number for candidate, _ in scored].index(ranked[0].trial.number)
            candidate, score = scored[place]
            ties = sum(_score_order_key(other) == _score_order_key(score) for _, other in scored)
            found.append(RulePick(rule, candidate, score, ties, len(scored), ranks[candidate.trial.number]))
    return found


def score_candidates(goal: Objective, candidates: Sequence[Candidate]) -> list[tuple[Candidate, TrialScore]]:
    """Return what each configuration that has the metrics is worth in the search, in the order of trials.

    By that order ties go to the earlier one.
    """
    by_number = sorted(candidates, key=lambda candidate: candidate.trial.number)
    scored = [(candidate, mean_score(goal, candidate.replicates)) for candidate in by_number]
    return [(candidate, score) for candidate, score in scored if score]


def is_rule_requested(rule: ObjectiveRule, asked: bool | Sequence[str]) -> bool:
    """Return whether a rule is one of those that are named; a list names some, else all are."""
    return isinstance(asked, bool) or rule.name in asked


def fresh_seed_trials(record: StudyRecord, number: int) -> list[TrialRecord]:
    """Return the complete confirm and rule trials of a configuration, one per seed; a confirm trial where both ran."""
    repeats = [*record.repeat_trials(number), *record.repeat_trials(number, "rule")]
    by_seed = {trial.seed: trial for trial in reversed(repeats) if trial.state == "complete"}
    return [by_seed[seed] for seed in sorted(by_seed)]


def max_extra_picked_configurations(
    spec: StudySpec, plan: ConfirmOptions, configurations: int, reported: Collection[str]
) -> int:
    """Return how many of `configurations` the rules can pick besides those that are confirmed anyway.

    These are the best of `plan.top` and the baseline: the study's own rule, which picks one of them, brings no further
    one.

    Args:
        plan: what runs on fresh seeds.
        reported: the metrics that trials report, as `val/accuracy`.
    """
    asked = [rule for rule in objective_rules(spec) if is_rule_requested(rule, plan.rules)]
    rules = [
        rule
        for rule in asked
        if rule.is_study_objective or all(name in reported for name in rule.objective.needed_metrics)
    ]
    if plan.top == 0:
        return min(len(rules), configurations)
    others = sum(not rule.is_study_objective for rule in rules)
    baseline = int(spec.search.baseline is not None)
    return max(0, min(others, configurations - min(plan.top, configurations - baseline) - baseline))


def _rule_objective(rule: SelectionRule, own: Objective) -> Objective:
    """Return the objective of a rule in the study's place: as it would have searched by it, all else equal."""
    name = f"val/{rule.metric}"
    constraints = (MetricConstraint.from_text(f"val/{rule.limit}"),) if rule.limit else ()
    return replace(own, metrics=(name,), directions=(metric_direction(name) or "max",), constraints=constraints)


def _score_order_key(score: TrialScore) -> tuple[object, ...]:
    return score.total_violation, score.values_to_maximise


def _study_objective_name(own: Objective) -> str:
    constraints = " and ".join(map(str, own.constraints))
    return " where ".join([", ".join(own.metrics), *([constraints] if constraints else [])])
