"""When each rule of early stopping compares trials, and what that should save.

A rule is a class here and the module of its name in `study/sweep/early_stopping`, which decides which trials go on.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from study.spec.schema import EarlyStopping, StoppingName

GOLDEN = (5**0.5 - 1) / 2


@dataclass(frozen=True)
class Bracket:
    """One ladder of rungs.

    Attributes:
        rungs: epochs after which its trials are compared, ascending, all before the last epoch.
        share: the part of the searched trials that it gets.
    """

    rungs: Sequence[int]
    share: float


@dataclass(frozen=True)
class Schedule:
    """When a rule compares trials of so many epochs: here at rungs, from which one in `reduction` goes on.

    Attributes:
        about: which trials stop, for the guide.
        has_brackets: whether it can have several, as `search.early_stopping.brackets` says.
        each_epoch: whether it compares trials after each epoch from `grace` on.
    """

    rule: EarlyStopping
    epochs: int
    about: ClassVar[str]
    has_brackets: ClassVar[bool] = False
    each_epoch: ClassVar[bool] = False

    @property
    def grace(self) -> int:
        """First epoch after which it may stop a trial."""
        return max(1, round(self.epochs / 2)) if self.rule.grace is None else self.rule.grace

    @property
    def brackets(self) -> list[Bracket]:
        """Brackets of the schedule; their shares add up to 1."""
        return self._shared(self.rule.brackets, lambda rungs: 1.0)

    @property
    def most_brackets(self) -> int:
        """Number of brackets that fit: each begins at the last epoch of a trial or before."""
        return len(self._ladder())

    @property
    def expected_epochs(self) -> float:
        """Mean epochs of a searched trial if each rung lets as many go on as it means to."""
        return sum(one.share * self._expected(one.rungs) for one in self.brackets)

    @property
    def expected_complete(self) -> float:
        """Share of searched trials that run to their end, if each rung lets as many go on as it means to."""
        return sum(one.share / self.rule.reduction ** len(one.rungs) for one in self.brackets)

    @property
    def words(self) -> str:
        """Rule in a line, for plan and report."""
        name, among = self.rule.name, self.brackets
        if not any(bracket.rungs for bracket in among):
            return f"{name}, no rungs before the last epoch"
        if len(among) == 1:
            return f"{name}, rungs at {_epochs(among[0].rungs)}, one in {self.rule.reduction} goes on"
        ladders = "; ".join(f"{_epochs(bracket.rungs)} ({100 * bracket.share:.0f}% of trials)" for bracket in among)
        return f"{name}, brackets with rungs at {ladders}; one in {self.rule.reduction} goes on"

    def _shared(self, count: int, weight: Callable[[Sequence[int]], float]) -> list[Bracket]:
        """Return so many brackets, each beginning a rung later than the one before, with shares by `weight`."""
        rungs = tuple(rung for rung in self._ladder() if rung < self.epochs)
        ladders = [rungs[first:] for first in range(count)]
        weights = [weight(one) for one in ladders]
        return [Bracket(one, each / sum(weights)) for one, each in zip(ladders, weights, strict=True)]

    def _ladder(self) -> list[int]:
        """Return the first epoch and its multiples by powers of `reduction`, up to the last epoch."""
        rungs, rung = [], self.grace
        while rung <= self.epochs:
            rungs.append(rung)
            rung *= self.rule.reduction
        return rungs

    def _expected(self, rungs: Sequence[int]) -> float:
        """Return the mean epochs of a trial of a ladder if each rung lets one in `reduction` go on."""
        total, share, done = 0.0, 1.0, 0
        for rung in (*rungs, self.epochs):
            total += share * (rung - done)
            share, done = share / self.rule.reduction, rung
        return total


class AshaSchedule(Schedule):
    """Rungs of asynchronous successive halving, in one bracket or several."""

    about = "at each rung only the best 1/`reduction` of all that have come so far goes on"
    has_brackets = True


class HyperbandSchedule(Schedule):
    """Rungs in as many brackets as Li et al. (2018, JMLR 18, Algorithm 1) and Optuna's HyperbandPruner have.

    These are 1 + floor(log_reduction(epochs/grace)). As there, each gets the same budget. There a trial begins again at
    each rung; here it goes on, so a bracket's share is inverse to the epochs that one of its trials is expected to run.
    """

    about = "asha in all the brackets that fit, with the same budget each"

    @property
    def grace(self) -> int:
        return 1 if self.rule.grace is None else self.rule.grace

    @property
    def brackets(self) -> list[Bracket]:
        return self._shared(self.most_brackets, lambda rungs: 1 / self._expected(rungs))


class MedianSchedule(Schedule):
    """Comparisons of the median stopping rule: after each epoch from `grace` on."""

    about = "a trial stops whose best so far is below the median of the others' means, at each epoch from `grace` on"
    each_epoch = True

    @property
    def brackets(self) -> list[Bracket]:
        return [Bracket(range(self.grace, self.epochs), 1.0)]

    @property
    def expected_epochs(self) -> float:
        """Mean epochs if half of the trials end at the first comparison.

        Later comparisons stop few: the means of others lag behind a trial's best.
        """
        return (min(self.grace, self.epochs) + self.epochs) / 2

    @property
    def expected_complete(self) -> float:
        return 0.5 if self.grace < self.epochs else 1.0

    @property
    def words(self) -> str:
        return f"median, after each epoch from {self.grace} on"


class NoStopping(Schedule):
    """Schedule of a search in which every trial runs in full."""

    about = "all trials run in full"

    @property
    def brackets(self) -> list[Bracket]:
        return [Bracket((), 1.0)]

    @property
    def words(self) -> str:
        return "none"


SCHEDULES: Mapping[StoppingName, type[Schedule]] = {
    "asha": AshaSchedule,
    "hyperband": HyperbandSchedule,
    "median": MedianSchedule,
    "none": NoStopping,
}
"""Schedules by the rule's name, as in `search.early_stopping.name`."""


def schedule(rule: EarlyStopping, epochs: int) -> Schedule:
    """Return when a rule compares trials of so many epochs."""
    return SCHEDULES[rule.name](rule, epochs)


def with_grace(rule: EarlyStopping, epochs: int) -> EarlyStopping:
    """Return a rule with its `grace` written out."""
    return rule if rule.name == "none" else rule.model_copy(update={"grace": schedule(rule, epochs).grace})


def tie_breaker(number: int) -> float:
    """Return a trial's place in [0, 1): a share s of trials in a row, or of every second or third, lies below s.

    Multiples of the golden ratio modulo 1 are spread most evenly of all such sequences, and need no generator.
    """
    return number * GOLDEN % 1.0


def bracket_of(number: int, among: Sequence[Bracket]) -> int:
    """Return the index of a trial's bracket: a function of its number alone, so that a resumed study agrees."""
    place = tie_breaker(number)
    for index, bracket in enumerate(among[:-1]):
        place -= bracket.share
        if place < 0:
            return index
    return len(among) - 1


def _epochs(rungs: Sequence[int]) -> str:
    if not rungs:
        return "no epoch"
    *front, last = map(str, rungs)
    return f"epochs {', '.join(front)} and {last}" if front else f"epoch {last}"
