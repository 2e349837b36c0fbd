"""The steps from one configuration to another: every configuration on the way can be trained."""

from itertools import pairwise
from typing import Any

import pytest
from helpers import quickstart
from hypothesis import given
from hypothesis import strategies as st

from study.errors import UserError
from study.ranking import ablation_steps as ablation_steps
from study.ranking.ablation_steps import (
    ablation_configurations,
    differing_knobs,
    params_after_steps,
    path_configurations,
    plan_steps,
    why_untrainable,
)
from study.spec import StudySpec

SPEC = quickstart()
START = {"method.alpha": 1.0, "method.lambda": 0.0, "method.epsilon": 0.0}
END = {"method.alpha": 0.02, "method.lambda": 1.2, "method.epsilon": 0.25}

CONDITIONAL = quickstart(
    "search.space={method.name: {choices: [eps_sup_info_nce, sup_con, wcl]}, method.tau_plus: {low: 0.0, high: 0.2}, "
    "method.temperature: {low: 0.05, high: 0.5}, method.epsilon: {low: 0.0, high: 0.5}}",
    "search.baseline={method.name: sup_con, method.temperature: 0.1}",
    "train.augmentation=crop_flip",
)


def alone(*keys: str) -> list[tuple[str, ...]]:
    return [(key,) for key in keys]


def test_equal_knobs_are_left_out() -> None:
    assert differing_knobs(SPEC, START, END) == ["method.alpha", "method.lambda", "method.epsilon"]
    assert differing_knobs(SPEC, START, {**START, "method.lambda": 1.0}) == ["method.lambda"]
    assert differing_knobs(SPEC, START, {**START, "method.alpha": 1}) == []


def test_a_knob_that_one_side_does_not_give_has_the_study_files_value() -> None:
    temperature = SPEC.base["method"]["temperature"]
    assert differing_knobs(SPEC, START, {**START, "method.temperature": temperature}) == []
    assert differing_knobs(SPEC, START, {**START, "method.temperature": 2 * temperature}) == ["method.temperature"]
    way = params_after_steps(SPEC, START, {**END, "method.temperature": 2 * temperature}, [("method.alpha",)])
    assert way == {**START, "method.alpha": 0.02, "method.temperature": temperature}


def test_independent_knobs_are_steps_of_their_own_in_the_order_asked_for() -> None:
    steps, merges = plan_steps(SPEC, START, END, ["method.epsilon", "method.alpha"])
    assert (steps, merges) == (alone("method.epsilon", "method.alpha", "method.lambda"), [])


def test_knobs_that_are_not_asked_for_move_together_at_last() -> None:
    steps, merges = plan_steps(SPEC, START, END, [], ["method.lambda"])
    assert steps == [("method.lambda",), ("method.alpha", "method.epsilon")]
    assert merges == [], "it was asked for"


def test_a_knob_that_only_one_side_has_moves_with_the_method_that_has_it() -> None:
    start = {"method.name": "sup_con", "method.temperature": 0.1}
    end = {"method.name": "wcl", "method.tau_plus": 0.2, "method.temperature": 0.3}
    steps, merges = plan_steps(CONDITIONAL, start, end, ["method.temperature"])
    assert steps == [("method.temperature",), ("method.name", "method.tau_plus")]
    assert [merge.reason for merge in merges] == ["method.tau_plus depends on method.name"]


def test_a_knob_searched_under_a_condition_moves_with_what_it_depends_on() -> None:
    spec = quickstart(
        "search.space={method.regulariser: {choices: [none, fair_kl]}, method.lambda: {low: 0.1, high: 2.0, "
        "when: {method.regulariser: [fair_kl]}}, method.alpha: {low: 0.1, high: 1.0}}",
        "search.baseline={method.regulariser: none, method.alpha: 1.0}",
    )
    end = {"method.regulariser": "fair_kl", "method.lambda": 1.5, "method.alpha": 0.3}
    steps, merges = plan_steps(spec, {"method.regulariser": "none", "method.alpha": 1.0}, end, [])
    assert [set(step) for step in steps] == [{"method.regulariser", "method.lambda"}, {"method.alpha"}]
    assert "method.lambda depends on method.regulariser" in merges[0].reason


