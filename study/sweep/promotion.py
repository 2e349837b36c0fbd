"""Early stopping that pauses trials and lets the best of them go on."""

from bisect import bisect_right
from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from study.home.events import State
from study.spec.objective import Score
from study.spec.rungs import brackets, turn
from study.spec.schema import EarlyStopping as Rule
from study.sweep.rule import EarlyStopping, Verdict
from study.sweep.rung_peers import Peers, Standing


@dataclass
class _Rung:
    """The trials that reached a rung, in the order in which they came, and how they compare."""

    peers: Peers
    trials: list[int] = field(default_factory=list)

    def best(self, count: int) -> list[int]:
        return [self.trials[place] for place in self.peers.best(count)] if count else []


class Promotion(EarlyStopping):
    """Asynchronous successive halving by promotion (Li et al. 2020, MLSys, Algorithm 2).

    A trial pauses at each rung. When a process is free, a paused trial goes on that is among the best 1/`reduction` of
    those that reached its rung so far; the highest rung comes first, and without such a trial the search begins a new
    one. A trial that would go on at once does not pause.

    When the search begins no more, this goes on until no paused trial is among the best. At the end at least `full`
    trials run in full, if there are as many: where fewer would, the best of the highest rung goes on. An epoch without
    a score is skipped: the trial pauses at its next epoch that has one.

    Args:
        rule: of the study file.
        epochs: of a full run.
        full: how many trials run in full at least; 0 counts as 1.
        new_peers: what a rung begins with.
    """

    name = "promotion"

    def __init__(self, rule: Rule, epochs: int, full: int, new_peers: Callable[[], Peers]) -> None:
        self._epochs = brackets(rule, epochs)[0].rungs
        self._reduction, self._full = rule.reduction, max(1, full)
        self._rungs = [_Rung(new_peers()) for _ in self._epochs]
        self._highest: dict[int, int] = {}  # index of the last rung that each trial reached
        self._paused: set[int] = set()
        self._active: set[int] = set()  # trials that run or wait for a process
        self._complete = 0

    def pauses_at(self, trial: int) -> Container[int]:
        return self._epochs

    def decided(self, trial: int, params: Mapping[str, Any]) -> None:
        self._active.add(trial)

    def judge(self, trial: int, epoch: int, score: Score) -> Verdict:
        index = bisect_right(self._epochs, epoch) - 1
        if index <= self._highest.get(trial, -1):
            return "on"
        self._highest[trial] = index
        self._rungs[index].peers.add(Standing(score.gains, score.violation, turn(trial)))
        self._rungs[index].trials.append(trial)
        self._paused.add(trial)
        if self._promotable() == trial:
            self._paused.discard(trial)
            return "on"
        self._active.discard(trial)
        return "pause"

    def thaw(self, more: bool) -> int | None:
        promotable = self._promotable()
        if promotable is not None or more or self._complete + len(self._active) >= self._full:
            return promotable
        return next(self._by_rung(lambda count: count), None)

    def thawed(self, trial: int) -> None:
        self._paused.discard(trial)
        self._active.add(trial)

    def ended(self, trial: int, state: State) -> None:
        self._paused.discard(trial)
        self._active.discard(trial)
        self._complete += state == "complete"

    def _promotable(self) -> int | None:
        """The paused trial that is to go on; None: none is among the best of its rung."""
        return next(self._by_rung(lambda count: count // self._reduction), None)

    def _by_rung(self, best: Callable[[int], int]) -> Iterator[int]:
        """The paused trials among the best of the rung at which they are, the highest rung first, best first.

        Args:
            best: how many of so many trials that reached a rung.
        """
        for index in reversed(range(len(self._rungs))):
            rung = self._rungs[index]
            for trial in rung.best(best(len(rung.trials))):
                if trial in self._paused and self._highest[trial] == index:
                    yield trial
