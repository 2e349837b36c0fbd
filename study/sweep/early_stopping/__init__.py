"""The rules of early stopping, one per module, which is named as study files name it.

A rule is fed from the ledger, so that a resumed study decides as an uninterrupted one: it hears every report of every
searched trial in the ledger's order, and draws nothing at random.
"""

import math
from abc import ABC, abstractmethod
from bisect import insort
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from study.catalogue import class_in
from study.spec import StudySpec
from study.spec.objective import Objective, Score
from study.spec.rungs import schedule
from study.spec.schema import EarlyStopping as Rule


class EarlyStopping(ABC):
    """Rule that decides of each searched trial whether it goes on; of several seeds it hears the first.

    A rule is one module with one such class, and a class in `study.spec.rungs`, which says when it compares trials and
    what it should save. This one, as `study/sweep/early_stopping/floor.py`, is the module for `early_stopping: floor`:

        from study.spec.objective import Score
        from study.sweep.early_stopping import EarlyStopping


        class Floor(EarlyStopping):
            \"\"\"Ends what is worth less than nothing at a rung.\"\"\"

            def should_prune(self, trial: int, epoch: int, score: Score) -> bool:
                return epoch in self.schedule.brackets[0].rungs and score.gains[0] < 0

    Args:
        rule: its section of the study file.
        epochs: number of a full run.
        objective: what the scores measure.
    """

    def __init__(self, rule: Rule, epochs: int, objective: Objective) -> None:
        self.rule, self.epochs, self.objective = rule, epochs, objective
        self.name: str = rule.name
        self.schedule = schedule(rule, epochs)

    @abstractmethod
    def should_prune(self, trial: int, epoch: int, score: Score) -> bool:
        """Return whether a trial ends after this epoch; never called for the last epoch of a full run.

        An epoch of a trial that was heard before changes nothing, and False is returned.
        """


def early_stopping(spec: StudySpec) -> EarlyStopping:
    """Return the rule that a study asks for."""
    rule = spec.search.early_stopping
    kind = class_in(__name__, rule.name, EarlyStopping)  # type: ignore[type-abstract]
    return kind(rule, spec.epochs, spec.objective)


class RungScore(NamedTuple):
    """The values of a trial at a rung.

    Attributes:
        gains: one per metric, larger is better.
        violation: by how much constraints are missed, 0 where they are kept.
        tie_break: in [0, 1), decides between trials that are equal in all else.
    """

    gains: tuple[float, ...]
    violation: float
    tie_break: float


class Peers(Protocol):
    """The trials of one rung, which say whether another one is among their best 1/`reduction`."""

    def admit(self, standing: RungScore) -> bool:
        """Return whether a trial that is not in the rung is good enough to go on; True where the rung is empty."""

    def add(self, standing: RungScore) -> None:
        """Add a trial."""


class ByValue:
    """Peers ordered by one metric, as Ray Tune's ASHA compares them.

    The cut is their percentile 100 (1 - 1/reduction), interpolated linearly; a trial that equals it goes on. Costs
    O(log n) comparisons.
    """

    def __init__(self, reduction: int) -> None:
        self._place = (1 - 1 / reduction) * 100 / 100  # by way of percent, for the same bits as Ray's
        self._gains: list[float] = []  # ascending

    def admit(self, standing: RungScore) -> bool:
        return not self._gains or standing.gains[0] >= self._cut()

    def add(self, standing: RungScore) -> None:
        insort(self._gains, standing.gains[0])

    def _cut(self) -> float:
        place = (len(self._gains) - 1) * self._place
        low, high, part = self._gains[math.floor(place)], self._gains[math.ceil(place)], place % 1.0
        # equal but for rounding; NumPy's percentile, and so Ray, goes from the nearer end
        return low + (high - low) * part if part < 0.5 else high - (high - low) * (1 - part)


