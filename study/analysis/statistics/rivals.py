"""The best configuration against the others that ran on the same fresh seeds."""

from collections.abc import Mapping
from dataclasses import dataclass

from study import ranking
from study.analysis.statistics.difference import Difference, Side, difference, side_of, sides
from study.home.record import StudyRecord
from study.spec import StudySpec


@dataclass(frozen=True)
class Rivals:
    """The confirmed configurations, the best first.

    Attributes:
        best: the best searched configuration.
        runner_up: the second best.
        gaps: best minus each of the others, in the study's metric, by trial. The intervals allow for the choice of the
            best among all of these on these very seeds.
        undecided: the trials whose gap is not clear: the truly best configuration of these is the best one or among the
            undecided with at least 97.5%, as one of the others would have to beat it by luck beyond the interval.
    """

    best: Side
    runner_up: Side
    gaps: Mapping[int, Difference]
    undecided: tuple[int, ...]


def rivals(spec: StudySpec, record: StudyRecord) -> Rivals | None:
    """The rivals of the best searched configuration.

    None where fewer than two configurations have run on all their fresh seeds, of those that miss the constraints no
    more than the best does; and where the study has several metrics, since a front has no single best.
    """
    if len(spec.objective.metrics) > 1 or not ranking.is_confirmed(record, spec):
        return None
    confirmed = [each for each in ranking.candidates(record, spec) if each.confirmed_score]
    level = [each for each in confirmed if _missed(each) <= _missed(confirmed[0])]
    best, others = sides(spec, record)[1], [side_of(spec, each) for each in level[1:]]
    if best is None or not others:
        return None
    gaps = {
        other.number: gap
        for other in others
        if (gap := difference(best.values(spec.metric), other.values(spec.metric), among=best.among))
    }
    if others[0].number not in gaps:
        return None
    undecided = tuple(number for number, gap in gaps.items() if not (gap.clear and spec.better(gap.value, 0.0)))
    return Rivals(best, others[0], gaps, undecided)


def _missed(candidate: ranking.Candidate) -> float:
    score = candidate.confirmed_score
    return score.violation if score else 0.0
