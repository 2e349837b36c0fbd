"""Searched ranges at whose edge the best configuration lies, where that is more than chance."""

import math
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Literal

from study.knobs import Params, Range, Scalar
from study.ranking import Results
from study.spec import StudySpec
from study.spec.domain import Domain

EDGE_SHARE_OF_RANGE = 0.05
"""Share of a range, on its own scale, that is its edge."""

MAX_EDGE_FALSE_ALARM_RATE = 0.05
"""Largest share of searches, among those in which no parameter matters, that may name one."""

MIN_RANGE_STEPS = 5
"""Smallest number of values of a range in steps: of fewer, one is at an edge too often."""

MIN_BETTER_CONFIGURATIONS, MIN_WORSE_CONFIGURATIONS = 3, 6
"""Smallest numbers of other configurations in the better third and behind it: fewer show no trend."""


@dataclass(frozen=True)
class RangeEdge:
    """A parameter whose best value lies at the edge of its range, where better configurations lie, too.

    Attributes:
        key: dotted.
        end: which edge.
        value: of the best configuration.
        limit: the searched range's end.
        further: whether the parameter may take values beyond it.
    """

    key: str
    end: Literal["low", "high"]
    value: float
    limit: float
    further: bool


def find_range_edges(results: Results) -> list[RangeEdge]:
    """Return the searched ranges at whose edge the best configuration lies, where that is more than chance.

    Two things must hold. The best configuration lies in the outer `EDGE_SHARE_OF_RANGE` of the range on its scale, or
    has the range's end where it is searched in steps. And of the other configurations that ended, the better third lies
    nearer to this edge than the rest (Mann-Whitney, one-sided, normal approximation with ties; pruned ones count as
    worse than complete ones). The level of that test is chosen so that, in a search where no parameter matters, at most
    `MAX_EDGE_FALSE_ALARM_RATE` of the searches name any: by chance the best lies at an edge far more often.
    """
    complete = results.ranked_search
    if not complete:
        return []
    pruned = [trial for trial in results.record.trials_of_stages("search") if trial.state == "pruned"]
    pruned.sort(key=lambda trial: -trial.n_epochs)
    best, *others = [*(candidate.trial.params for candidate in complete), *(trial.params for trial in pruned)]
    scales = {key: domain for key, domain in results.spec.search.space.items() if _is_long_numeric_range(domain)}
    widths = {key: _edge_probability(domain, isinstance(best.get(key), int)) for key, domain in scales.items()}
    chance = 2 * sum(widths.values())
    level = min(0.5, MAX_EDGE_FALSE_ALARM_RATE / chance) if chance else 0.0
    found = []
    for key, domain in scales.items():
        spot, value = _position_in_range(domain, best.get(key)), best.get(key)
        ends: dict[Literal["low", "high"], float] = {"low": 0.0, "high": 1.0}
        for end, place in ends.items():
            if spot is None or abs(spot - place) > (
                EDGE_SHARE_OF_RANGE if widths[key] == EDGE_SHARE_OF_RANGE else 1e-9
            ):
                continue
            away = [
                abs(at - place) for params in others if (at := _position_in_range(domain, params.get(key))) is not None
            ]
            if _edge_trend_p_value(away) <= level:
                limit = domain.low if end == "low" else domain.high
                assert limit is not None
                assert isinstance(value, int | float)  # as it has a place
                found.append(
                    RangeEdge(
                        key, end, float(value), float(limit), _can_go_further(results.spec, key, best, end, limit)
                    )
                )
    return found


def _is_long_numeric_range(domain: Domain) -> bool:
    """Return whether values of a domain lie on a scale that is long enough to have edges."""
    if domain.choices is not None or domain.low is None or domain.high is None or domain.low == domain.high:
        return False
    return domain.step is None or (domain.high - domain.low) / domain.step >= MIN_RANGE_STEPS - 1


def _edge_probability(domain: Domain, whole: bool) -> float:
    """Return the share of a uniformly drawn parameter's values that are at one edge."""
    assert domain.low is not None
    assert domain.high is not None
    step = domain.step or (1 if whole and not domain.log else None)
    return (
        EDGE_SHARE_OF_RANGE
        if step is None
        else max(EDGE_SHARE_OF_RANGE, 1 / (math.floor((domain.high - domain.low) / step) + 1))
    )


def _position_in_range(domain: Domain, value: Scalar) -> float | None:
    """Return where a value lies between the ends, 0 to 1 on the range's scale; None for what is no such number."""
    if isinstance(value, bool) or not isinstance(value, int | float) or domain.low is None or domain.high is None:
        return None
    if not domain.low <= value <= domain.high:
        return None
    low, high, at = (math.log(each) if domain.log else each for each in (domain.low, domain.high, value))
    return (at - low) / (high - low)


def _edge_trend_p_value(distances: Sequence[float]) -> float:
    """Return the p value of the first third of some distances being smaller than the rest.

    It is the chance, over random orders, that the first third is as small against the rest as it is.
    """
    first = len(distances) // 3
    ahead, behind = distances[:first], distances[first:]
    if len(ahead) < MIN_BETTER_CONFIGURATIONS or len(behind) < MIN_WORSE_CONFIGURATIONS:
        return 1.0
    rest = sorted(behind)  # of each of the rest that is farther away one, of each as far a half
    wins = sum(len(rest) - (bisect_left(rest, one) + bisect_right(rest, one)) / 2 for one in ahead)
    total, pairs = len(distances), len(ahead) * len(behind)
    ties = sum(count**3 - count for count in Counter(distances).values())
    variance = pairs / 12 * (total + 1 - ties / (total * (total - 1)))
    if variance <= 0:
        return 1.0
    return 1 - NormalDist().cdf((wins - pairs / 2 - 0.5) / math.sqrt(variance))


def _can_go_further(spec: StudySpec, key: str, params: Params, end: str, limit: float) -> bool:
    """Return whether the parameter may be smaller than its lowest searched value, or larger than its highest."""
    section, _, name = key.partition(".")
    knob = spec.sections.knobs_of_form(section, params).get(name)
    notes = getattr(knob.type, "__metadata__", ()) if knob else ()
    for note in (note for note in notes if isinstance(note, Range)):
        bounds = (note.low, note.above) if end == "low" else (note.high, note.below)
        if any(bound is not None and (limit <= bound if end == "low" else limit >= bound) for bound in bounds):
            return False
    return True
