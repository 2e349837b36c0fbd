"""Values as coordinates between 0 and 1."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from scipy.stats import kstest

from study.spec.optuna_distributions import unit_coordinate_of_value, value_at_unit_coordinate

RANGES = [
    FloatDistribution(-1.0, 3.0),
    FloatDistribution(1e-4, 10.0, log=True),
    FloatDistribution(0.1, 0.7, step=0.2),
    IntDistribution(3, 17),
    IntDistribution(2, 14, step=3),
    IntDistribution(1, 100, log=True),
]
UNITS = [(index + 0.5) / 2000 for index in range(2000)]


@pytest.mark.parametrize("distribution", RANGES, ids=str)
@given(st.floats(0, 1))
def test_a_value_is_in_its_range_and_its_coordinate_gives_it_again(
    distribution: FloatDistribution | IntDistribution, coordinate: float
) -> None:
    value = value_at_unit_coordinate(distribution, coordinate)
    assert distribution._contains(value)
    assert type(value) is (int if isinstance(distribution, IntDistribution) else float)
    assert 0 <= unit_coordinate_of_value(distribution, value) <= 1
    assert value_at_unit_coordinate(distribution, unit_coordinate_of_value(distribution, value)) == pytest.approx(value)


def test_the_ends_of_a_range_are_those_of_its_coordinates() -> None:
    for one in RANGES:
        assert (value_at_unit_coordinate(one, 0.0), value_at_unit_coordinate(one, 1.0)) == pytest.approx(
            (one.low, one.high)
        )


def test_every_choice_and_step_has_the_same_share() -> None:
    for one in (RANGES[2], RANGES[4], CategoricalDistribution(["a", None, 1, 2.5])):
        found = [value_at_unit_coordinate(one, coordinate) for coordinate in UNITS]
        assert {found.count(value) for value in set(found)} == {2000 // len(set(found))}


def test_a_log_range_is_even_on_its_log_scale() -> None:
    found = [value_at_unit_coordinate(RANGES[1], coordinate) for coordinate in UNITS]
    assert kstest(found, "loguniform", args=(1e-4, 10.0)).pvalue > 0.99


@pytest.mark.parametrize(
    "one", [FloatDistribution(0.3, 0.3, log=True), IntDistribution(5, 5), CategoricalDistribution([None])], ids=str
)
def test_a_constant_is_itself(one: BaseDistribution) -> None:
    assert value_at_unit_coordinate(one, 0.5) == value_at_unit_coordinate(one, 0.0) == getattr(one, "low", None)
