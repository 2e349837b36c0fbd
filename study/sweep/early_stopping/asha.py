"""Asynchronous successive halving."""

from bisect import bisect_right
from collections import defaultdict

from study.spec.objective import Objective, Score
from study.spec.rungs import bracket_of, tie_breaker
from study.spec.schema import EarlyStopping as Rule
from study.sweep.early_stopping import EarlyStopping, Peers, RungScore, new_peers


class Asha(EarlyStopping):
    """Asynchronous successive halving (Li et al. 2020, MLSys), in one bracket or several.

    A trial that reaches a rung of its bracket goes on if it is among the best 1/`reduction` of those that reached the
    rung before it. For one metric without constraints these are the decisions of Ray Tune's ASHAScheduler. Ray draws
    the bracket at random, here the trial's number gives it (`bracket_of`). An epoch without a score is skipped: the
    trial is judged at its next epoch that has one.
    """

    def __init__(self, rule: Rule, epochs: int, objective: Objective) -> None:
        super().__init__(rule, epochs, objective)
        self._brackets = self.schedule.brackets
        self._peers: dict[tuple[int, int], Peers] = defaultdict(lambda: self.new_peers())
        self._heard: set[tuple[int, int]] = set()

    def should_prune(self, trial: int, epoch: int, score: Score) -> bool:
        bracket = bracket_of(trial, self._brackets)
        rung = bisect_right(self._brackets[bracket].rungs, epoch)
        if rung == 0 or (trial, rung) in self._heard:
            return False
        self._heard.add((trial, rung))
        peers, standing = self._peers[bracket, rung], RungScore(score.gains, score.violation, tie_breaker(trial))
        goes_on = peers.admit(standing)
        peers.add(standing)
        return not goes_on

    def new_peers(self) -> Peers:
        """Return a rung without trials."""
        return new_peers(self.objective, self.rule.reduction)
