"""The objective of a study: one metric or several, limits that others must keep, and at which epoch.

Values of several metrics are ordered by constrained domination (Deb et al. 2002, NSGA-II, section VI): one that keeps
the limits is better than one that does not; of two that do not, the one that misses them by less; of two that do,
the one that is no worse in any metric and better in one.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import numpy as np

CONSTRAINT = re.compile(r"\s*([\w/]+)\s*(<=|>=)\s*([-+.\deE]+)\s*")


@dataclass(frozen=True)
class Constraint:
    """A limit of one metric, written as `val/equalized_odds <= 0.05`."""

    metric: str
    sense: Literal["<=", ">="]
    limit: float

    @classmethod
    def parse(cls, text: str) -> "Constraint":
        """Read a constraint.

        Raises:
            ValueError: not of that form.
        """
        match = CONSTRAINT.fullmatch(text)
        try:
            if match:
                return cls(match[1], "<=" if match[2] == "<=" else ">=", float(match[3]))
        except ValueError:
            pass
        raise ValueError("allowed is METRIC <= NUMBER or METRIC >= NUMBER")

    def excess(self, value: float) -> float:
        """By how much a value misses the limit; below 0 how much room it leaves."""
        return value - self.limit if self.sense == "<=" else self.limit - value


@dataclass(frozen=True)
class Score:
    """The value of a trial at one epoch.

    Attributes:
        values: one per metric, in the metric's own direction.
        gains: the same, turned so that larger is better.
        excesses: by how much each constraint is missed, below 0 how much room is left.
    """

    values: tuple[float, ...]
    gains: tuple[float, ...]
    excesses: tuple[float, ...] = ()

    @cached_property
    def violation(self) -> float:
        """The sum over constraints of how much is missed, 0 where all are kept."""
        return sum((max(0.0, excess) for excess in self.excesses), 0.0)

    @property
    def single(self) -> bool:
        """Return whether there is one metric."""
        return len(self.gains) == 1

    def dominates(self, other: "Score") -> bool:
        """Return whether this is better, by constrained domination."""
        if self.violation > 0 or other.violation > 0:
            return self.violation < other.violation
        return self.gains != other.gains and all(a >= b for a, b in zip(self.gains, other.gains, strict=True))


@dataclass(frozen=True)
class Objective:
    """Metrics with their directions, constraints, and how a trial's epoch is chosen.

    Attributes:
        window: None: a trial is taken at its last epoch; a number: at its best by this objective, where each epoch
            counts as the mean of so many epochs up to it (`study.ranking.epochs`).
    """

    metrics: tuple[str, ...]
    modes: tuple[Literal["max", "min"], ...]
    constraints: tuple[Constraint, ...] = ()
    window: int | None = None

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> "Objective":
        """From plain values, as `dataclasses.asdict` gives them."""
        constraints = tuple(Constraint(**limit) for limit in document["constraints"])
        return cls(tuple(document["metrics"]), tuple(document["modes"]), constraints, document["window"])

    @cached_property
    def needed(self) -> list[str]:
        """Every metric that a score needs."""
        return list(dict.fromkeys([*self.metrics, *(constraint.metric for constraint in self.constraints)]))

    def score(self, report: Mapping[str, float | None]) -> Score | None:
        """The score of an epoch's metrics; None where one that it needs is missing or not a number."""
        needed = {name: value for name in self.needed if (value := report.get(name)) is not None}
        if len(needed) < len(self.needed):
            return None
        values = tuple(needed[name] for name in self.metrics)
        gains = tuple(value if mode == "max" else -value for value, mode in zip(values, self.modes, strict=True))
        return Score(values, gains, tuple(limit.excess(needed[limit.metric]) for limit in self.constraints))


def order(scores: Sequence[Score]) -> list[int]:
    """Positions of scores, the best first: front by front of constrained domination, in a front by the first metric.

    Ties keep their order.
    """
    fronts = _fronts(scores)
    return sorted(range(len(scores)), key=lambda place: (fronts[place], -scores[place].gains[0]))


def front(scores: Sequence[Score]) -> list[int]:
    """Positions of the scores that no other dominates."""
    if not scores:
        return []
    fronts = _fronts(scores)
    least = min(fronts)
    first = [place for place, rank in enumerate(fronts) if rank == least]
    if scores[0].single and scores[first[0]].violation == 0:
        most = max(scores[place].gains for place in first)
        return [place for place in first if scores[place].gains == most]
    return first


def _fronts(scores: Sequence[Score]) -> Sequence[float]:
    """The front of each score, 0 the best; those that miss a constraint come last, by how much they miss it."""
    if not scores or scores[0].single:  # with one metric the front follows from the constraints alone
        return [score.violation for score in scores]
    import numpy as np

    gains = np.array([score.gains for score in scores])
    violation = np.array([score.violation for score in scores])
    ranks = np.where(violation > 0, len(scores) + violation, -1.0)
    kept = np.flatnonzero(ranks < 0)
    dominates = _dominates(gains[kept])
    above = dominates.sum(0)  # how many of those left dominate each
    front, left = 0, np.ones(len(kept), dtype=bool)
    while left.any():
        first = left & (above == 0)
        ranks[kept[first]] = front
        above -= dominates[first].sum(0)
        left &= ~first
        front += 1
    return list(ranks)


def _dominates(gains: "np.ndarray") -> "np.ndarray":
    """(N, N): whether one row of gains (N, metrics) dominates the other."""
    import numpy as np

    no_worse, better = np.ones((len(gains),) * 2, dtype=bool), np.zeros((len(gains),) * 2, dtype=bool)
    for gain in gains.T:
        no_worse &= gain[:, None] >= gain[None]
        better |= gain[:, None] > gain[None]
    return no_worse & better
