"""Which configurations of a study are taken: by its own ranking, or by another metric, limits or trade-off.

As in that ranking, configurations that were confirmed on fresh seeds come before the others, each by its means over
these: a lucky seed does not win. A front is that of the values on the search's own seeds, which all configurations
have. Test metrics choose nothing.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from study import ranking
from study.errors import UserError, nearest
from study.home.record import StudyRecord, TrialRecord
from study.metrics import Direction, better
from study.ranking import Candidate
from study.spec import StudySpec, objective
from study.spec.objective import Constraint, Objective, Score


@dataclass(frozen=True)
class Choice:
    """What a user asks for; without anything, the best by the study's own ranking.

    Attributes:
        top: how many, None: one, or of a front all.
        trial: that one, by its number.
        where: limits to keep, each as `val/equalized_odds <= 0.05`.
        by: the metric to order by.
        pareto: metrics whose front is taken: what no other is better than in all of them.
    """

    top: int | None = None
    trial: int | None = None
    where: Sequence[str] = ()
    by: str | None = None
    pareto: Sequence[str] = ()

    def words(self, spec: StudySpec) -> str:
        """How it chooses."""
        if self.trial is not None:
            return "its number, given by the user"
        metrics = f"front of {', '.join(self.pareto)}" if self.pareto else self.by or ", ".join(spec.objective.metrics)
        return " where ".join([metrics, *([" and ".join(self.where)] if self.where else [])])


def choose(spec: StudySpec, record: StudyRecord, choice: Choice) -> list[Candidate]:
    """The configurations that a choice means, the best first.

    Raises:
        UserError: it contradicts itself, names what is not there, or too few trials are complete or keep the limits.
    """
    everyone = ranking.ranked(record, spec)
    _check(choice)
    if choice.trial is not None:
        return [_numbered(spec, record, everyone, choice.trial)]
    limits = [_limit(text) for text in choice.where]
    metrics = tuple(choice.pareto) or ((choice.by,) if choice.by else spec.objective.metrics)
    _check_metrics(spec, everyone, [*metrics, *(limit.metric for limit in limits)])
    goal = Objective(metrics, tuple(_mode(name) for name in metrics), tuple(limits))
    confirmed = ranking.is_confirmed(record, spec) and not choice.pareto
    fresh = [one for one in everyone if confirmed and one.repeats]
    scored = _scored(goal, fresh, fresh=True) + _scored(goal, [one for one in everyone if one not in fresh])
    kept = [(one, score) for one, score in scored if score.violation == 0]
    if limits and scored and not kept:
        raise UserError(_how_close(spec, goal, scored))
    if choice.pareto:
        kept = [kept[place] for place in objective.front([score for _, score in kept])]
    found = [one for one, _ in kept]
    if choice.pareto or choice.by:
        groups = [[pair for pair in kept if (pair[0] in fresh) is first] for first in (True, False)]
        found = [group[place][0] for group in groups for place in objective.order([score for _, score in group])]
    wanted = choice.top or (len(found) if choice.pareto else 1)
    if len(found) < max(wanted, 1):
        which = " that keep the limits" if limits else " on the front" if choice.pareto else ""
        raise UserError(f"{spec.name}: {len(found)} complete trials{which}, --top {max(wanted, 1)} asked for")
    return found[:wanted]


def _scored(goal: Objective, found: Iterable[Candidate], fresh: bool = False) -> list[tuple[Candidate, Score]]:
    """The score of each that has one, over its fresh seeds or those of the search."""
    scores = ((one, ranking.mean_score(goal, one.repeats if fresh else one.replicates)) for one in found)
    return [(one, score) for one, score in scores if score]


def trials_of(one: Candidate) -> Sequence[TrialRecord]:
    """The trials that say most of a configuration: on fresh seeds, else those of the search."""
    return one.repeats or one.replicates


def _check(choice: Choice) -> None:
    given = {
        "--trial": choice.trial is not None,
        "--pareto": bool(choice.pareto),
        "--by": choice.by is not None,
        "--where": bool(choice.where),
        "--top": choice.top is not None,
    }
    for one, others in (("--trial", ("--pareto", "--by", "--where", "--top")), ("--pareto", ("--by",))):
        for other in others:
            if given[one] and given[other]:
                raise UserError(f"{one}, {other}: give one of them, not both")


def _limit(text: str) -> Constraint:
    try:
        return Constraint.parse(text)
    except ValueError as error:
        raise UserError(f"--where: {error}") from None


def _check_metrics(spec: StudySpec, everyone: Iterable[Candidate], names: Iterable[str]) -> None:
    """Every metric is of the validation split, and some complete trial has it."""
    there = sorted({name for one in everyone for name in one.trial.reports[-1] if name.startswith("val/")})
    for name in names:
        if there and name not in there:
            note = "test splits choose nothing. " if name.startswith("test/") else ""
            raise UserError(f"{name!r}: {note}{nearest(name, there)}Metrics of {spec.name}: {', '.join(there)}")


def _mode(metric: str) -> Direction:
    found = better(metric)
    if found is None:
        raise UserError(f"{metric!r}: neither direction of it is better, it cannot choose")
    return found


def _numbered(spec: StudySpec, record: StudyRecord, everyone: Sequence[Candidate], number: int) -> Candidate:
    for one in everyone:
        if one.trial.number == number:
            return one
    trial = record.trials.get(number)
    if trial is None:
        raise UserError(f"--trial {number}: {spec.name} has {len(record.trials)} trials, counted from 0")
    if trial.repeats is not None:
        raise UserError(f"--trial {number}: repeats trial {trial.repeats} on another seed: --trial {trial.repeats}")
    raise UserError(f"--trial {number}: is {trial.state}, only complete trials can be exported")


def _how_close(spec: StudySpec, goal: Objective, scored: Sequence[tuple[Candidate, Score]]) -> str:
    """Of the configuration that misses the limits by least: which, and by how much."""
    one, score = min(scored, key=lambda each: each[1].violation)
    values = zip(goal.metrics, score.values, strict=True)
    told = ", ".join(f"{name} {value:.4g}" for name, value in values)
    limits = " and ".join(f"{limit.metric} {limit.sense} {limit.limit:g}" for limit in goal.constraints)
    return (
        f"{spec.name}: none of {len(scored)} complete configurations keeps {limits}. "
        f"Trial {one.trial.number} comes closest, it misses by {score.violation:.4g}: {told}"
    )
