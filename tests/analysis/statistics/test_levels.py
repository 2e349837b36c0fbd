"""Values of a parameter as rows: each for itself, or in bins."""

import math

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from study.analysis.statistics.parameter_tables import MAX_EXACT_LEVELS, assign_levels


def test_few_values_stand_for_themselves_in_order() -> None:
    found = assign_levels([1.0, 0.25, 1, 0.5], bins=5)
    assert list(found.categories) == [0.25, 0.5, 1.0]
    assert list(found) == [1.0, 0.25, 1.0, 0.5]


def test_what_is_no_number_comes_behind_as_text() -> None:
    found = assign_levels(["b", 2, None, True, "a", math.nan, 1, [1, 2]], bins=5)
    assert list(found.categories) == [1, 2, "b", "-", "true", "a", "1, 2"]


def test_many_numbers_get_bins_of_equal_counts_if_asked_for() -> None:
    values = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 70.0, 80.0]
    found = assign_levels([*values, "none"], bins=3)
    assert list(found.categories) == ["[0.0, 2.667)", "[2.667, 5.333)", "[5.333, 80.0)", "none"]
    assert [list(found).count(label) for label in found.categories] == [3, 3, 3, 1]
    assert list(assign_levels(values, bins=None).categories) == values
    assert list(assign_levels(values[:MAX_EXACT_LEVELS], bins=2).categories) == values[:MAX_EXACT_LEVELS]


def test_the_largest_number_is_in_the_last_bin_and_ends_it() -> None:
    large = [1e9 + number for number in range(12)]
    assert list(assign_levels(large, bins=2).categories) == [
        "[1000000000.0, 1000000005.5)",
        "[1000000005.5, 1000000011.0)",
    ]
    below = [float(-number) for number in range(12)]
    assert list(assign_levels(below, bins=2).categories) == ["[-11.0, -5.5)", "[-5.5, 0.0)"]


NUMBERS = st.lists(
    st.floats(-1e6, 1e6) | st.integers(-1000, 1000), min_size=MAX_EXACT_LEVELS + 1, max_size=40, unique=True
)


@example(2, [0.0, 2.0, 3.0, 4.0, 2.2250738585072014e-308, -1.0, -2.0, -0.5, 1])
@example(2, [-2.2250738585072014e-308, *map(float, range(1, 9))])
@settings(max_examples=20)
@given(st.sampled_from([1, 2, 5]), NUMBERS)
def test_every_number_is_in_a_bin_and_bins_rise(bins: int, numbers: list[float]) -> None:
    found = assign_levels(numbers, bins)
    assert 1 <= len(found.categories) <= bins
    ordered = [found[place] for place in np.argsort(numbers)]
    assert ordered == sorted(ordered, key=list(found.categories).index)
