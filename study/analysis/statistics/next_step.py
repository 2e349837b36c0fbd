"""The next step with a study, by a stated rule over its numbers.

The steps that apply, in this order; the first is the one to take:

1. `resume`: the study is not over.
2. `widen`: the best configuration lies at the edge of a range, in more than chance (`study.analysis.statistics.edges`).
3. `search`: the best configuration came, or with several metrics the front last grew, in the last `LATE` of the
   search's trials.
4. `confirm`: the best configurations have not run on fresh seeds.
5. `seeds`: it is open whether the best is better than the baseline, or, if it is, than the runner-up; and it ran on two
   seeds, or `MOST_SEEDS` paired seeds can be expected to tell, if the difference is as large as it was measured.
6. `enough`: none of these. That a difference is too small to tell is said.
"""

import math
from dataclasses import dataclass
from statistics import stdev
from typing import Literal

from study import ranking
from study.analysis.statistics import formatting
from study.analysis.statistics.difference import Side, difference, sides
from study.analysis.statistics.edges import Edge, edges
from study.analysis.statistics.hypervolume import last_growth
from study.analysis.statistics.rivals import rivals
from study.home.record import StudyRecord
from study.spec import StudySpec
from study.spec.search_checks import count_configurations
from study.text import typed

# How many paired seeds make a difference clear.

POWER = 0.8
"""Chance with which a difference of the measured size is to come out as clear."""

BOUND = 0.8
"""Confidence of the upper bound of the standard deviation that is reckoned with: it is known from few seeds."""

MOST_SEEDS = 10
"""More than these nobody runs to tell two configurations apart."""


def seeds_needed(gap: float, deviation: float, freedom: float, among: int = 1, confidence: float = 0.95) -> int | None:
    """The paired seeds with which a difference is clear, if it truly is as large as it was measured.

    The interval is that of `study.analysis.statistics.difference`; its power is that of the noncentral t. A standard
    deviation of few values may be far too small by chance, so its upper 80% bound is taken for it (Browne 1995,
    Statistics in Medicine 14): in at most 20% of studies the answer has less power than it promises. Of the answers
    alone more may, where `MOST_SEEDS` are truly too few: then there is one only where the deviation is too small.

    Args:
        gap: the difference of the means, not 0.
        deviation: sample standard deviation of the paired differences.
        freedom: degrees of freedom that it is known with.
        among: from how many configurations the better one was chosen.
        confidence: of the interval.

    Returns:
        At least 2; None where `MOST_SEEDS` are too few.
    """
    if gap == 0.0 or math.isnan(gap):
        return None
    from scipy.special import chdtri  # here, so that what needs no interval is told at once

    bound = deviation * math.sqrt(freedom / float(chdtri(freedom, BOUND)))
    if bound == 0.0:
        return 2
    low, high = 2, MOST_SEEDS
    if power(abs(gap) / bound, high, among, confidence) < POWER:
        return None
    while low < high:
        middle = (low + high) // 2
        if power(abs(gap) / bound, middle, among, confidence) >= POWER:
            high = middle
        else:
            low = middle + 1
    return low


def power(size: float, seeds: int, among: int = 1, confidence: float = 0.95) -> float:
    """The chance that a true difference is clear.

    Args:
        size: the difference in standard deviations of the paired differences.
        seeds: at least 2.
        among, confidence: as in `seeds_needed`.
    """
    from scipy.special import nctdtr

    from study.analysis.statistics.difference import chosen_quantile

    limit = chosen_quantile((1 + confidence) / 2, seeds - 1, among)
    return 1 - float(nctdtr(seeds - 1, math.sqrt(seeds) * size, limit))


LATE = 0.25
"""The last trials of a search in which the best one is taken as a sign that more trials would find better ones."""

FEWEST = 8
"""Of fewer trials the best is among the last by chance alone too often."""

CONFIRMED = 5
"""Configurations and seeds that a first confirmation is proposed with."""

Kind = Literal["resume", "widen", "search", "confirm", "seeds", "enough"]


@dataclass(frozen=True)
class Step:
    """One thing to do.

    Attributes:
        kind: which rule gave it.
        why: a sentence with the numbers that it follows from.
        command: that does it, as it is typed; None where a study file has to be changed first.
    """

    kind: Kind
    why: str
    command: str | None


@dataclass(frozen=True)
class Came:
    """When the best configuration came: `place` of the `of` configurations that the search began, from 1. With several
    metrics, when the front last grew."""

    place: int
    of: int

    @property
    def late(self) -> bool:
        """Return whether that was among the last."""
        return self.of >= FEWEST and self.place > (1 - LATE) * self.of


