"""When early stopping compares trials: the arithmetic of a study file's rule, the same for rule, plan and figures."""

from collections.abc import Sequence
from dataclasses import dataclass

from study.spec.schema import EarlyStopping

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


def grace(rule: EarlyStopping, epochs: int) -> int:
    """The first epoch behind which a rule may stop a trial, see `EarlyStopping`."""
    if rule.grace is not None:
        return rule.grace
    return 1 if rule.name == "hyperband" else max(1, round(epochs / 2))


def with_grace(rule: EarlyStopping, epochs: int) -> EarlyStopping:
    """The same rule, its `grace` written out."""
    return rule if rule.name == "none" else rule.model_copy(update={"grace": grace(rule, epochs)})


def brackets(rule: EarlyStopping, epochs: int) -> list[Bracket]:
    """The brackets of a rule for trials of so many epochs; their shares add up to 1.

    `hyperband` has as many as Li et al. (2018, JMLR 18, Algorithm 1) and Optuna's HyperbandPruner: 1 +
    floor(log_reduction(epochs/grace)). As there, each gets the same budget. There a trial begins anew at
    each rung; here it goes on, so a bracket's share is inverse to the epochs that one of its trials is expected to run.
    """
    if rule.name == "none":
        return [Bracket((), 1.0)]
    if rule.name == "median":
        return [Bracket(range(grace(rule, epochs), epochs), 1.0)]
    rungs = tuple(rung for rung in _ladder(rule, epochs) if rung < epochs)
    ladders = [
        rungs[first:] for first in range(most_brackets(rule, epochs) if rule.name == "hyperband" else rule.brackets)
    ]
    weights = [1.0 if rule.name != "hyperband" else 1 / _expected(ladder, rule, epochs) for ladder in ladders]
    return [Bracket(ladder, weight / sum(weights)) for ladder, weight in zip(ladders, weights, strict=True)]


def most_brackets(rule: EarlyStopping, epochs: int) -> int:
    """Return how many brackets fit: each begins at the last epoch of a trial or before."""
    return len(_ladder(rule, epochs))


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


def expected_epochs(rule: EarlyStopping, epochs: int) -> float:
    """Mean epochs of a searched trial if each rung lets one in `reduction` go on, or median ends half of them.

    The median rule compares a trial's best with means over the epochs before, so that few of those that passed once are
    stopped later.
    """
    if rule.name == "median":
        return (min(grace(rule, epochs), epochs) + epochs) / 2
    return sum(bracket.share * _expected(bracket.rungs, rule, epochs) for bracket in brackets(rule, epochs))


def expected_complete(rule: EarlyStopping, epochs: int) -> float:
    """The share of searched trials that run to their end, if each rung lets as many go on as it means to."""
    if rule.name == "median" and grace(rule, epochs) < epochs:
        return 0.5
    return sum(bracket.share / rule.reduction ** len(bracket.rungs) for bracket in brackets(rule, epochs))


def words(rule: EarlyStopping, epochs: int) -> str:
    """The rule in a line, for plan and report."""
    if rule.name == "none":
        return "none"
    if rule.name == "median":
        return f"median, after each epoch from {grace(rule, epochs)} on"
    among = brackets(rule, epochs)
    if not any(bracket.rungs for bracket in among):
        return f"{rule.name}, no rungs before the last epoch"
    if len(among) == 1:
        return f"{rule.name}, rungs at {_epochs(among[0].rungs)}, one in {rule.reduction} goes on"
    ladders = "; ".join(f"{_epochs(bracket.rungs)} ({100 * bracket.share:.0f}% of trials)" for bracket in among)
    return f"{rule.name}, brackets with rungs at {ladders}; one in {rule.reduction} goes on"


def _ladder(rule: EarlyStopping, epochs: int) -> list[int]:
    rungs, rung = [], grace(rule, epochs)
    while rung <= epochs:
        rungs.append(rung)
        rung *= rule.reduction
    return rungs


def _expected(rungs: Sequence[int], rule: EarlyStopping, epochs: int) -> float:
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
