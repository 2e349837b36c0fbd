"""Conditions of a space, and the order in which a trial's parameters are decided."""

from functools import partial
from typing import Any

import helpers
import pytest
from helpers import searching

refused = partial(helpers.refused, of=searching)


NESTED = """{
    train.momentum: {low: 0.5, high: 0.9, when: {train.optimizer: [sgd], train.schedule: [cosine, steps]}},
    train.lr_floor: {choices: [0.0, 0.1], when: {train.schedule: [cosine]}},
    train.schedule: {choices: [constant, cosine, steps], when: {train.optimizer: [sgd]}},
    train.optimizer: {choices: [adam, sgd]},
    method.alpha: {low: 0.1, high: 1.0}}"""


def test_conditions_come_first_and_nest() -> None:
    spec = searching(NESTED)
    assert list(spec.space.domains) == [
        "train.optimizer",
        "train.schedule",
        "train.momentum",
        "train.lr_floor",
        "method.alpha",
    ]
    asked: dict[str, Any] = {}

    def first(key: str, domain: Any) -> Any:
        asked[key] = domain
        return domain.boundary_values()[0]

    assert spec.space.suggest_params(first) == {"train.optimizer": "adam", "method.alpha": 0.1}
    assert list(asked) == ["train.optimizer", "method.alpha"]
    last = spec.space.suggest_params(lambda _, domain: domain.boundary_values()[-1])
    assert last == {"train.optimizer": "sgd", "train.schedule": "steps", "train.momentum": 0.9, "method.alpha": 1.0}
    middle = {"train.optimizer": "sgd", "train.schedule": "cosine"}
    assert spec.space.applies_to("train.lr_floor", middle)
    assert not spec.space.applies_to("train.lr_floor", {**middle, "train.schedule": "constant"})


def test_every_combination_that_a_trial_can_have_is_a_case() -> None:
    cases = list(searching(NESTED).space.combinations_of_deciding_keys())
    assert cases[0] == {"train.optimizer": "adam"}
    assert len(cases) == 1 + 3


@pytest.mark.parametrize(
    ("params", "inside"),
    [
        ({"train.optimizer": "adam", "method.alpha": 0.5}, True),
        ({"train.optimizer": "adam", "method.alpha": 0.05}, False),
        ({"train.optimizer": "adam", "method.alpha": 0.5, "train.momentum": 0.6}, False),
        ({"train.optimizer": "sgd", "train.schedule": "constant", "method.alpha": 0.5}, True),
        ({"train.optimizer": "sgd", "method.alpha": 0.5}, False),
    ],
)
def test_what_the_search_could_give_is_inside(params: dict[str, Any], inside: bool) -> None:
    assert searching(NESTED).space.contains(params) is inside


@pytest.mark.parametrize(
    ("params", "outside"),
    [
        ({"train.optimizer": "adam", "method.alpha": 0.5}, []),
        ({"train.optimizer": "adam", "method.alpha": 0.05}, ["method.alpha 0.05"]),
        ({"train.optimizer": "adam"}, []),
    ],
)
def test_values_that_the_search_cannot_give_are_told(params: dict[str, Any], outside: list[str]) -> None:
    assert searching(NESTED).space.values_outside(params) == outside


def test_a_single_value_is_a_constant() -> None:
    spec = searching("{method.alpha: 0.5, train.optimizer: sgd, method.base_temperature: null, method.pooled: false}")
    constants = {"method.alpha": 0.5, "train.optimizer": "sgd", "method.base_temperature": None, "method.pooled": False}
    assert spec.space.suggest_params(lambda _, domain: domain.boundary_values()[0]) == constants
    assert spec.trial_document(constants)["train"]["optimizer"] == "sgd"


@pytest.mark.parametrize(
    ("condition", "words"),
    [
        ("{train.optimiser: [sgd]}", "when.train.optimiser: is not in search.space. Did you mean 'train.optimizer'?"),
        (
            "{train.optimizer: [lars]}",
            "when.train.optimizer: 'lars' given, which train.optimizer never is. Allowed: 'adam'",
        ),
        ("{method.alpha: [0.5]}", "when.method.alpha: method.alpha is searched as a range, allowed in a condition are"),
        ("{train.optimizer: sgd}", "when.train.optimizer: 'sgd' given, allowed is a list, as ['sgd']"),
        ("[sgd]", "search.space.train.momentum.when: ['sgd'] given, allowed is a mapping of keys to values"),
        ("{train.momentum: [0.5]}", "search.space.train.momentum.when.train.momentum: train.momentum is searched as a"),
    ],
)
def test_a_condition_that_cannot_be_is_told(condition: str, words: str) -> None:
    others = "train.optimizer: {choices: [adam, sgd]}, method.alpha: {low: 0.1, high: 1.0}"
    assert words in refused(f"{{train.momentum: {{low: 0.5, high: 0.9, when: {condition}}}, {others}}}")


def test_conditions_in_a_circle_are_told() -> None:
    circle = """{train.optimizer: {choices: [adam, sgd], when: {train.schedule: [steps]}},
        train.schedule: {choices: [constant, steps], when: {train.optimizer: [sgd]}}}"""
    assert "conditions wait for each other: train." in refused(circle)
    itself = "{train.optimizer: {choices: [adam, sgd], when: {train.optimizer: [sgd]}}}"
    assert "search.space.train.optimizer: conditions wait for each other: train.optimizer, train.opt" in refused(itself)


def test_a_key_that_no_trial_has_is_told() -> None:
    never = """{train.optimizer: {choices: [adam, sgd]},
        train.schedule: {choices: [constant, steps], when: {train.optimizer: [sgd]}},
        train.momentum: {low: 0.5, high: 0.9, when: {train.optimizer: [adam], train.schedule: [steps]}}}"""
    assert "search.space.train.momentum: is searched in no trial" in refused(never)


def test_too_many_combinations_to_check_are_refused() -> None:
    names = ", ".join(
        f"train.{key}: {{choices: {list(range(1, 14))}}}" for key in ("batch_size", "crop_size", "threads")
    )
    keys = "{train.batch_size: [1], train.crop_size: [1], train.threads: [1]}"
    found = refused(f"{{{names}, method.alpha: {{low: 0.1, high: 1.0, when: {keys}}}}}")
    assert "search.space: more than 2000 combinations of train.batch_size, train.crop_size, train.threads" in found


def test_a_condition_can_be_set_on_the_command_line() -> None:
    space = "{train.optimizer: {choices: [adam, sgd]}, train.momentum: {low: 0.5, high: 0.9}}"
    spec = searching(space, "search.space.train.momentum.when.train.optimizer=[sgd]")
    assert spec.search.space["train.momentum"].when == {"train.optimizer": ["sgd"]}