def came(spec: StudySpec, record: StudyRecord) -> Came | None:
    """When the best searched configuration came; None without one, or where the search was of a single one."""
    _, best = sides(spec, record)
    numbers = [trial.number for trial in record.by_stage("search") if trial.state != "waiting"]
    if best is None or len(numbers) < 2:
        return None
    last = best.number if len(spec.objective.metrics) == 1 else _last_growth(spec, record)
    return None if last is None else Came(numbers.index(last) + 1, len(numbers))


def _last_growth(spec: StudySpec, record: StudyRecord) -> int | None:
    """The trial with which the front last grew; None where no configuration keeps the limits."""
    return last_growth(spec, sorted(ranking.searched(record, spec), key=lambda candidate: candidate.trial.number))


def next_steps(spec: StudySpec, record: StudyRecord) -> list[Step]:
    """The steps that apply, the one to take first; none for a final training, while a driver is at work, or of a
    complete study whose trials have different data."""
    if spec.final_seeds is not None or record.state == "running":
        return []
    if record.state != "complete":
        return [Step("resume", "The study is not over.", typed("resume", spec.name))]
    reference, best = sides(spec, record)
    if best is None or spec.varied_data:
        return []
    when, found = came(spec, record), [_widen(edge) for edge in edges(spec, record) if edge.further]
    if when and when.late and spec.search.sampler != "grid" and not _is_used_up(spec, record):
        more = f"+{math.ceil(when.of / 2)}"
        late = f"the {formatting.ordinal(when.place)} of {when.of} of the search: more may be better."
        several = len(spec.objective.metrics) > 1
        why = f"The front still grew with {late}" if several else f"The best configuration came late, as {late}"
        found.append(Step("search", why, typed("resume", spec.name, "--trials", more)))
    if not ranking.is_confirmed(record, spec):
        top = min(CONFIRMED, len(ranking.searched(record, spec)))
        why = "The search's own seeds alone chose the best, so it is not known how much of its value is luck."
        found.append(Step("confirm", why, typed("confirm", spec.name, "--top", top, "--seeds", CONFIRMED)))
    else:
        found += _seeds(spec, record, reference, best)
    further = [step for step in found if step.kind != "enough"]
    return (
        further
        or found
        or [Step("enough", "Nothing that was measured asks for a wider range, more trials or more seeds.", None)]
    )


def _is_used_up(spec: StudySpec, record: StudyRecord) -> bool:
    """Return whether every configuration of the space was tried."""
    tried = len(list(record.by_stage("baseline", "search")))
    there = count_configurations(spec.search, spec.space)
    return there is not None and tried >= there


def _widen(edge: Edge) -> Step:
    why = (
        f"The best {edge.key}, {formatting.setting(edge.value)}, lies at the {edge.end} end of its range, and better "
        f"configurations lie nearer to that end than others: search beyond {formatting.setting(edge.limit)}, too."
    )
    return Step("widen", why, None)


def _seeds(spec: StudySpec, record: StudyRecord, reference: Side | None, best: Side) -> list[Step]:
    """More seeds for the best and the baseline, or else for the best and the runner-up; that they would not tell."""
    if reference is not None:
        gain = difference(best.values(spec.metric), reference.values(spec.metric), among=best.among)
        if gain is not None and not spec.better(gain.value, 0.0):
            return []
        if gain is not None and not gain.clear:
            return _more(spec, record, best, reference)
    others = rivals(spec, record)
    if others is None or others.runner_up.number not in others.undecided:
        return []
    return _more(spec, record, best, others.runner_up)


def _more(spec: StudySpec, record: StudyRecord, best: Side, other: Side) -> list[Step]:
    one, two = best.values(spec.metric), other.values(spec.metric)
    pairs = [one[seed] - two[seed] for seed in one.keys() & two.keys()]
    if len(pairs) < 2:
        return []
    gap = sum(pairs) / len(pairs)
    what = (
        f"{best.label.capitalize()} and {'the ' if other.label == 'baseline' else ''}{other.label} are not told apart "
        f"on {formatting.count(len(pairs), 'seed')}"
    )
    needed: int | None = CONFIRMED
    if len(pairs) == 2:
        why = f"{what}, and two say little of how far seeds lie apart."
    else:
        needed = seeds_needed(gap, stdev(pairs), len(pairs) - 1, best.among)
        amount = formatting.change(spec.metric, abs(gap), False)
        if needed is None:
            small = f"{what}: a difference of {amount} is too small beside its spread for {MOST_SEEDS} seeds to tell."
            return [Step("enough", small, None)]
        if needed <= len(pairs):
            return []
        why = (
            f"{what}. If their difference of {amount} and its spread are as measured, {needed} seeds show it with a "
            f"chance of at least {POWER:.0%}."
        )
    order = [candidate.trial.number for candidate in ranking.searched(record, spec)]
    top = max(order.index(number) + 1 for number in (best.number, other.number) if number in order)
    return [Step("seeds", why, typed("confirm", spec.name, "--top", top, "--seeds", needed))]
