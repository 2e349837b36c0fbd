"""The choice of configurations of a study: by its own ranking, or by another metric, limits or a front.

As in the study's ranking, configurations that were confirmed on fresh seeds come before the others and are ordered by
their means over these seeds, so that a lucky seed does not win. A front in the study's own metrics is that of the study
(`Results.front`); one in other metrics uses the values on the search's own seeds, which all configurations have. The
constraints hold here, too: configurations that miss them come last, and are on a front only where none keeps them. Test
metrics choose nothing.
"""

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, replace

from study import ranking
from study.errors import UserError, suggest_or_list
from study.home.record import TrialRecord
from study.metrics import Direction
from study.ranking import Candidate, Results
from study.spec import StudySpec, objective
from study.spec.constraints import MetricConstraint
from study.spec.objective import Objective, TrialScore


@dataclass(frozen=True)
class CandidateSelection:
    """A user's choice of configurations; by default, the best by the study's own ranking.

    Attributes:
        top: how many; None: one, or all of a front.
        trial: the number of one trial.
        where: constraints to keep, each as `val/equalized_odds <= 0.05`.
        by: the metric to order by.
        pareto: metrics whose front is taken: the configurations that are not dominated in these metrics.
    """

    top: int | None = None
    trial: int | None = None
    where: Sequence[str] = ()
    by: str | None = None
    pareto: Sequence[str] = ()

    def rule_text(self, spec: StudySpec) -> str:
        """Return the rule in words."""
        if self.trial is not None:
            return "its number, given by the user"
        own = spec.objective
        by_rule = spec.metric
        if own.has_several_metrics:
            by_rule = f"front of {', '.join(own.metrics)}, {own.front_choice_text}"
        by_rule += f": {spec.margin_rule_text}" if spec.margin_rule_text else ""
        metrics = f"front of {', '.join(self.pareto)}" if self.pareto else self.by or by_rule
        constraints = [*self.where, *spec.search.constraints]
        return " where ".join([metrics, *([" and ".join(dict.fromkeys(constraints))] if constraints else [])])


def select_candidates(results: Results, choice: CandidateSelection) -> list[Candidate]:
    """Return the configurations that a choice selects, the best first.

    Raises:
        UserError: the choice contradicts itself, names an unknown trial or metric, or too few trials are complete or
            keep the limits.
    """
    spec = results.spec
    _check_selection(choice)
    if choice.trial is not None:
        return [_candidate_of_trial(results, results.ranked_all, choice.trial)]
    ranked = results.ranked_all
    constraints = [_parse_constraint(spec, text) for text in choice.where]
    metrics = tuple(choice.pareto) or ((choice.by,) if choice.by else spec.objective.metrics)
    _check_metrics(spec, ranked, [*metrics, *(each.metric for each in constraints)])
    directions = tuple(_metric_direction(spec, name) for name in metrics)
    goal = Objective(metrics, directions, tuple(constraints), spec.objective.epoch_window)
    if of_study := spec.objective.has_several_metrics and set(choice.pareto) == set(spec.objective.metrics):
        ranked = [candidate for candidate, _ in results.scored_candidates]
    confirmed = results.is_confirmed and (of_study or not choice.pareto)
    fresh = {candidate.trial.number for candidate in ranked if confirmed and candidate.confirm_trials}
    scored = _score_candidates(goal, ranked, fresh)
    chosen = [candidate for candidate, score in scored if score.total_violation == 0]
    if constraints and scored and not chosen:
        raise UserError(_no_match_message(spec, goal, scored))
    if choice.pareto or choice.by:
        goal = replace(goal, constraints=spec.objective.constraints)
        scored = _score_candidates(goal, chosen, fresh)
        if choice.pareto:
            scored = [scored[place] for place in objective.front_positions([score for _, score in scored])]
        groups = [[pair for pair in scored if (pair[0].trial.number in fresh) is first] for first in (True, False)]
        chosen = [group[place][0] for group in groups for place in goal.ranking_order([score for _, score in group])]
    count = choice.top or (len(chosen) if choice.pareto else 1)
    if len(chosen) < max(count, 1):
        which = " that keep the limits" if constraints else " on the front" if choice.pareto else ""
        raise UserError(f"{spec.name}: {len(chosen)} complete configurations{which}, {max(count, 1)} asked for (--top)")
    return chosen[:count]


