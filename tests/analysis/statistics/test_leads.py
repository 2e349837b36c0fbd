"""What the lead is computed from, and small versions of its simulations."""

import math
from operator import ge

import numpy as np
import pytest
from benchmarks.simulations import leads
from helpers import Told, quickstart, record
from hypothesis import given, settings
from hypothesis import strategies as st

from study.analysis.statistics.debiased import sampling_error, worst_group
from study.analysis.statistics.difference import final_side
from study.analysis.statistics.next_step import MOST_SEEDS, edges, last_growth, power, seeds_needed


@pytest.mark.slow
def test_small_simulations_keep_what_the_lead_promises() -> None:
    rng = np.random.default_rng(11)
    rows = [
        *leads.seeds(300, rng),
        leads.false_alarms(2, 24, 60, rng),
        leads.hits(20, rng),
        leads.nothing_better(10, rng),
        leads.the_best(3, 3, 40, rng),
        leads.split_error(300, rng),
    ]
    assert [row.statement for row in rows if not row.holds] == []


def test_the_seeds_that_a_difference_needs() -> None:
    """Of 1 standard deviation, known: 10 pairs have a power of 80.3%, 9 one of 75% (tables of Cohen 1988)."""
    assert seeds_needed(1.0, 1.0, 1e9) == 10
    assert seeds_needed(-1.0, 1.0, 1e9) == 10
    assert power(1.0, 9) < 0.8 <= power(1.0, 10)
    known, few, chosen = seeds_needed(2.5, 1.0, 1e9), seeds_needed(2.5, 1.0, 2), seeds_needed(2.5, 1.0, 1e9, among=5)
    assert known is not None
    assert few is not None
    assert chosen is not None
    assert few > known, "a spread known from few seeds is taken to be larger"
    assert chosen > known
    assert seeds_needed(0.9, 1.0, 1e9) is None, f"more than {MOST_SEEDS}"
    assert seeds_needed(0.0, 1.0, 2) is None
    assert seeds_needed(1.0, 0.0, 2) == 2


THREE = ("val/accuracy", "val/worst_group_accuracy", "val/unbiased_accuracy")


@settings(max_examples=10)
@given(st.lists(st.tuples(*[st.integers(0, 5)] * 3), min_size=1, max_size=12))
def test_the_front_last_grew_with_the_last_trial_that_no_earlier_one_equals_or_beats(points: list[tuple]) -> None:
    """Of three metrics, with these values in fifths."""
    grown = [n for n, at in enumerate(points) if not any(all(map(ge, other, at)) for other in points[:n])]
    spec = quickstart(f"search.metric=[{', '.join(THREE)}]", "search.early_stopping={name: none}", "train.epochs=1")
    told = [
        Told(
            "search",
            [point[0] / 5],
            further={name: value / 5 for name, value in zip(THREE[1:], point[1:], strict=True)},
        )
        for point in points
    ]
    assert last_growth(spec, record(*told)) == grown[-1]


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
    assert worst_group(found, side, "test") is None
    assert sampling_error(found, side, "test/worst_group_accuracy") is None
    found.groups = {"test": [[50, 25], [0, 100]], "classes": ["cat", "dog"], "biases": ["dark", "light"]}
    told = worst_group(found, side, "test")
    assert told is not None
    assert [(group.name, group.samples) for group in told.worst] == [("class 'cat' with bias class 'light'", 25)]
    assert sampling_error(found, side, "test/worst_group_accuracy") == pytest.approx(0.1)
    assert sampling_error(found, side, "test/accuracy") == pytest.approx(math.sqrt(176 / 177 / 177 / 175))
    assert sampling_error(found, side, "val/worst_group_accuracy") == 0.03
    assert sampling_error(found, side, "test/equalized_odds") is None
    assert told.sizes == (25, 50, 100)
    assert worst_group(found, side, "val") is None
