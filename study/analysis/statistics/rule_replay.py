"""What early stopping saved, and how often it would have thrown away the best: the search replayed in other orders.

ASHA compares a trial with those that reached a rung before it, so that its decisions depend on the order in which
trials begin. The order of a search is partly luck. In a replay the search's trials begin in another order, one after
the other, and each goes as far as the rule lets it, by the values that it reported. A trial that was pruned has no
values beyond that: where a replay lets it go on, it is compared with nobody further.
"""

import math
import random
from bisect import insort
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from study.analysis.statistics import formatting
from study.analysis.statistics.rung_values import rung_epochs, value_at
from study.analysis.statistics.spent import spent
from study.home.record import StudyRecord, TrialRecord
from study.ranking import best
from study.spec import StudySpec

ORDERS, STEPS = 500, 100_000
"""Orders that are replayed, fewer where trials times orders would be more than so many steps."""

Values = Mapping[int, float]
"""What a trial was worth at each rung that it reached, larger is better."""


@dataclass(frozen=True)
class Replay:
    """How often the best would have been pruned.

    Attributes:
        orders: that were replayed.
        own: share of them in which it was, with its own curve.
        fresh: the same with the curves of its repeats on fresh seeds in its place; None: there are none.
        repeats: how many of these there are.
        lost: of the trials whose value at the end is known, by how much the best that it kept was worse than the best,
            on average over the orders in which it kept one of them; None: it never did.
    """

    orders: int
    own: float
    fresh: float | None
    repeats: int
    lost: float | None


def replay(spec: StudySpec, record: StudyRecord) -> Replay | None:
    """Replay a search; None where it has no best, nothing was pruned, the study has several metrics or constraints, or
    another rule than ASHA with one bracket. The best may be the baseline, which no rule prunes: None, too."""
    goal, chosen, rungs = spec.objective, best(record, spec), rung_epochs(spec)
    if chosen is None or chosen.trial.stage != "search" or not rungs or len(goal.metrics) > 1 or goal.constraints:
        return None
    trials = [trial for trial in record.by_stage("search") if trial.epochs]
    if not any(trial.state == "pruned" for trial in trials):
        return None
    curves = [_values(spec, trial, rungs) for trial in trials]
    place = trials.index(chosen.trial)
    repeats = [_values(spec, trial, rungs) for trial in chosen.repeats]
    orders = max(20, min(ORDERS, STEPS // len(trials)))
    reduction = spec.search.early_stopping.reduction
    pruned = [_pruned(curves, place, [curves[place], *repeats], rungs, reduction, seed) for seed in range(orders)]
    fresh = [sum(one[1:]) / len(repeats) for one in pruned] if repeats else None
    own = sum(one[0] for one in pruned) / orders
    whole = {place: _values(spec, trial, [spec.epochs]) for place, trial in enumerate(trials)}
    ends = {place: values[spec.epochs] for place, values in whole.items() if values}
    kept = [_kept(curves, ends, rungs, reduction, seed) for seed in range(orders)]
    lost = [max(ends.values()) - max(values) for values in kept if values]
    return Replay(orders, own, sum(fresh) / orders if fresh else None, len(repeats), fmean(lost) if lost else None)


def sentence(spec: StudySpec, record: StudyRecord) -> str | None:
    """What the rule saved and risked; None where no trial was pruned."""
    cost = spent(spec, record)
    whole, stopped = cost["all"], cost["pruned"].trials
    if not stopped or not whole.full_epochs:
        return None
    saved = 1 - whole.epochs / whole.full_epochs
    words = (
        f"{spec.search.early_stopping.name} pruned {formatting.count(stopped, 'trial')} and saved {100 * saved:.0f}% "
        f"of the search's epochs, about {formatting.duration(whole.full_seconds - whole.seconds)} of trial time"
    )
    found = replay(spec, record)
    if found is None:
        return f"{words}."
    again = (
        f" with its own curve, {_share(found.fresh)} with those of its fresh seeds" if found.fresh is not None else ""
    )
    words = (
        f"{words}. Replayed with its trials in {found.orders} other orders, it would have thrown away the best in "
        f"{_share(found.own)} of them{again}."
    )
    if found.lost is None:
        return words
    behind = formatting.change(spec.metric, found.lost, signed=False)
    return f"{words} Of the trials whose end is known, the best that it kept was on average {behind} behind the best."


def _share(share: float) -> str:
    return "none" if share == 0 else "less than 1%" if share < 0.01 else f"{100 * share:.0f}%"


def _values(spec: StudySpec, trial: TrialRecord, rungs: Sequence[int]) -> Values:
    sign = 1.0 if spec.mode == "max" else -1.0
    found = {rung: value_at(trial, spec, rung) for rung in rungs}
    return {rung: sign * value for rung, value in found.items() if value is not None}


def _kept(
    curves: Sequence[Values], ends: Mapping[int, float], rungs: Sequence[int], reduction: int, seed: int
) -> list[float]:
    """The last values, where they are known, of the trials that go on at all rungs in the order of this number."""
    order, peers = list(range(len(curves))), {rung: list[float]() for rung in rungs}
    random.Random(seed).shuffle(order)
    on = [place for place in order if _passes(peers, curves[place], rungs, reduction, joins=True)]
    return [ends[place] for place in on if place in ends]


def _pruned(
    curves: Sequence[Values], best: int, ways: Sequence[Values], rungs: Sequence[int], reduction: int, seed: int
) -> list[bool]:
    """Whether each of these curves of the best is pruned in the order of this number; only its own is a peer."""
    order, peers = list(range(len(curves))), {rung: list[float]() for rung in rungs}
    random.Random(seed).shuffle(order)
    for place in order:
        if place == best:
            return [not _passes(peers, way, rungs, reduction, joins=False) for way in ways]
        _passes(peers, curves[place], rungs, reduction, joins=True)
    raise AssertionError("the best is among the trials")


def _passes(
    peers: Mapping[int, list[float]], values: Values, rungs: Sequence[int], reduction: int, joins: bool
) -> bool:
    """Whether a trial goes on at all its rungs; `joins`: it is a peer of later ones."""
    for rung in rungs:
        if rung not in values:
            return True
        goes_on = not peers[rung] or values[rung] >= _cut(peers[rung], reduction)
        if joins:
            insort(peers[rung], values[rung])
        if not goes_on:
            return False
    return True


def _cut(ordered: Sequence[float], reduction: int) -> float:
    """The percentile 100 (1 - 1/reduction), interpolated linearly, as `study.sweep.rung_peers` has it."""
    place = (len(ordered) - 1) * (1 - 1 / reduction)
    low, high, part = ordered[math.floor(place)], ordered[math.ceil(place)], place % 1.0
    return low + (high - low) * part if part < 0.5 else high - (high - low) * (1 - part)