def test_knobs_that_the_study_refuses_apart_move_together_and_it_is_told() -> None:
    """epsilon is at most 2/temperature: 15 fits 0.1 alone, and 0.25 fits both."""
    start = {"method.temperature": 0.25, "method.epsilon": 0.25, "method.alpha": 1.0}
    end = {"method.temperature": 0.1, "method.epsilon": 15.0, "method.alpha": 0.3}
    steps, merges = plan_steps(SPEC, start, end, ["method.alpha"])
    assert steps == [("method.alpha",), ("method.temperature", "method.epsilon")] or steps == [
        ("method.alpha",),
        ("method.epsilon", "method.temperature"),
    ]
    assert "the study refuses" in merges[0].reason
    assert "2/temperature = 8" in merges[0].reason


def test_ends_that_are_refused_themselves_are_told() -> None:
    with pytest.raises(UserError, match="its own configurations are refused"):
        plan_steps(SPEC, START, {**START, "method.epsilon": 1e6}, [])


@pytest.mark.parametrize(
    ("params", "why"),
    [
        ({"method.tau_plus": 0.5}, "there is no method.tau_plus"),
        ({"method.epsilon": -1.0}, "method.epsilon: -1.0 given"),
        ({"method.epsilon": 100.0}, "method.epsilon: 100.0 given, allowed is at most 2/temperature"),
        ({"data.rho": 0.5}, "the study has not loaded its data"),
    ],
)
def test_what_the_study_cannot_train_is_refused(params: dict[str, Any], why: str) -> None:
    assert (why_untrainable(SPEC, params) or "").startswith(why)
    assert why_untrainable(SPEC, START) is None


@given(st.integers(1, 9))
def test_each_configuration_is_needed_once_and_the_path_leads_from_one_end_to_the_other(count: int) -> None:
    found = ablation_configurations(count)
    assert len(found) == len(set(found)) == {1: 2, 2: 4}.get(count, 3 * count - 1)
    way = path_configurations(count)
    assert (way[0], way[-1]) == (frozenset(), frozenset(range(count)))
    assert all(len(after - before) == 1 for before, after in pairwise(way))


SIDES = st.sampled_from(["sup_con", "eps_sup_info_nce", "wcl"])


@given(SIDES, SIDES, st.floats(0.05, 0.5), st.floats(0.05, 0.5), st.permutations(list(CONDITIONAL.search.space)))
def test_whatever_the_ends_every_configuration_can_be_trained(
    one: str, other: str, cold: float, warm: float, order: list[str]
) -> None:
    start, end = point(CONDITIONAL, one, cold), point(CONDITIONAL, other, warm)
    steps, _ = plan_steps(CONDITIONAL, start, end, order)
    assert sorted(key for step in steps for key in step) == sorted(differing_knobs(CONDITIONAL, start, end))
    for moved in ablation_configurations(len(steps)):
        assert (
            why_untrainable(CONDITIONAL, params_after_steps(CONDITIONAL, start, end, [steps[place] for place in moved]))
            is None
        )
    assert CONDITIONAL.trial_document(params_after_steps(CONDITIONAL, start, end, steps)) == CONDITIONAL.trial_document(
        end
    )
    assert CONDITIONAL.trial_document(params_after_steps(CONDITIONAL, start, end, [])) == CONDITIONAL.trial_document(
        start
    )


def point(spec: StudySpec, name: str, temperature: float) -> dict[str, Any]:
    """What the search could give for this method."""
    values = {"method.name": name, "method.temperature": temperature, "method.tau_plus": 0.1, "method.epsilon": 0.5}
    return spec.space.suggest_params(lambda key, _: values[key])


def test_a_label_of_an_alternative_is_a_knob() -> None:
    spec = quickstart(
        "search.alternatives={method: {cold: {name: sup_con, temperature: 0.05}}}",
        "search.space={method.name: {choices: [cold, eps_sup_info_nce]}}",
        "search.trials=2",
        "search.baseline=null",
    )
    assert ablation_steps.value_in_configuration(spec, {}, "method.name") == "eps_sup_info_nce"
    assert differing_knobs(spec, {"method.name": "eps_sup_info_nce"}, {"method.name": "cold"}) == ["method.name"]
    assert differing_knobs(spec, {}, {"method.name": "eps_sup_info_nce"}) == []
    assert differing_knobs(spec, {}, {"method.name": "cold"}) == ["method.name"]
