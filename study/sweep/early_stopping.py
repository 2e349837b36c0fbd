"""Which searched trials go on: the rules, and which of them a study asks for."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from study.spec import StudySpec
from study.spec.objective import Objective, Score
from study.spec.rungs import bracket_of, brackets, grace, turn
from study.spec.schema import EarlyStopping as Rule
from study.sweep.rule import EarlyStopping, Verdict
from study.sweep.rung_peers import ByDominance, ByValue, Peers, Standing

__all__ = ["EarlyStopping", "Verdict", "early_stopping"]


class NoEarlyStopping(EarlyStopping):
    """Every trial runs in full."""

    name = "none"

    def judge(self, trial: int, epoch: int, score: Score) -> Verdict:
        return "on"


class Asha(EarlyStopping):
    """Asynchronous successive halving (Li et al. 2020, MLSys), in one bracket or several, or in Hyperband's.

    A trial that reaches a rung of its bracket goes on if it is among the best 1/`reduction` of those that reached the
    rung before it. For one metric without constraints these are the decisions of Ray Tune's ASHAScheduler. Ray draws
    the bracket at random, here the trial's number gives it (`study.spec.rungs`). An epoch without a score is skipped:
    the trial is judged at its next epoch that has one.

    Args:
        rule: of the study file.
        epochs: of a full run.
        new_peers: what a rung begins with.
    """

    def __init__(self, rule: Rule, epochs: int, new_peers: Callable[[], Peers]) -> None:
        self.name: str = rule.name
        self._brackets = brackets(rule, epochs)
        self._peers: dict[tuple[int, int], Peers] = defaultdict(new_peers)
        self._heard: set[tuple[int, int]] = set()

    def judge(self, trial: int, epoch: int, score: Score) -> Verdict:
        bracket = bracket_of(trial, self._brackets)
        rung = bisect_right(self._brackets[bracket].rungs, epoch)
        if rung == 0 or (trial, rung) in self._heard:
            return "on"
        self._heard.add((trial, rung))
        peers, standing = self._peers[bracket, rung], Standing(score.gains, score.violation, turn(trial))
        goes_on = peers.admit(standing)
        peers.add(standing)
        return "on" if goes_on else "prune"


@dataclass
class _Course:
    """A trial's scores so far, each as its gains and the negative violation.

    Attributes:
        epoch: the last that was heard.
        best: of each so far.
        sums: of each from `grace` on, over `count` epochs.
    """

    epoch: int
    best: list[float]
    sums: list[float]
    count: int = 0


class Median(EarlyStopping):
    """The median stopping rule (Golovin et al. 2017, Google Vizier, section 3.2.1), as Ray Tune implements it.

    After each epoch from `grace` on a trial is pruned if its best so far is worse than the median of the others' means
    over the epochs from `grace` to this one. At least `ENOUGH` others must have reached this epoch, whether they still
    run or not.
    For several metrics or constraints best and mean are taken of each gain and of the violation, and the trial goes on
    if its best stand in the better half of the others' means.

    Args:
        grace: the first epoch at which trials are compared.
        new_peers: of which the better half goes on.
    """

    name = "median"
    ENOUGH = 3

    def __init__(self, grace: int, new_peers: Callable[[], Peers]) -> None:
        self._grace = grace
        self._peers: dict[int, Peers] = defaultdict(new_peers)
        self._reached: dict[int, int] = defaultdict(int)
        self._courses: dict[int, _Course] = {}

    def judge(self, trial: int, epoch: int, score: Score) -> Verdict:
        scores = [*score.gains, -score.violation]
        course = self._courses.setdefault(trial, _Course(0, scores, [0.0] * len(scores)))
        if epoch <= course.epoch:
            return "on"
        course.epoch, course.best = epoch, [max(pair) for pair in zip(course.best, scores, strict=True)]
        if epoch < self._grace:
            return "on"
        course.count, course.sums = course.count + 1, [sum(pair) for pair in zip(course.sums, scores, strict=True)]
        peers, lot = self._peers[epoch], turn(trial)
        goes_on = self._reached[epoch] < self.ENOUGH or peers.admit(_standing(course.best, lot))
        peers.add(_standing([total / course.count for total in course.sums], lot))
        self._reached[epoch] += 1
        return "on" if goes_on else "prune"


def early_stopping(spec: StudySpec) -> EarlyStopping:
    """The rule that a study asks for."""
    rule = spec.search.early_stopping
    if rule.name == "none":
        return NoEarlyStopping()
    if rule.name == "median":
        return Median(grace(rule, spec.epochs), partial(_new_peers, spec.objective, 2))
    return Asha(rule, spec.epochs, partial(_new_peers, spec.objective, rule.reduction))


def _new_peers(objective: Objective, reduction: int) -> Peers:
    if len(objective.metrics) == 1 and not objective.constraints:
        return ByValue(reduction)
    return ByDominance(reduction, len(objective.metrics))


def _standing(scores: list[float], lot: float) -> Standing:
    return Standing(tuple(scores[:-1]), -scores[-1], lot)
