"""The hypervolume of a front: how much of the space of metrics the configurations found so far leave behind them."""

from collections.abc import Sequence

from study.home.record import StudyRecord
from study.metrics import find
from study.ranking import Candidate, searched
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
    inside = {point for point in points if all(a > b for a, b in zip(point, reference, strict=True))}
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


def reference_point(spec: StudySpec, found: Sequence[Candidate]) -> Point:
    """The worst value of each of the study's metrics, in its own direction: what the table of metrics says it can be
    at worst, or, where it has no bound, the worst of these configurations."""
    worst = []
    for place, (name, mode) in enumerate(zip(spec.objective.metrics, spec.objective.modes, strict=True)):
        metric = find(name)
        bound = (metric.low if mode == "max" else metric.high) if metric else None
        values = [candidate.score.values[place] for candidate in found]
        worst.append((min if mode == "max" else max)(values, default=0.0) if bound is None else bound)
    return tuple(worst)


def over_trials(spec: StudySpec, record: StudyRecord) -> dict[int, float]:
    """The hypervolume of the validation front, by the search's complete configurations in the order of their numbers:
    of all that keep the constraints up to each. Against `reference_point`."""
    found = sorted(searched(record, spec), key=lambda candidate: candidate.trial.number)
    signs = [1.0 if mode == "max" else -1.0 for mode in spec.objective.modes]
    reference = tuple(sign * value for sign, value in zip(signs, reference_point(spec, found), strict=True))
    front: list[Point] = []
    volumes, volume = {}, 0.0
    for candidate in found:
        gains = candidate.score.gains
        beaten = any(all(a >= b for a, b in zip(other, gains, strict=True)) for other in front)
        if candidate.score.violation == 0 and not beaten:
            front = [other for other in front if not all(a >= b for a, b in zip(gains, other, strict=True))] + [gains]
            volume = hypervolume(front, reference)
        volumes[candidate.trial.number] = volume
    return volumes
