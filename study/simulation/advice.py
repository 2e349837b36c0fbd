"""Which trials, early stopping and slots find most within a budget: tried on a virtual clock."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean

from study.errors import UserError
from study.simulation.cluster import Cluster
from study.simulation.course import Course
from study.simulation.courses import Courses
from study.simulation.simulate import Limit
from study.simulation.source import Source
from study.simulation.variants import Summary

REDUCTIONS = (2, 3, 4)
MOST = 8
"""How many times the study's trials are tried at most."""
LOOK = 4
"""Courses of each way before only the best go on."""
FURTHER = 4
"""How many ways have all courses, at each of the two steps."""
KEPT = 3
"""Rules that are tried on every cluster."""


@dataclass(frozen=True)
class Choice:
    """One way to spend a budget.

    Attributes:
        early_stopping: as in a study file.
        slots: trials at once.
        trials: configurations that the budget began, on average.
        worth: of what was found, on fresh seeds; `missing`: courses that found nothing by then.
        epochs, seconds, money: that it took.
    """

    early_stopping: dict[str, str | int]
    slots: int
    trials: int
    worth: Summary
    missing: int
    epochs: float
    seconds: float
    money: float

    @property
    def assignments(self) -> list[str]:
        """As `--set` takes them."""
        rule = ", ".join(f"{key}: {value}" for key, value in self.early_stopping.items())
        return [f"search.trials={self.trials}", f"search.early_stopping={{{rule}}}"]


def rules(epochs: int) -> Iterator[dict[str, str | int]]:
    """None, and ASHA with a grace of 1, 2, 4 ... epochs."""
    yield {"name": "none"}
    for grace in (2**power for power in range(max(1, epochs.bit_length()))):
        if grace < epochs:
            yield from ({"name": "asha", "grace": grace, "reduction": reduction} for reduction in REDUCTIONS)


def advise(
    source: Source,
    assignments: list[str],
    clusters: list[Cluster],
    limit: Limit,
    repeats: int,
    tell: Callable[[str], object] = str,
) -> list[Choice]:
    """Ways to spend a budget, what finds most first; of those that no difference is seen between, the cheapest first.

    Rules are compared on the cluster in the middle, the `KEPT` best of them on the others too. A way that is far behind
    after `LOOK` courses has no more. The search alone is simulated, so that confirm trials come on top.

    Args:
        clusters: from the smallest to the largest.
        repeats: courses of each way that is returned.

    Raises:
        UserError: no trial ends within the budget.
    """
    base = source.spec(assignments)
    most = MOST * base.trials if source.table is None else min(MOST * base.trials, len(source.table.rows))
    sign = 1.0 if base.mode == "max" else -1.0
    middle = clusters[len(clusters) // 2]

    def ways(courses: Courses, among: Iterable[dict[str, str | int]], on: Sequence[Cluster]) -> list[Choice]:
        found = [_Way(source, assignments, rule, cluster, most, limit) for rule in among for cluster in on]
        for way in found:
            tell(f"{way.words}: {min(LOOK, repeats)} courses")
            way.play(courses, min(LOOK, repeats))
        found = sorted((way for way in found if way.finds), key=lambda way: -sign * way.mean)[:FURTHER]
        for way in found:
            tell(f"{way.words}: {repeats} courses")
            way.play(courses, repeats)
        return [way.choice() for way in found if way.finds]

    others = [cluster for cluster in clusters if cluster is not middle]
    with Courses() as courses:
        found = ways(courses, rules(base.epochs), [middle])
        leading = sorted(found, key=lambda choice: -sign * choice.worth.mean)[:KEPT]
        if others:
            found += ways(courses, [choice.early_stopping for choice in leading] or rules(base.epochs), others)
    if not found:
        raise UserError("the budget: no trial ends within it in half of the courses")
    best = max(found, key=lambda choice: sign * choice.worth.mean)
    error = best.worth.deviation / math.sqrt(repeats)

    def order(choice: Choice) -> tuple[bool, float, int, float]:
        behind = sign * (best.worth.mean - choice.worth.mean) > error
        cost = choice.money if choice.money else choice.epochs
        return behind, -sign * choice.worth.mean if behind else cost, choice.slots, -sign * choice.worth.mean

    return sorted(found, key=order)


class _Way:
    """One way to spend a budget, and its courses so far."""

    def __init__(
        self,
        source: Source,
        assignments: list[str],
        rule: dict[str, str | int],
        cluster: Cluster,
        trials: int,
        limit: Limit,
    ) -> None:
        text = ", ".join(f"{key}: {value}" for key, value in rule.items())
        own = [f"search.early_stopping={{{text}}}", f"search.trials={trials}", "search.confirm={top: 0}"]
        self.words = f"{text}, {cluster.slots} slots"
        self._spec, self._rule, self._cluster, self._limit = source.spec([*assignments, *own]), rule, cluster, limit
        self._curves, self._courses = source.curves(self._spec), list[Course]()

    def play(self, courses: Courses, repeats: int) -> None:
        """Have so many courses."""
        missing = range(len(self._courses), repeats)
        self._courses += courses.of(self._spec, self._curves, self._cluster, missing, self._limit)

    @property
    def _found(self) -> list[float]:
        steps = [course.best[-1] for course in self._courses if course.best]
        return [step.value if step.fresh is None else step.fresh for step in steps]

    @property
    def finds(self) -> bool:
        """Whether a trial ended in half of the courses."""
        return 2 * len(self._found) >= len(self._courses)

    @property
    def mean(self) -> float:
        """Worth of what the courses found."""
        return fmean(self._found)

    def choice(self) -> Choice:
        """What the courses come to."""
        found, courses = self._found, self._courses
        trials, epochs, seconds, money = (
            fmean(getattr(course, name) for course in courses) for name in ("trials", "epochs", "seconds", "money")
        )
        missing, slots = len(courses) - len(found), self._cluster.slots
        return Choice(self._rule, slots, max(1, round(trials)), Summary.of(found), missing, epochs, seconds, money)
