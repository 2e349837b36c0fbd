"""The objective of a study: metrics, limits on others, the epoch that counts, and what is chosen of a front.

Values of several metrics are ordered by constrained domination (Deb et al. 2002, NSGA-II, section VI): one that keeps
the limits is better than one that does not; of two that do not, the one that misses them by less; of two that do,
the one that is no worse in any metric and better in one.

Values that agree in `DIGITS` digits are equal: means over seeds differ in the last bits by the order of their sums,
which must not decide who leads, leaves a front or breaks a limit.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

CONSTRAINT = re.compile(r"\s*([\w/]+)\s*(<=|>=)\s*([-+.\deE]+)\s*")

DIGITS = 12


def rounded(value: float) -> float:
    """Round a value to `DIGITS` significant digits, which drops the noise of its computation."""
    return float(f"{value:.{DIGITS}g}")


@dataclass(frozen=True)
class Constraint:
    """Limit on one metric, written as `val/equalized_odds <= 0.05`."""

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
        """Return by how much a value misses the limit; below 0, how much room it leaves."""
        return rounded(value) - self.limit if self.sense == "<=" else self.limit - rounded(value)

    def __str__(self) -> str:
        return f"{self.metric} {self.sense} {self.limit:g}"


@dataclass(frozen=True)
class Score:
    """Value of a trial at one epoch.

    Attributes:
        values: one per metric, in the metric's own direction.
        gains: the values, `rounded` and turned so that larger is better.
        excesses: by how much each constraint is missed, below 0 how much room is left.
    """

    values: tuple[float, ...]
    gains: tuple[float, ...]
    excesses: tuple[float, ...] = ()

    @cached_property
    def violation(self) -> float:
        """Sum over constraints of how much is missed, 0 where all are kept."""
        return sum((max(0.0, excess) for excess in self.excesses), 0.0)

    @property
    def single(self) -> bool:
        """Whether there is one metric."""
        return len(self.gains) == 1

    def dominates(self, other: "Score") -> bool:
        """Return whether this is better, by constrained domination."""
        if self.violation > 0 or other.violation > 0:
            return self.violation < other.violation
        return self.gains != other.gains and all(a >= b for a, b in zip(self.gains, other.gains, strict=True))


@dataclass(frozen=True)
class FrontRule:
    """Rule by which one configuration of a front is chosen (`search.choose`).

    Attributes:
        name: `first`: the best in the first metric. `limit`: the best in the first metric among those that keep
            `limits`; where none does, the one that misses them by the least. `knee`: the nearest to the point that has
            the best value of every metric (compromise programming: Zeleny 1973), each metric on a scale from the worst
            to the best value of the configurations that are compared. Ties go to the better one in the first metric,
            then to the earlier.
        limits: on metrics of the study.
    """

    name: Literal["first", "knee", "limit"] = "first"
    limits: tuple[Constraint, ...] = ()


@dataclass(frozen=True)
class Objective:
    """Metrics with their directions, constraints, and how a trial's epoch and one of a front are chosen.

    Attributes:
        window: None: a trial is taken at its last epoch; a number: at its best by this objective, where each epoch
            counts as the mean of so many epochs up to it (`study.ranking.epochs`).
    """

    metrics: tuple[str, ...]
    modes: tuple[Literal["max", "min"], ...]
    constraints: tuple[Constraint, ...] = ()
    window: int | None = None
    choose: FrontRule = FrontRule()

    @property
    def several(self) -> bool:
        """Whether there are several metrics; then no configuration need be the best in all."""
        return len(self.metrics) > 1

    @cached_property
    def needed(self) -> list[str]:
        """Every metric that a score needs."""
        return list(dict.fromkeys([*self.metrics, *(constraint.metric for constraint in self.constraints)]))

    def score(self, report: Mapping[str, float | None]) -> Score | None:
        """Return the score of an epoch's metrics; None where one that it needs is missing or not a number."""
        needed = {name: value for name in self.needed if (value := report.get(name)) is not None}
        if len(needed) < len(self.needed):
            return None
        values = tuple(needed[name] for name in self.metrics)
        turned = (value if mode == "max" else -value for value, mode in zip(values, self.modes, strict=True))
        gains = tuple(map(rounded, turned))
        return Score(values, gains, tuple(limit.excess(needed[limit.metric]) for limit in self.constraints))

    def order(self, scores: Sequence[Score]) -> list[int]:
        """Return positions of scores, the best first: by fronts of constrained domination, in a front by `choose`.

        Ties keep their order.
        """
        fronts, worth = _fronts(scores), self._worth(scores)
        return sorted(range(len(scores)), key=lambda place: (fronts[place], worth[place], -scores[place].gains[0]))

    def _worth(self, scores: Sequence[Score]) -> Sequence[float]:
        """Return for each score what `choose` looks at before the first metric; less is better."""
        if not self.several or self.choose.name == "first":
            return [0.0] * len(scores)
        return _distances(scores) if self.choose.name == "knee" else [self.missed(score) for score in scores]

    def missed(self, score: Score) -> float:
        """Return by how much a score misses the limits of `choose`; 0 where it keeps all."""
        values = dict(zip(self.metrics, score.values, strict=True))
        return sum(max(0.0, limit.excess(values[limit.metric])) for limit in self.choose.limits)

    @property
    def rule(self) -> str:
        """Rule of `choose` in words, to stand behind the configuration of a front that it chose."""
        first, name = f"the best {self.metrics[0]}", self.choose.name
        limits = " and ".join(map(str, self.choose.limits or self.constraints))
        words = {"first": first, "limit": f"{first} where {limits}", "knee": "the nearest to the best of every metric"}
        return f"{words[name]} (search.choose: {name})"


