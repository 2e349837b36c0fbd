"""The objective of a study: metrics, constraints on others, and the epoch that counts.

Values of several metrics are ordered by constrained domination (Deb et al. 2002, NSGA-II, section VI): one that keeps
the constraints is better than one that does not; of two that do not, the one that breaks them by less; of two that do,
the one that is no worse in any metric and better in one.

Values that agree in `SIGNIFICANT_DIGITS` digits are equal: means over seeds differ in the last bits by the order of
their sums, which must not decide who leads, leaves a front or breaks a constraint.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from study.spec.constraints import MetricConstraint, round_to_significant_digits


@dataclass(frozen=True)
class TrialScore:
    """Value of a trial at one epoch.

    Attributes:
        values: one per metric, in the metric's own direction.
        values_to_maximise: the values, rounded (`round_to_significant_digits`) and turned so that larger is better.
        constraint_violations: by how much each constraint is missed, below 0 how much room is left.
    """

    values: tuple[float, ...]
    values_to_maximise: tuple[float, ...]
    constraint_violations: tuple[float, ...] = ()

    @cached_property
    def total_violation(self) -> float:
        """Sum over constraints of how much is missed, 0 where all are kept."""
        return sum((max(0.0, excess) for excess in self.constraint_violations), 0.0)

    @property
    def first_metric_sort_key(self) -> tuple[float, float]:
        """Key to sort by the constraints, then by the first metric; the best has the smallest."""
        return self.total_violation, -self.values_to_maximise[0]

    @property
    def has_single_metric(self) -> bool:
        """Whether there is one metric."""
        return len(self.values_to_maximise) == 1

    def constrained_dominates(self, other: "TrialScore") -> bool:
        """Return whether this is better, by constrained domination."""
        if self.total_violation > 0 or other.total_violation > 0:
            return self.total_violation < other.total_violation
        mine, theirs = self.values_to_maximise, other.values_to_maximise
        return mine != theirs and all(a >= b for a, b in zip(mine, theirs, strict=True))


@dataclass(frozen=True)
class Objective:
    """Metrics with their directions, constraints, and how a trial's epoch is chosen.

    Attributes:
        epoch_window: None: a trial is taken at its last epoch; a number: at its best by this objective, where each
            epoch counts as the mean of so many epochs up to it (`study.ranking.chosen_epoch`).
    """

    metrics: tuple[str, ...]
    directions: tuple[Literal["max", "min"], ...]
    constraints: tuple[MetricConstraint, ...] = ()
    epoch_window: int | None = None

    @property
    def has_several_metrics(self) -> bool:
        """Whether there are several metrics; then no configuration need be the best in all."""
        return len(self.metrics) > 1

    @property
    def metrics_and_directions_text(self) -> str:
        """The metrics and which direction of each is better, in words."""
        words = ("lower" if mode == "min" else "higher" for mode in self.directions)
        return "; ".join(f"{name}, {word} is better" for name, word in zip(self.metrics, words, strict=True))

    @cached_property
    def needed_metrics(self) -> list[str]:
        """Every metric that a score needs."""
        return list(dict.fromkeys([*self.metrics, *(constraint.metric for constraint in self.constraints)]))

    def score_of_report(self, report: Mapping[str, float | None]) -> TrialScore | None:
        """Return the score of an epoch's metrics; None where one that it needs is missing or not a number."""
        needed = {name: value for name in self.needed_metrics if (value := report.get(name)) is not None}
        if len(needed) < len(self.needed_metrics):
            return None
        values = tuple(needed[name] for name in self.metrics)
        turned = (value if mode == "max" else -value for value, mode in zip(values, self.directions, strict=True))
        gains = tuple(map(round_to_significant_digits, turned))
        violations = tuple(constraint.violation_of(needed[constraint.metric]) for constraint in self.constraints)
        return TrialScore(values, gains, violations)

    def broken_constraints(self, *scores: TrialScore) -> list[MetricConstraint]:
        """Return the constraints that at least one of the scores breaks."""
        by_score = zip(self.constraints, *(score.constraint_violations for score in scores), strict=True)
        return [constraint for constraint, *violations in by_score if max(violations, default=0.0) > 0]

    def broken_constraints_text(self, score: TrialScore) -> str:
        """Return each constraint that a score breaks, with its value."""
        pairs = zip(self.constraints, score.constraint_violations, strict=True)
        return " and ".join(constraint.violation_text(violation) for constraint, violation in pairs if violation > 0)

    def ranking_order(self, scores: Sequence[TrialScore]) -> list[int]:
        """Return positions of scores, the best first: by fronts of constrained domination, then by the first metric.

        Ties keep their order.
        """
        fronts = _front_numbers(scores)
        return sorted(range(len(scores)), key=lambda place: (fronts[place], -scores[place].values_to_maximise[0]))

    @property
    def front_choice_text(self) -> str:
        """What is chosen of a front of several metrics, in words: that with the best value of the first."""
        return f"the best {self.metrics[0]}"


def spread_out_positions(scores: Sequence[TrialScore], count: int) -> list[int]:
    """Return positions of so many scores that lie far apart, the first among them.

    Each next one has the largest distance to those taken (farthest-first traversal: Gonzalez 1985), on each metric's
    scale from the worst to the best of all.
    """
    import numpy as np

    gains = np.array([score.values_to_maximise for score in scores])
    scaled = gains / np.where(np.ptp(gains, axis=0) > 0, np.ptp(gains, axis=0), 1.0)
    taken, away = [0], np.linalg.norm(scaled - scaled[0], axis=1)
    while len(taken) < min(count, len(scores)):
        taken.append(int(away.argmax()))
        away = np.minimum(away, np.linalg.norm(scaled - scaled[taken[-1]], axis=1))
        away[taken] = -1.0
    return taken


def front_positions(scores: Sequence[TrialScore]) -> list[int]:
    """Return positions of the scores that no other dominates."""
    if not scores:
        return []
    fronts = _front_numbers(scores)
    least = min(fronts)
    first = [place for place, rank in enumerate(fronts) if rank == least]
    if scores[0].has_single_metric and scores[first[0]].total_violation == 0:
        most = max(scores[place].values_to_maximise for place in first)
        return [place for place in first if scores[place].values_to_maximise == most]
    return first


def _front_numbers(scores: Sequence[TrialScore]) -> Sequence[float]:
    """Return the front of each score, 0 the best; those that break a constraint come last, by how much they do."""
    if not scores or scores[0].has_single_metric:  # with one metric the front follows from the constraints alone
        return [score.total_violation for score in scores]
    import numpy as np

    gains = np.array([score.values_to_maximise for score in scores])
    violation = np.array([score.total_violation for score in scores])
    ranks = np.where(violation > 0, len(scores) + violation, -1.0)
    kept = np.flatnonzero(ranks < 0)
    no_worse = np.logical_and.reduce(gains[kept, None] >= gains[None, kept], axis=2)
    dominates = no_worse & ~no_worse.T
    above = dominates.sum(0)  # how many of those left dominate each
    front, left = 0, np.ones(len(kept), dtype=bool)
    while left.any():
        first = left & (above == 0)
        ranks[kept[first]] = front
        above -= dominates[first].sum(0)
        left &= ~first
        front += 1
    return list(ranks)
