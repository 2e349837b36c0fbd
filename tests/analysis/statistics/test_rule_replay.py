"""How often early stopping would have thrown away the best. The expected numbers are worked out by hand."""

import random
from functools import cache

import pytest
from helpers import Told, quickstart, record
from hypothesis import given, settings
from hypothesis import strategies as st

from study.analysis.statistics import rule_replay
from study.analysis.statistics.rule_replay import ORDERS, replay, sentence
from study.spec import StudySpec
from study.spec.objective import Score
from study.sweep.early_stopping import early_stopping

HALVING = quickstart(
    "train.epochs=4", "search.early_stopping={name: asha, grace: 1, reduction: 2}", "search.confirm={top: 1, seeds: 2}"
)
HALVED = [
    Told("baseline", [0.1, 0.1, 0.1, 0.1]),
    Told("search", [0.3, 0.3, 0.3, 0.3]),
    Told("search", [0.5, 0.6, 0.7, 0.8]),
    Told("search", [0.6], "pruned"),
    Told("search", [0.1], "pruned"),
    Told("confirm", [0.25, 0.6, 0.7, 0.8], seed=1, repeats=2),
    Told("confirm", [0.9, 0.9, 0.9, 0.9], seed=2, repeats=2),
    Told("confirm", [0.1, 0.1, 0.1, 0.1], seed=1, repeats=0),
    Told("confirm", [0.1, 0.1, 0.1, 0.1], seed=2, repeats=0),
]


def test_in_how_many_orders_the_best_is_pruned():
    """At epoch 1 the others have 0.3, 0.6 and 0.1; the median of those that come before it is the cut-off. With 0.5 it
    is pruned where 0.6 came alone, in 2 of 24 orders. With 0.25 where 0.3 or 0.6 came alone (2 each), where 0.6 and one
    more came (2 each), and where all came (6). With 0.9 it never is."""
    found = replay(HALVING, record(*HALVED))
    assert found is not None
    assert found.orders == ORDERS
    assert found.own == pytest.approx(2 / 24, abs=0.05)
    assert found.fresh == pytest.approx((4 + 4 + 6) / 24 / 2, abs=0.05)
    assert found.repeats == 2


def test_what_it_keeps_instead_of_the_best_is_worse_by_so_much():
    """0.5 at epoch 1, the best in the end, is pruned only where 0.6 came alone before it: in one of six orders 0.7 is
    kept in place of 0.8."""
    few = [HALVED[0], Told("search", [0.6, 0.6, 0.7, 0.7]), HALVED[2], Told("search", [0.1], "pruned")]
    found = replay(HALVING, record(*few))
    assert found is not None
    assert found.lost == pytest.approx(0.1 / 6, abs=0.005)
    said = sentence(HALVING, record(*few))
    assert said is not None
    assert said.endswith(
        " Of the trials whose end is known, the best that it kept was on average "
        f"{100 * found.lost:.1f} points behind the best."
    )


def test_an_end_that_is_not_known_is_not_taken_for_zero():
    """Which would be the best there is of a metric of which less is better."""
    goal, rule = "search.metric=val/equalized_odds", "search.early_stopping={name: asha, grace: 1, reduction: 2}"
    spec = quickstart(goal, "train.epochs=4", rule)
    values = [[0.5] * 4, [0.2, 0.2, 0.3, 0.3], [0.3, 0.3, 0.3, None]]
    told = [Told("search", one, metric="val/equalized_odds") for one in values]
    found = replay(spec, record(*told, Told("search", [0.9], "pruned", metric="val/equalized_odds")))
    assert found is not None
    assert found.lost == 0.0  # 0.2 at the first rung is pruned in no order


def test_it_is_said_in_a_sentence():
    said = sentence(HALVING, record(*HALVED))
    assert said is not None
    assert said.startswith("asha pruned 2 trials and saved 30% of the search's epochs, about 12 s of trial time. ")
    assert f"Replayed with its trials in {ORDERS} other orders, it would have thrown away the best in " in said
    assert "with those of its fresh seeds" in said


def test_where_nothing_was_pruned_nothing_is_said():
    assert sentence(HALVING, record(*HALVED[:3])) is None
    assert sentence(HALVING, record()) is None


def test_of_several_metrics_or_a_baseline_that_is_best_the_risk_is_not_said():
    several = quickstart("search.metric=[val/accuracy, val/equalized_odds]")
    assert replay(several, record(*HALVED)) is None
    assert replay(HALVING, record(Told("baseline", [0.9] * 4), *HALVED[1:5])) is None


@cache
def halving(metric: str, reduction: int) -> StudySpec:
    rule = f"search.early_stopping={{name: asha, grace: 1, reduction: {reduction}}}"
    return quickstart("train.epochs=2", f"search.metric={metric}", rule)


@pytest.mark.parametrize("metric", ["val/accuracy", "val/equalized_odds"])
@settings(max_examples=20)
@given(
    values=st.lists(st.sampled_from([0.2, 0.5]) | st.floats(0, 1), min_size=2, max_size=8), reduction=st.integers(2, 4)
)
def test_an_order_is_decided_as_the_sweep_does(metric: str, values: list[float], reduction: int) -> None:
    spec = halving(metric, reduction)
    sign = 1.0 if spec.mode == "max" else -1.0
    order = list(range(len(values)))
    random.Random(3).shuffle(order)
    rule = early_stopping(spec)
    stops = {trial: rule.prunes(trial, 1, Score((values[trial],), (sign * values[trial],))) for trial in order}
    curves = [{1: sign * value} for value in values]
    for trial in order:
        assert rule_replay._pruned(curves, trial, [curves[trial]], [1], reduction, 3) == [stops[trial]]
