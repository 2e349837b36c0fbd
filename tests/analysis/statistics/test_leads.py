"""What the lead is computed from, and small versions of its simulations."""

import math

import numpy as np
import pytest
from benchmarks.simulations import leads
from helpers import Told, quickstart, record
from hypothesis import given, settings
from hypothesis import strategies as st

from study.analysis.statistics import hypervolume as volumes
from study.analysis.statistics.debiased import group_range, sampling_error, worst_group
from study.analysis.statistics.difference import final_side
from study.analysis.statistics.edges import edges
from study.analysis.statistics.hypervolume import hypervolume, last_growth, over_trials, reference_point
from study.analysis.statistics.next_step import MOST_SEEDS, power, seeds_needed
from study.ranking import Candidate, searched
from study.spec import StudySpec


def test_small_simulations_keep_what_the_lead_promises() -> None:
    rng = np.random.default_rng(11)
    rows = [
        *leads.seeds(300, rng),
        leads.false_alarms(2, 24, 60, rng),
        leads.hits(20, rng),
        leads.nothing_better(10, rng),
        leads.came_early(20, rng),
        leads.the_best(3, 3, 40, rng),
        leads.split_error(300, rng),
        leads.volume(3, 40, rng),
    ]
    assert [row.statement for row in rows if not row.holds] == []


def test_the_seeds_that_a_difference_needs() -> None:
    """Of 1 standard deviation, known: 10 pairs have a power of 80.3%, 9 one of 75% (tables of Cohen 1988)."""
    assert seeds_needed(1.0, 1.0, 1e9) == 10
    assert seeds_needed(-1.0, 1.0, 1e9) == 10
    assert power(1.0, 9) < 0.8 <= power(1.0, 10)
    few, many = seeds_needed(1.0, 1.0, 2), seeds_needed(1.0, 1.0, 9)
    assert few is not None
    assert many is not None
    assert few > many > 10, "a spread known from few seeds is taken to be larger"
    chosen = seeds_needed(1.0, 1.0, 1e9, among=5)
    assert chosen is not None
    assert chosen > 10
    assert seeds_needed(0.01, 1.0, 1e9) is None, f"more than {MOST_SEEDS}"
    assert seeds_needed(0.0, 1.0, 2) is None
    assert seeds_needed(1.0, 0.0, 2) == 2


POINTS = st.lists(st.tuples(*[st.floats(0, 1)] * 3), min_size=1, max_size=6)


@settings(max_examples=40)
@given(POINTS, st.permutations(range(3)))
def test_a_volume_does_not_depend_on_the_order_of_points_or_metrics(points: list[tuple], order: list[int]) -> None:
    turned = [tuple(point[place] for place in order) for point in reversed(points)]
    volume = hypervolume(points, (0.0, 0.0, 0.0))
    assert hypervolume(turned, (0.0, 0.0, 0.0)) == pytest.approx(volume)
    assert max(math.prod(point) for point in points) - 1e-12 <= volume <= 1
    assert hypervolume([*points, (0.0, 0.5, 0.5)], (0.0, 0.0, 0.0)) == pytest.approx(volume), "on the edge: nothing"


THREE = ("val/accuracy", "val/worst_group_accuracy", "val/unbiased_accuracy")


@settings(max_examples=20)
@given(st.lists(st.tuples(*[st.integers(0, 5)] * 3), min_size=1, max_size=12))
def test_the_volume_over_trials_is_that_of_each_front(points: list[tuple]) -> None:
    spec, found = of_three(points)
    grown = over_trials(spec, found)
    whole = [hypervolume([tuple(v / 5 for v in p) for p in points[: n + 1]], (0.0,) * 3) for n in range(len(points))]
    assert list(grown.values()) == pytest.approx(whole)
    last = [n for n, (before, after) in enumerate(zip([0.0, *whole], whole, strict=False)) if after > before + 1e-9]
    assert last_growth(spec, found) == (last[-1] if last else None)


def test_a_front_of_many_takes_few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """150 points, none of which another dominates. Anew after each it would be 11,325 areas."""
    areas, area = [], volumes._area
    monkeypatch.setattr(volumes, "_area", lambda points, reference: areas.append(1) or area(points, reference))
    rng = np.random.default_rng(0)
    points = rng.dirichlet([1.0] * 3, size=150)
    spec, found = of_three((5 * points).tolist())
    assert sorted(over_trials(spec, found).values())[-1] > 0
    assert 0 < len(areas) < 4000


def of_three(points: list) -> tuple[StudySpec, list[Candidate]]:
    """A search of three metrics with these values, in fifths."""
    spec = quickstart(f"search.metric=[{', '.join(THREE)}]", "search.early_stopping={name: none}", "train.epochs=1")
    told = [
        Told(
            "search",
            [point[0] / 5],
            further={name: value / 5 for name, value in zip(THREE[1:], point[1:], strict=True)},
        )
        for point in points
    ]
    return spec, sorted(searched(record(*told), spec), key=lambda candidate: candidate.trial.number)


def test_the_reference_is_the_worst_that_a_metric_can_be() -> None:
    spec = quickstart("search.metric=[val/accuracy, val/equalized_odds]")
    assert reference_point(spec, []) == (0.0, 1.0)


def test_a_range_of_few_steps_or_few_trials_has_no_edge() -> None:
    def rising(space: str, trials: int) -> bool:
        spec = quickstart(f"search.space={{method.lambda: {space}}}", "search.baseline=null")
        told = [Told("search", [0.9 - at / 100], params={"method.lambda": 2.0 - at * 0.05}) for at in range(trials)]
        return bool(edges(spec, record(*told)))

    assert rising("{low: 0.0, high: 2.0}", 20)
    assert not rising("{low: 0.0, high: 2.0}", 9)
    assert not rising("{low: 0.0, high: 2.0, step: 1.0}", 20)
    assert not rising("{choices: [0.0, 1.0, 2.0]}", 20)


def test_the_worst_group_its_size_and_how_far_it_may_be_off() -> None:
    groups = {"test/group_0_0_accuracy": 0.9, "test/group_0_1_accuracy": 0.5, "test/group_1_0_accuracy": 0.7}
    tested = {"test/worst_group_accuracy": 0.5, "test/accuracy": 1.0, "test/equalized_odds": 0.1, **groups}
    errors = {"val/worst_group_accuracy": 0.4, "val/worst_group_accuracy_standard_error": 0.03}
    spec, found = quickstart(), record(Told("final", [0.5], tested=tested, further=errors))
    side = final_side(spec, found)
    assert side is not None
    group = worst_group(found, side, "test")
    assert group is not None
    assert (group.name, group.samples) == ("class 0 with bias class 1", None)
    assert sampling_error(found, side, "test/worst_group_accuracy") is None
    found.groups = {"test": [[50, 25], [0, 100]], "classes": ["cat", "dog"], "biases": ["dark", "light"]}
    group = worst_group(found, side, "test")
    assert group is not None
    assert (group.name, group.samples) == ("cat with light", 25)
    assert sampling_error(found, side, "test/worst_group_accuracy") == pytest.approx(0.1)
    assert sampling_error(found, side, "test/accuracy") == pytest.approx(math.sqrt(176 / 177 / 177 / 175))
    assert sampling_error(found, side, "val/worst_group_accuracy") == 0.03
    assert sampling_error(found, side, "test/equalized_odds") is None
    assert group_range(found, "test") == (3, 25, 100)
    assert group_range(found, "val") is None
