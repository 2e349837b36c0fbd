"""Which trials of a rung go on, against the definition in plain Python and against what the order promises."""

import math
import random
from collections.abc import Iterable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from study.spec.objective import Score
from study.spec.rungs import tie_breaker
from study.sweep.early_stopping import ByDominance, ByValue, Peers, RungScore, crowding_distance


def shown(scores: Iterable[tuple[tuple[float, ...], float]]) -> list[RungScore]:
    return [RungScore(gains, violation, tie_breaker(number)) for number, (gains, violation) in enumerate(scores)]


def admitted(peers: Peers, trials: Iterable[RungScore]) -> list[bool]:
    """Which go on, one arriving after the other."""
    found = []
    for one in trials:
        found.append(peers.admit(one))
        peers.add(one)
    return found


def dominates(one: RungScore, other: RungScore) -> bool:
    first, second = (Score(standing.gains, standing.gains, (standing.violation,)) for standing in (one, other))
    return first.dominates(second)


def precedes(one: RungScore, other: RungScore) -> bool:
    """Domination, where as large a violation leaves it to the gains, and between twins to the tie-breaker."""
    if one.violation != other.violation:
        return one.violation < other.violation
    unlimited, others = one._replace(violation=0.0), other._replace(violation=0.0)
    return dominates(unlimited, others) or (one.gains == other.gains and one.tie_break < other.tie_break)


def ahead(one: RungScore, peers: list[RungScore]) -> int:
    """How many peers stand ahead of a trial, by definition."""
    everyone = [*peers, one]
    rank = [sum(precedes(other, own) for other in everyone) for own in everyone]
    level = [own for own, fewer in zip(everyone, rank, strict=True) if fewer == rank[-1]]
    crowding = crowding_distance(np.array([own.gains for own in level]).T)
    return sum(fewer < rank[-1] for fewer in rank) + sum(apart > crowding[-1] for apart in crowding)


grid = st.integers(0, 6).map(lambda step: step / 4)
scores = st.tuples(st.tuples(grid, grid), st.sampled_from([0.0, 0.0, 0.1, 0.2]))


@settings(max_examples=40)
@given(st.lists(scores, min_size=1, max_size=20), st.integers(2, 5))
def test_a_place_is_what_the_definition_says(given: list[tuple[tuple[float, float], float]], reduction: int) -> None:
    trials = shown(given)
    expected = [ahead(one, trials[:n]) - 0.5 <= (n - 1) / reduction for n, one in enumerate(trials)]
    assert admitted(ByDominance(reduction, 2), trials) == expected


@settings(max_examples=40)
@given(st.lists(st.floats(-100, 100), min_size=1, max_size=40, unique=True), st.integers(2, 6))
def test_for_one_metric_the_order_is_ashas_but_between_the_two_at_its_cut(values: list[float], reduction: int) -> None:
    """Of the peers' places those at either side of the cut are decided alike; between, ASHA interpolates by value."""
    *peers, one = values
    by_value, by_dominance = ByValue(reduction), ByDominance(reduction, 1)
    for each in (by_value, by_dominance):
        admitted(each, shown(((value,), 0.0) for value in peers))
    better = sum(value > one for value in peers)
    cut = (len(peers) - 1) / reduction
    if better <= cut or better >= math.floor(cut) + 2:
        (own,) = shown([((one,), 0.0)])
        assert by_value.admit(own) == by_dominance.admit(own) == (better <= cut)


@pytest.mark.parametrize("reduction", [2, 3, 6, 13])
def test_the_cut_is_rays_to_the_last_bit(reduction: int) -> None:
    draw = np.random.default_rng(0)
    for count in range(1, 80):
        values = draw.random(count)
        peers = ByValue(reduction)
        admitted(peers, shown(((value,), 0.0) for value in values.tolist()))
        cut = float(np.nanpercentile(values, (1 - 1 / reduction) * 100))
        assert peers.admit(RungScore((cut,), 0.0, 0.5))
        assert not peers.admit(RungScore((math.nextafter(cut, -1),), 0.0, 0.5))


@pytest.mark.parametrize("reduction", [2, 3, 4])
def test_where_none_dominates_another_one_in_reduction_goes_on_all_along_the_front(reduction: int) -> None:
    draw = random.Random(0)
    along = [draw.random() ** 2 for _ in range(300)]
    found = admitted(ByDominance(reduction, 2), shown(((place, 1 - place), 0.0) for place in along))
    assert np.mean(found) == pytest.approx(1 / reduction, abs=0.06)
    kept = np.sort([place for place, goes_on in zip(along, found, strict=True) if goes_on])
    assert kept[0] < 0.02
    assert kept[-1] > 0.97
    assert np.diff(kept).max() < 0.1


def test_of_twins_that_nothing_dominates_one_in_reduction_goes_on() -> None:
    """Networks that collapsed to one class have no fairness gap."""
    draw = random.Random(0)
    collapsed, others = ((0.5, 0.0), 0.0), [((draw.uniform(0.6, 0.9), -draw.random()), 0.0) for _ in range(200)]
    assert np.mean(admitted(ByDominance(3, 2), shown([collapsed] * 300))) == pytest.approx(1 / 3, abs=0.02)
    mixed = [score for other in others for score in (collapsed, other)]
    found = admitted(ByDominance(3, 2), shown(mixed))
    assert sum(found[0::2]) < 0.3 * 200
    assert sum(found[1::2]) > 0.4 * 200


def test_what_keeps_the_limits_is_ahead_and_then_what_misses_them_by_less() -> None:
    peers = ByDominance(2, 1)
    admitted(peers, shown([((0.9,), 0.3), ((0.8,), 0.2), ((0.7,), 0.1), ((0.1,), 0.0)]))
    by_violation = {violation: peers.admit(RungScore((0.5,), violation, 0.5)) for violation in (0.0, 0.05, 0.15, 0.25)}
    assert by_violation == {0.0: True, 0.05: True, 0.15: True, 0.25: False}


def test_crowding_by_hand() -> None:
    points = np.array([[0.0, 0.1, 0.4, 1.0], [1.0, 0.8, 0.6, 0.0]])
    assert crowding_distance(points) == pytest.approx([np.inf, 0.4 + 0.4, 0.9 + 0.8, np.inf])
    assert crowding_distance(points[:, :1]).tolist() == [np.inf]