def _score_candidates(
    goal: Objective, candidates: Iterable[Candidate], fresh: Container[int]
) -> list[tuple[Candidate, TrialScore]]:
    """Return the candidates that have a score: first those in `fresh`, over their fresh seeds, then the others.

    The others are scored over the seeds of the search.
    """
    first = sorted(candidates, key=lambda candidate: candidate.trial.number not in fresh)
    trials = ((each, each.confirm_trials if each.trial.number in fresh else each.replicates) for each in first)
    return [(candidate, score) for candidate, seeds in trials if (score := ranking.mean_score(goal, seeds))]


def judging_trials(candidate: Candidate) -> Sequence[TrialRecord]:
    """Return the trials by which a configuration is judged: those on fresh seeds, otherwise those of the search."""
    return candidate.confirm_trials or candidate.replicates


def _check_selection(choice: CandidateSelection) -> None:
    is_given = {
        "--trial": choice.trial is not None,
        "--pareto": bool(choice.pareto),
        "--by": choice.by is not None,
        "--where": bool(choice.where),
        "--top": choice.top is not None,
    }
    if choice.top is not None and choice.top < 1:
        raise UserError(f"--top {choice.top}: allowed is 1 or more")
    for flag, others in (("--trial", ("--pareto", "--by", "--where", "--top")), ("--pareto", ("--by",))):
        for excluded in others:
            if is_given[flag] and is_given[excluded]:
                raise UserError(f"{flag}, {excluded}: give one of them, not both")


def _parse_constraint(spec: StudySpec, text: str) -> MetricConstraint:
    try:
        constraint = MetricConstraint.from_text(text)
    except ValueError as error:
        raise UserError(f"--where: {text!r} given, {error}") from None
    if not spec.training_function and (why := constraint.why_pointless()):
        raise UserError(f"--where: {text!r} given: {why}")
    return constraint


def _check_metrics(spec: StudySpec, ranked: Iterable[Candidate], names: Iterable[str]) -> None:
    """Refuse a metric that is not of the validation split, or that no complete trial has where it is needed.

    Where each trial's epoch is chosen, every epoch needs the metric.
    """
    place = -1 if spec.objective.epoch_window is None else 0
    reports = [candidate.trial.reports[place] for candidate in ranked]
    reported = sorted({name for report in reports for name in report if name.startswith("val/")})
    for name in names:
        if name not in reported and any(name in candidate.trial.reports[-1] for candidate in ranked):
            raise UserError(f"{name!r}: is measured once a trial, and cannot choose its epoch (search.epoch: best)")
        if reported and name not in reported:
            note = "test metrics cannot be used to choose. " if name.startswith("test/") else ""
            raise UserError(f"{name!r}: {note}{suggest_or_list(name, reported, f'Metrics of {spec.name}')}")


def _metric_direction(spec: StudySpec, metric: str) -> Direction:
    if metric in spec.objective.metrics:
        return spec.objective.directions[spec.objective.metrics.index(metric)]
    direction = spec.direction(metric)
    if direction is None:
        raise UserError(
            f"{metric!r}: cannot rank configurations, since it is not known whether a higher or a lower value is "
            "better; that can be given for the metrics of a study alone (search.direction)"
        )
    return direction


def _candidate_of_trial(results: Results, ranked: Sequence[Candidate], number: int) -> Candidate:
    for candidate in ranked:
        if candidate.trial.number == number:
            return candidate
    trial = results.record.find_trial(number, f"--trial {number}", results.spec.name)
    if trial.repeated_trial is not None:
        raise UserError(
            f"--trial {number}: only repeats trial {trial.repeated_trial} on another seed. Take --trial "
            f"{trial.repeated_trial}"
        )
    raise UserError(f"--trial {number}: is {trial.state}, only complete trials can be exported")


def _no_match_message(spec: StudySpec, goal: Objective, scored: Sequence[tuple[Candidate, TrialScore]]) -> str:
    """Return the message that no configuration keeps the constraints, with the one that comes closest."""
    candidate, score = min(scored, key=lambda pair: pair[1].total_violation)
    values = zip(goal.metrics, score.values, strict=True)
    values_text = ", ".join(f"{name} {value:.4g}" for name, value in values)
    constraints = " and ".join(map(str, goal.constraints))
    return (
        f"{spec.name}: none of {len(scored)} complete configurations keeps {constraints}. Trial "
        f"{candidate.trial.number} comes closest ({values_text}): it misses {goal.broken_constraints_text(score)}"
    )
