"""The median stopping rule."""

from collections import defaultdict
from dataclasses import dataclass

from study.spec.objective import Objective, Score
from study.spec.rungs import tie_breaker
from study.spec.schema import EarlyStopping as Rule
from study.sweep.early_stopping import EarlyStopping, Peers, RungScore, new_peers


@dataclass
class _Course:
    """A trial's scores so far, each given as its gains and the negative violation.

    Attributes:
        epoch: the last that was heard.
        best: of each score so far.
        sums: of each score from `grace` on, over `count` epochs.
    """

    epoch: int
    best: list[float]
    sums: list[float]
    count: int = 0


class Median(EarlyStopping):
    """The median stopping rule (Golovin et al. 2017, Google Vizier, section 3.2.1), as Ray Tune implements it.

    After each epoch from `grace` on, a trial is pruned if its best so far is worse than the median of the others' means
    over the epochs from `grace` to this one. At least `ENOUGH` others must have reached this epoch, whether they still
    run or not.
    For several metrics or constraints, best and mean are taken of each gain and of the violation, and the trial goes on
    if its best are in the better half of the others' means.
    """

    ENOUGH = 3

    def __init__(self, rule: Rule, epochs: int, objective: Objective) -> None:
        super().__init__(rule, epochs, objective)
        self._grace = self.schedule.grace
        self._peers: dict[int, Peers] = defaultdict(lambda: new_peers(objective, 2))
        self._reached: dict[int, int] = defaultdict(int)
        self._courses: dict[int, _Course] = {}

    def should_prune(self, trial: int, epoch: int, score: Score) -> bool:
        scores = [*score.gains, -score.violation]
        course = self._courses.setdefault(trial, _Course(0, scores, [0.0] * len(scores)))
        if epoch <= course.epoch:
            return False
        course.epoch, course.best = epoch, [max(pair) for pair in zip(course.best, scores, strict=True)]
        if epoch < self._grace:
            return False
        course.count, course.sums = course.count + 1, [sum(pair) for pair in zip(course.sums, scores, strict=True)]
        peers, tie_break = self._peers[epoch], tie_breaker(trial)
        goes_on = self._reached[epoch] < self.ENOUGH or peers.admit(_standing(course.best, tie_break))
        peers.add(_standing([total / course.count for total in course.sums], tie_break))
        self._reached[epoch] += 1
        return not goes_on


def _standing(scores: list[float], tie_break: float) -> RungScore:
    return RungScore(tuple(scores[:-1]), -scores[-1], tie_break)