class ByDominance:
    """Peers in the order of constrained domination (`study.spec.objective`), for several metrics or constraints.

    A peer is ahead of a trial if fewer others dominate it (the rank of Fonseca and Fleming 1993) or, at equal rank, if
    it lies in an emptier part of objective space (crowding distance, Deb et al. 2002, among those of equal rank; none
    is ahead of an end). Trials that miss limits by the same amount are ordered by their metrics; of twins, equal in
    everything, the one with the smaller `tie_break` counts as dominating the other. A trial with `ahead` of n peers
    ahead of it goes on if `ahead` - 1/2 is at most (n - 1)/reduction, ASHA's cut in places from the best. For one
    metric this is the rule of `ByValue`, except that `ByValue` interpolates by value between the two peers at the cut,
    and this takes the middle.

    Why so:

    - A trial never stands behind one that it dominates.
    - Where no trial dominates another, still only one in `reduction` goes on, and those do that cover the front best.
      MO-ASHA (Schmucker et al. 2021, arXiv 2106.12639) sorts into fronts and picks from the last by an epsilon-net,
      for the same purpose, and is worth as much per epoch (`tests/benchmarks/pareto_stopping.py`). But a rank is
      updated with one comparison per peer, whereas fronts and nets are computed anew at each report.
    - Twins do not fill a rung. Networks that collapsed to one class have no fairness gap, so that nothing dominates
      them: the first goes on, the next counts as dominated by it.
    - Constraints order trials and stop none by themselves: a trial that misses a limit at a rung may keep it at the
      end, and goes on if it misses it by less than most; where many keep it, those that do not are behind, as in the
      final choice. With the violation as one more metric instead, the same benchmark gains where gaps fall below a wide
      limit in time, but loses several times as much where the limit is narrow: rungs fill with trials that are accurate
      and far from the limit.

    A report costs O(n) in NumPy and a sort of the peers of equal rank.
    """

    def __init__(self, reduction: int, metrics: int) -> None:
        self._reduction = reduction
        self._count = 0
        self._gains, self._violation = np.empty((metrics, 64)), np.empty(64)
        self._tie_break, self._rank = np.empty(64), np.empty(64, dtype=np.int64)

    def admit(self, standing: RungScore) -> bool:
        return self._ahead(standing) - 0.5 <= (self._count - 1) / self._reduction

    def add(self, standing: RungScore) -> None:
        better, worse = self._better_and_worse(standing)
        if self._count == len(self._tie_break):
            self._grow()
        at, self._count = self._count, self._count + 1
        self._rank[:at][worse] += 1
        self._gains[:, at], self._violation[at], self._tie_break[at] = (
            standing.gains,
            standing.violation,
            standing.tie_break,
        )
        self._rank[at] = better.sum()

    def _ahead(self, standing: RungScore) -> int:
        better, worse = self._better_and_worse(standing)
        ranks, rank = self._rank[: self._count] + worse, better.sum()
        rivals = self._gains[:, : self._count][:, ranks == rank]
        crowding = crowding_distance(np.column_stack([rivals, standing.gains]))
        return int((ranks < rank).sum() + (crowding > crowding[-1]).sum())

    def _better_and_worse(self, standing: RungScore) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Return which peers dominate a trial, and which it dominates."""
        gains, violation, tie_break = (
            self._gains[:, : self._count],
            self._violation[: self._count],
            self._tie_break[: self._count],
        )
        own, alike = np.array(standing.gains)[:, None], violation == standing.violation
        no_worse, no_better = (gains >= own).all(0), (gains <= own).all(0)
        better = (violation < standing.violation) | (alike & no_worse & (~no_better | (tie_break < standing.tie_break)))
        worse = (violation > standing.violation) | (alike & no_better & (~no_worse | (tie_break > standing.tie_break)))
        return better, worse

    def _grow(self) -> None:
        self._gains, self._violation, self._tie_break, self._rank = (
            np.concatenate([column, np.empty_like(column)], axis=-1)
            for column in (self._gains, self._violation, self._tie_break, self._rank)
        )


def crowding_distance(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return how far apart a point's neighbours are in each coordinate, in units of its range, summed.

    Args:
        points: (coordinates, points).

    Returns:
        (points,); infinite at the ends of a coordinate.
    """
    total = np.zeros(points.shape[1])
    for values in points:
        order = np.argsort(values, kind="stable")
        steps = np.concatenate([[np.inf], np.diff(values[order]), [np.inf]])
        total[order] += (steps[:-1] + steps[1:]) / (np.ptp(values) or 1.0)
    return total


def new_peers(objective: Objective, reduction: int) -> Peers:
    """Return a rung without trials."""
    if len(objective.metrics) == 1 and not objective.constraints:
        return ByValue(reduction)
    return ByDominance(reduction, len(objective.metrics))