def _distances(scores: Sequence[Score]) -> Sequence[float]:
    """Return each score's distance to the best value of every metric, each scaled from its worst to its best."""
    if not scores:
        return []
    by_metric = list(zip(*(score.gains for score in scores), strict=True))
    best, worst = [max(gains) for gains in by_metric], [min(gains) for gains in by_metric]
    widths = [most - least or 1.0 for most, least in zip(best, worst, strict=True)]
    away = (
        [(most - gain) / width for most, gain, width in zip(best, score.gains, widths, strict=True)] for score in scores
    )
    return [rounded(math.hypot(*each)) for each in away]


def spread_out(scores: Sequence[Score], count: int) -> list[int]:
    """Return positions of so many scores that lie far apart, the first among them.

    Each next one has the largest distance to those taken (farthest-first traversal: Gonzalez 1985), on each metric's
    scale from the worst to the best of all.
    """
    import numpy as np

    gains = np.array([score.gains for score in scores])
    scaled = gains / np.where(np.ptp(gains, axis=0) > 0, np.ptp(gains, axis=0), 1.0)
    taken, away = [0], np.linalg.norm(scaled - scaled[0], axis=1)
    while len(taken) < min(count, len(scores)):
        taken.append(int(away.argmax()))
        away = np.minimum(away, np.linalg.norm(scaled - scaled[taken[-1]], axis=1))
        away[taken] = -1.0
    return taken


def front(scores: Sequence[Score]) -> list[int]:
    """Return positions of the scores that no other dominates."""
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
    """Return the front of each score, 0 the best; those that miss a constraint come last, by how much they do."""
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


def _dominates(gains: "NDArray[np.float64]") -> "NDArray[np.bool_]":
    """Return as (N, N) whether one row of gains (N, metrics) dominates the other."""
    import numpy as np

    no_worse, better = np.ones((len(gains),) * 2, dtype=bool), np.zeros((len(gains),) * 2, dtype=bool)
    for gain in gains.T:
        no_worse &= gain[:, None] >= gain[None]
        better |= gain[:, None] > gain[None]
    return no_worse & better
