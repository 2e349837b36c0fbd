"""Many courses of several variants of a study, and what they come to."""

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from study.errors import UserError
from study.simulation.cluster import Cluster
from study.simulation.course import Course
from study.simulation.courses import Courses
from study.simulation.curves import Curves
from study.spec import StudySpec

Array = NDArray[np.float64]

BAND = (0.1, 0.9)
"""Quantiles over courses."""
POINTS = 101
"""At which the best is looked at, along an axis."""
AXES = ("epochs", "seconds", "money")


@dataclass(frozen=True)
class Summary:
    """One number over the courses: its mean, the quantiles `BAND`, and the standard deviation."""

    mean: float
    low: float
    high: float
    deviation: float

    @classmethod
    def of(cls, values: Sequence[float]) -> "Summary":
        """Of these values."""
        low, high = np.quantile(values, BAND)
        deviation = float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
        return cls(float(np.mean(values)), float(low), float(high), deviation)


@dataclass(frozen=True)
class Variant:
    """What the courses of one variant came to.

    Attributes:
        words: what tells it from the others.
        slots: trials at once; no more than `search.concurrency`.
        courses: how many; `without`: those in which no trial ran to its end, which the others leave out.
        worth, value: of what was found, on fresh seeds and as the search saw it.
        found: (epochs, seconds, money) when it was.
        search: the same when the search ended, and of the whole study `seconds` and `money`.
        trials, lost, preempted: configurations, epochs that ran again, nodes that were taken away.
        busiest: reports within a minute, at most.
        best: by axis, (points, 4): where, mean, low and high of the worth so far, from where most have one.
    """

    words: str
    slots: int
    courses: int
    without: int
    worth: Summary
    value: Summary
    found: dict[str, Summary]
    search: dict[str, Summary]
    seconds: Summary
    money: Summary
    trials: Summary
    lost: Summary
    preempted: Summary
    busiest: Summary
    best: dict[str, Array]


def variants(text: Iterable[str]) -> list[list[str]]:
    """Every combination of `KEY=VALUE,VALUE` as overrides; commas in brackets part no values.

    Raises:
        UserError: not of that form, or a key is given twice.
    """
    choices: dict[str, list[str]] = {}
    for given in text:
        key, equals, values = given.partition("=")
        if not equals or not key or not values:
            raise UserError(f"--vary {given}: not of the form KEY=VALUE,VALUE, as in --vary search.sampler=tpe,random")
        if key in choices:
            raise UserError(f"--vary {given}: {key} is given twice. All its values go into one --vary")
        choices[key] = [f"{key}={value}" for value in _parts(values)]
    return [list(chosen) for chosen in itertools.product(*choices.values())]


def _parts(values: str) -> list[str]:
    parts, depth = [""], 0
    for letter in values:
        depth += (letter in "[{") - (letter in "]}")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


def play(
    words: str,
    spec: StudySpec,
    curves: Callable[[int], Curves],
    cluster: Cluster,
    repeats: int,
    courses: Courses,
    tell: Callable[[int], object] = int,
) -> Variant:
    """Simulate so many courses of one variant.

    Args:
        curves: of the course of a number.
        courses: simulates them.
        tell: is told how many are done.

    Raises:
        UserError: in none of them a trial ran to its end.
    """
    found: list[Course] = []
    for course in courses.of(spec, curves, cluster, range(repeats)):
        found.append(course)
        tell(len(found))
    return summarised(words, spec, cluster, found)


def summarised(words: str, spec: StudySpec, cluster: Cluster, courses: Sequence[Course]) -> Variant:
    """What courses come to."""
    good = [course for course in courses if course.best]
    if not good:
        raise UserError(f"{words or spec.name}: no trial ran to its end in any of {len(courses)} courses")
    ends = [course.best[-1] for course in good]
    worth = [step.value if step.fresh is None else step.fresh for step in ends]
    return Variant(
        words,
        min(cluster.slots, spec.search.concurrency or cluster.slots),
        len(courses),
        len(courses) - len(good),
        Summary.of(worth),
        Summary.of([step.value for step in ends]),
        {axis: Summary.of([getattr(step, axis) for step in ends]) for axis in AXES},
        {axis: Summary.of([_search(course, axis) for course in good]) for axis in AXES},
        Summary.of([course.seconds for course in good]),
        Summary.of([course.money for course in good]),
        Summary.of([course.trials for course in good]),
        Summary.of([course.lost for course in good]),
        Summary.of([course.preempted for course in good]),
        Summary.of([course.busiest for course in good]),
        {axis: _best(good, axis) for axis in AXES},
    )


def _search(course: Course, axis: str) -> float:
    seconds, epochs, money = course.search
    return {"epochs": float(epochs), "seconds": seconds, "money": money}[axis]


def _best(courses: Sequence[Course], axis: str) -> Array:
    """The worth of the best so far along an axis; begins where three of four courses have one."""
    end = max(_search(course, axis) for course in courses)
    places = np.linspace(0.0, end, POINTS)
    rows = np.full((len(courses), POINTS), np.nan)
    for row, course in zip(rows, courses, strict=True):
        for step in course.best:
            row[places >= getattr(step, axis)] = step.value if step.fresh is None else step.fresh
    there = np.isfinite(rows).mean(0) >= 0.75
    if not there.any():
        return np.empty((0, 4))
    shown = rows[:, there]
    low, high = np.nanquantile(shown, BAND, axis=0)
    return np.column_stack([places[there], np.nanmean(shown, 0), low, high])
