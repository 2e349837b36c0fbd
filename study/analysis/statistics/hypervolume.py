"""Against what the hypervolume of a front is measured, and when it last grew."""

import operator
from collections.abc import Sequence

from study.metrics import find
from study.ranking import Candidate
from study.spec import StudySpec

Point = tuple[float, ...]


def bounds(spec: StudySpec) -> list[float | None]:
    """Return what each of the study's metrics can be at worst, by the table of metrics; None where it has no bound."""
    metrics = zip(map(find, spec.objective.metrics), spec.objective.modes, strict=True)
    return [(metric.low if mode == "max" else metric.high) if metric else None for metric, mode in metrics]


def reference_point(spec: StudySpec, found: Sequence[Candidate]) -> Point:
    """The worst value of each of the study's metrics, in its own direction: its bound, or, where it has none, the worst
    of these configurations."""
    worst = []
    for place, (bound, mode) in enumerate(zip(bounds(spec), spec.objective.modes, strict=True)):
        values = [candidate.score.values[place] for candidate in found]
        worst.append((min if mode == "max" else max)(values, default=0.0) if bound is None else bound)
    return tuple(worst)


def last_growth(spec: StudySpec, found: Sequence[Candidate]) -> int | None:
    """The trial with which the hypervolume of those that keep the constraints last grew, in the order in which they are
    given; None where it never did."""
    reference = _turned(spec, reference_point(spec, found))
    front: list[Point] = []
    last = None
    for candidate in found:
        gains = candidate.score.gains
        if candidate.score.violation == 0 and not any(_beats(other, gains) for other in front):
            front = [other for other in front if not _beats(gains, other)] + [gains]
            if all(map(operator.gt, gains, reference)):
                last = candidate.trial.number
    return last


def _beats(one: Point, other: Point) -> bool:
    """Return whether a point is at least as good in every metric."""
    return all(map(operator.ge, one, other))


def _turned(spec: StudySpec, values: Point) -> Point:
    """Values of the study's metrics, turned so that larger is better."""
    return tuple(value if mode == "max" else -value for value, mode in zip(values, spec.objective.modes, strict=True))
