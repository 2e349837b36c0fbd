"""Samplers and rules of early stopping by name: what each sampler can do, when each rule compares trials.

Each is a module of a package in `study.sweep`, named as study files name it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import ClassVar, TypeVar

from study.catalogue import module_names
from study.spec.schema import EarlyStopping

Base = TypeVar("Base")

PACKAGE = "study.sweep.samplers"


class Declaration:
    """The facts of a sampler that are known before a study begins; the other half of `study.sweep.samplers.Strategy`.

    Attributes:
        good_for: the searches to choose it for, for the guide.
        limits: what it does not do, for the guide.
        metrics: how many it can search at once; None: any number.
        independent: its draws do not depend on the trials before.
        guided: it looks at the values of trials.
        foreseeable: it was tried what more of its trials gain, see `study.ranking.remaining_gain`.
        every_key: each trial must have every key of the space.
        ranges_only: it searches no choices.
        every_cell: it tries each cell of a grid once.
        most_values: of a range with steps or of whole numbers; None: any number.
    """

    good_for: ClassVar[str]
    limits: ClassVar[str]
    metrics: ClassVar[int | None] = None
    independent: ClassVar[bool] = False
    guided: ClassVar[bool] = True
    foreseeable: ClassVar[bool] = False
    every_key: ClassVar[bool] = False
    ranges_only: ClassVar[bool] = False
    every_cell: ClassVar[bool] = False
    most_values: ClassVar[int | None] = None


def declaration(name: str) -> type[Declaration]:
    """The class of a sampler."""
    return found(PACKAGE, name, Declaration)


def declarations() -> dict[str, type[Declaration]]:
    """All samplers by name."""
    return {name: declaration(name) for name in module_names(PACKAGE)}


def found(package: str, name: str, base: type[Base]) -> type[Base]:
    """The class of a kind that the module of this name in a package defines.

    The module is imported here and not above: what it defines is made of a study's specification.
    """
    module = import_module(f"{package}.{name}")
    own = (one for one in vars(module).values() if isinstance(one, type) and one.__module__ == module.__name__)
    (of_kind,) = (one for one in own if issubclass(one, base))
    return of_kind


# When a rule of early stopping compares trials, and what that should save.


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


class Schedule:
    """The facts of a rule that a study file alone tells; the other half of `study.sweep.early_stopping.EarlyStopping`.

    By itself it has one bracket, in whose rungs one in `reduction` goes on.

    Attributes:
        about: which trials stop, for the guide.
        has_brackets: it can have several, as `brackets` says.
        each_epoch: it compares trials after each epoch from `grace` on.
    """

    about: ClassVar[str]
    has_brackets: ClassVar[bool] = False
    each_epoch: ClassVar[bool] = False

    @classmethod
    def grace(cls, rule: EarlyStopping, epochs: int) -> int:
        """The first epoch behind which it may stop a trial."""
        return max(1, round(epochs / 2)) if rule.grace is None else rule.grace

    @classmethod
    def brackets(cls, rule: EarlyStopping, epochs: int) -> list[Bracket]:
        """Its brackets for trials of so many epochs; their shares add up to 1."""
        return cls.shared(rule, epochs, rule.brackets, lambda rungs: 1.0)

    @classmethod
    def shared(
        cls, rule: EarlyStopping, epochs: int, count: int, weight: Callable[[Sequence[int]], float]
    ) -> list[Bracket]:
        """So many brackets, each of which begins a rung later than the one before and gets trials by its weight."""
        rungs = tuple(rung for rung in ladder(rule, cls.grace(rule, epochs), epochs) if rung < epochs)
        ladders = [rungs[first:] for first in range(count)]
        weights = [weight(one) for one in ladders]
        return [Bracket(one, each / sum(weights)) for one, each in zip(ladders, weights, strict=True)]

    @classmethod
    def most_brackets(cls, rule: EarlyStopping, epochs: int) -> int:
        """Return how many brackets fit: each begins at the last epoch of a trial or before."""
        return len(ladder(rule, cls.grace(rule, epochs), epochs))

    @classmethod
    def expected_epochs(cls, rule: EarlyStopping, epochs: int) -> float:
        """Mean epochs of a searched trial if each rung lets as many go on as it means to."""
        return sum(one.share * expected(one.rungs, rule, epochs) for one in cls.brackets(rule, epochs))

    @classmethod
    def expected_complete(cls, rule: EarlyStopping, epochs: int) -> float:
        """The share of searched trials that run to their end, if each rung lets as many go on as it means to."""
        return sum(one.share / rule.reduction ** len(one.rungs) for one in cls.brackets(rule, epochs))

    @classmethod
    def words(cls, rule: EarlyStopping, epochs: int) -> str:
        """The rule in a line, for plan and report."""
        among = cls.brackets(rule, epochs)
        if not any(bracket.rungs for bracket in among):
            return f"{rule.name}, no rungs before the last epoch"
        if len(among) == 1:
            return f"{rule.name}, rungs at {_epochs(among[0].rungs)}, one in {rule.reduction} goes on"
        ladders = "; ".join(f"{_epochs(bracket.rungs)} ({100 * bracket.share:.0f}% of trials)" for bracket in among)
        return f"{rule.name}, brackets with rungs at {ladders}; one in {rule.reduction} goes on"


def schedule(rule: EarlyStopping) -> type[Schedule]:
    """The class of a rule, which is a module of `study.sweep.early_stopping`."""
    return found("study.sweep.early_stopping", rule.name, Schedule)


def with_grace(rule: EarlyStopping, epochs: int) -> EarlyStopping:
    """The same rule, its `grace` written out."""
    return rule if rule.name == "none" else rule.model_copy(update={"grace": schedule(rule).grace(rule, epochs)})


def turn(number: int) -> float:
    """A trial's place in [0, 1): of trials in a row, also of every second or third, about a share s lies below s.

    Multiples of the golden ratio modulo 1 are spread most evenly of all such sequences, and need no generator.
    """
    return number * GOLDEN % 1.0


def bracket_of(number: int, among: list[Bracket]) -> int:
    """Index of the bracket that a trial is in: a function of its number alone, so that a resumed study agrees."""
    place = turn(number)
    for index, bracket in enumerate(among[:-1]):
        place -= bracket.share
        if place < 0:
            return index
    return len(among) - 1


def ladder(rule: EarlyStopping, first: int, epochs: int) -> list[int]:
    """The first epoch and its multiples by powers of `reduction`, up to the last epoch."""
    rungs, rung = [], first
    while rung <= epochs:
        rungs.append(rung)
        rung *= rule.reduction
    return rungs


def expected(rungs: Sequence[int], rule: EarlyStopping, epochs: int) -> float:
    """Mean epochs of a trial of a ladder if each rung lets one in `reduction` go on."""
    total, share, done = 0.0, 1.0, 0
    for rung in (*rungs, epochs):
        total += share * (rung - done)
        share, done = share / rule.reduction, rung
    return total


def _epochs(rungs: Sequence[int]) -> str:
    if not rungs:
        return "no epoch"
    *front, last = map(str, rungs)
    return f"epochs {', '.join(front)} and {last}" if front else f"epoch {last}"
