"""The hypervolume of a front: how much of the space of metrics the configurations found so far leave behind them."""

import math
import operator
from collections.abc import Iterator, Sequence

from study.metrics import find
from study.ranking import Candidate
from study.spec import StudySpec

Point = tuple[float, ...]


def hypervolume(points: Sequence[Point], reference: Point) -> float:
    """The volume of what some point dominates and the reference point does not exceed; larger is better everywhere.

    Exact, by slices along the last metric (While et al. 2006, HSO): quick for the fronts of studies with two to four
    metrics. Points that do not exceed the reference in every metric add nothing.

    Args:
        points: one value per metric each, turned so that larger is better.
        reference: the worst that counts.
    """
    inside = {point for point in points if _exceeds(point, reference)}
    if not inside:
        return 0.0
    if len(reference) == 1:
        return max(point[0] for point in inside) - reference[0]
    if len(reference) == 2:
        return _area(sorted(inside, reverse=True), reference)
    total, kept = 0.0, sorted(inside, key=lambda point: -point[-1])
    for place, point in enumerate(kept):
        below = kept[place + 1][-1] if place + 1 < len(kept) else reference[-1]
        if point[-1] > below:
            total += (point[-1] - below) * hypervolume([one[:-1] for one in kept[: place + 1]], reference[:-1])
    return total


def _area(descending: Sequence[Point], reference: Point) -> float:
    total, height = 0.0, reference[1]
    for across, up in descending:
        if up > height:
            total += (across - reference[0]) * (up - height)
            height = up
    return total


def bounds(spec: StudySpec) -> list[float | None]:
    """What each of the study's metrics can be at worst, by the table of metrics; None where it has no bound."""
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


def over_trials(spec: StudySpec, found: Sequence[Candidate]) -> dict[int, float]:
    """The hypervolume of the front of those configurations up to each that keep the constraints, by trial, in the order
    in which they are given, against `reference_point` of all of them."""
    reference, volumes, volume = _turned(spec, reference_point(spec, found)), {}, 0.0
    for candidate, front in _fronts(found):
        if front is not None:
            volume += _added(candidate.score.gains, front, reference)
        volumes[candidate.trial.number] = volume
    return volumes


def last_growth(spec: StudySpec, found: Sequence[Candidate]) -> int | None:
    """The trial with which the hypervolume of `over_trials` last grew; None where it never did."""
    reference = _turned(spec, reference_point(spec, found))
    grown = [
        candidate.trial.number
        for candidate, front in _fronts(found)
        if front is not None and _exceeds(candidate.score.gains, reference)
    ]
    return grown[-1] if grown else None


def _fronts(found: Sequence[Candidate]) -> Iterator[tuple[Candidate, list[Point] | None]]:
    """Each configuration with the front before it, or None if it adds nothing to that."""
    front: list[Point] = []
    for candidate in found:
        gains = candidate.score.gains
        if candidate.score.violation != 0 or any(_beats(other, gains) for other in front):
            yield candidate, None
            continue
        yield candidate, front
        front = [other for other in front if not _beats(gains, other)] + [gains]


def _added(point: Point, front: Sequence[Point], reference: Point) -> float:
    """The volume that a point adds to that of a front: its own, less what the front dominates of that. Few points of
    the front bound it, so that this takes far fewer steps than the volume of the whole front."""
    if not _exceeds(point, reference):
        return 0.0
    bounding: list[Point] = []
    within = (tuple(map(min, point, other)) for other in front)
    for shadow in sorted(within, key=sum, reverse=True):
        if not any(_beats(other, shadow) for other in bounding):
            bounding.append(shadow)
    own = math.prod(a - b for a, b in zip(point, reference, strict=True))
    return max(0.0, own - hypervolume(bounding, reference))


def _beats(one: Point, other: Point) -> bool:
    """Whether a point is at least as good in every metric."""
    return all(map(operator.ge, one, other))


def _exceeds(point: Point, reference: Point) -> bool:
    return all(map(operator.gt, point, reference))


def _turned(spec: StudySpec, values: Point) -> Point:
    """Values of the study's metrics, turned so that larger is better."""
    return tuple(value if mode == "max" else -value for value, mode in zip(values, spec.objective.modes, strict=True))
