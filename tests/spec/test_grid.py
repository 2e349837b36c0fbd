"""A space as a grid; what the samplers cannot search."""

from itertools import islice
from pathlib import Path

import pytest
from helpers import quickstart

from study.errors import UserError
from study.spec import StudySpec, load_study
from study.spec.domain import MAX_GRID_CELLS, Domain, grid_values_of_domain
from study.spec.sampler_capabilities import SAMPLER_CAPABILITIES
from study.spec.space import count_grid_cells, iterate_grid_cells
from study.sweep.search_stage import UntriedSuggestions


def spec_of(sampler: str, space: str, *assignments: str) -> StudySpec:
    return quickstart(f"search.sampler={sampler}", f"search.space={{{space}}}", "search.baseline=null", *assignments)


@pytest.mark.parametrize(
    ("domain", "whole", "expected"),
    [
        (Domain(choices=["b", None, 1.5]), False, ["b", None, 1.5]),
        (Domain(low=0.1, high=0.5, step=0.1), False, [0.1, 0.2, 0.3, 0.4, 0.5]),
        (Domain(low=0, high=1, step=0.4), False, [0.0, 0.4, 0.8]),
        (Domain(low=32, high=128, step=48), True, [32, 80, 128]),
        (Domain(low=2, high=5), True, [2, 3, 4, 5]),
        (Domain(low=0.5, high=0.5), False, [0.5]),
    ],
)
def test_the_values_of_a_key(domain: Domain, whole: bool, expected: list[object]) -> None:
    found = grid_values_of_domain(domain, whole)
    assert found == expected
    assert [type(one) for one in found] == [type(one) for one in expected]


def test_cells_come_in_the_files_order_and_leave_out_what_does_not_apply() -> None:
    space = spec_of(
        "grid",
        "train.optimizer: {choices: [sgd, adam]}, method.lambda: {low: 0, high: 1, step: 1}, "
        "train.momentum: {choices: [0.5, 0.9], when: {train.optimizer: [sgd]}}",
    ).space
    assert list(iterate_grid_cells(space)) == [
        {"train.optimizer": "sgd", "method.lambda": 0.0, "train.momentum": 0.5},
        {"train.optimizer": "sgd", "method.lambda": 0.0, "train.momentum": 0.9},
        {"train.optimizer": "sgd", "method.lambda": 1.0, "train.momentum": 0.5},
        {"train.optimizer": "sgd", "method.lambda": 1.0, "train.momentum": 0.9},
        {"train.optimizer": "adam", "method.lambda": 0.0},
        {"train.optimizer": "adam", "method.lambda": 1.0},
    ]
    assert count_grid_cells(space) == 6


def test_a_large_grid_is_not_listed_to_be_counted() -> None:
    steps = "{low: 0.0, high: 1.0, step: 0.001}"
    space = spec_of("random", f"method.alpha: {steps}, method.lambda: {steps}, method.epsilon: {steps}").space
    assert count_grid_cells(space) == MAX_GRID_CELLS + 1
    assert len(list(islice(iterate_grid_cells(space), 5))) == 5


STEPS = "{low: 0.0, high: 1.0, step: 0.001}"
TWO = "search.metric=[val/accuracy, val/equalized_odds]"
WHEN = "train.optimizer: {choices: [sgd, adam]}, train.momentum: {low: 0.5, high: 0.9, when: {train.optimizer: [sgd]}}"


@pytest.mark.parametrize(
    ("sampler", "space", "given", "message"),
    [
        ("grid", "method.lambda: {low: 0.0, high: 1.0}", (), "method.lambda: the range 0.0 to 1.0 has no step"),
        ("grid", "model.width: {low: 4, high: 64, log: true}", (), "model.width: the range 4 to 64 has no step"),
        ("grid", f"method.alpha: {STEPS}, method.lambda: {STEPS}", (), "search.space: has more than 100000 cells"),
        ("grid", "method.alpha: {low: 0, high: 1, step: 1.0e-6}", (), "in steps of 1e-06 are more than"),
        ("grid", "model.width: {low: 4, high: 9000000000000000}", (), "in steps of 1 are more than 100000 values"),
        ("gp", WHEN, (), "search.space.train.momentum: is not in every trial, as gp needs it"),
    ],
)
def test_what_a_sampler_cannot_search_is_told_at_load(
    sampler: str, space: str, given: tuple[str, ...], message: str
) -> None:
    spec_of("random", space, *given)
    with pytest.raises(UserError) as error:
        spec_of(sampler, space, *given)
    assert message in str(error.value)
    assert len(str(error.value).splitlines()) == 1


@pytest.mark.parametrize("sampler", [name for name, can in SAMPLER_CAPABILITIES.items() if not can.tries_every_cell])
@pytest.mark.parametrize(
    ("domain", "message"),
    [
        ("{low: -1.0e+308, high: 1.0e+308}", "method.x: the range -1e+308 to 1e+308 is wider than the largest number"),
        ("{low: 0.0, high: 1.0, step: 1.0e-300}", "method.x.step: 1e-300 given, more than 10000000 steps from 0.0"),
    ],
)
def test_a_range_that_no_sampler_can_take_is_told_at_load(
    sampler: str, domain: str, message: str, tmp_path: Path
) -> None:
    with pytest.raises(UserError) as error:
        own(tmp_path, sampler, domain)
    assert message in str(error.value)
    assert len(str(error.value).splitlines()) == 1


def test_gp_does_not_list_the_whole_numbers_of_a_wide_range(tmp_path: Path) -> None:
    wide = "{low: 0, high: 9007199254740992}"
    with pytest.raises(UserError, match=r"search.space.method.x: the range 0 to 9007199254740992 has more than"):
        own(tmp_path, "gp", wide)
    assert UntriedSuggestions(own(tmp_path, "tpe", wide)).suggest_untried_params(0) is not None


def own(tmp_path: Path, sampler: str, domain: str) -> StudySpec:
    """A study of a function of one's own, whose key may have any range."""
    file = tmp_path / "own.yaml"
    search = f"{{space: {{method.x: {domain}}}, metric: val/accuracy, sampler: {sampler}, trials: 20}}"
    method = "{name: own_function, function: own_functions:train}"
    file.write_text(f"name: own\nmethod: {method}\ntrain: {{epochs: 4}}\nsearch: {search}\n")
    return load_study(str(file))


@pytest.mark.parametrize(
    ("baseline", "expected"),
    [("null", 6), ("{method.lambda: 0.5, method.epsilon: 0.1}", 6), ("{method.lambda: 0.6, method.epsilon: 0.1}", 7)],
)
def test_a_search_tries_each_configuration_of_a_small_space_once(baseline: str, expected: int) -> None:
    cells = "search.space={method.lambda: {low: 0, high: 1, step: 0.5}, method.epsilon: {choices: [0.0, 0.1]}}"
    given = (cells, f"search.baseline={baseline}", "search.trials=null")
    assert quickstart("search.sampler=grid", *given).n_configurations == expected
    assert quickstart("search.sampler=random", *given).n_configurations == expected
    assert quickstart("search.sampler=grid", *given[:2], "search.trials=3").n_configurations == 3
