"""Values of a parameter as rows: each for itself, or in bins."""

import math
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from study.analysis.statistics.cell_tables import EXACT, edges, levels


def test_few_values_stand_for_themselves_in_order() -> None:
    found = levels([1.0, 0.25, 1, 0.5], bins=5)
    assert list(found.categories) == [0.25, 0.5, 1.0]
    assert list(found) == [1.0, 0.25, 1.0, 0.5]


def test_what_is_no_number_comes_behind_as_text() -> None:
    found = levels(["b", 2, None, True, "a", math.nan, 1, [1, 2]], bins=5)
    assert list(found.categories) == [1, 2, "b", "-", "true", "a", "1, 2"]


def test_numbers_over_decades_get_bins_of_equal_ratio() -> None:
    found = levels([10 ** (-place / 4) for place in range(13)], bins=3)
    assert list(found.categories) == ["[0.001, 0.01)", "[0.01, 0.1)", "[0.1, 1]"]
    assert list(found).count("[0.001, 0.01)") == 4
    assert next(iter(found)) == "[0.1, 1]", "the last bin holds its upper end"
    assert list(found)[8] == "[0.01, 0.1)", "a bin holds its lower end"


def test_other_numbers_get_bins_of_equal_counts() -> None:
    values = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 70.0, 80.0]
    found = levels(values, bins=3)
    assert list(found.categories) == ["[0, 2.67)", "[2.67, 5.33)", "[5.33, 80]"]
    assert [list(found).count(label) for label in found.categories] == [3, 3, 3]


def test_one_small_number_does_not_make_the_bins() -> None:
    found = levels([0.00004, *(0.2 * place for place in range(1, 11))], bins=2)
    assert list(found.categories) == ["[4e-05, 1)", "[1, 2]"]


def test_bins_are_only_made_of_many_values_and_if_asked_for() -> None:
    many = [float(value) for value in range(EXACT + 1)]
    assert list(levels(many, bins=None).categories) == many
    assert list(levels(many[:-1], bins=2).categories) == many[:-1]
    assert len(levels(many, bins=2).categories) == 2


def test_an_empty_bin_is_kept() -> None:
    found = levels([0.001 + 1e-5 * place for place in range(5)] + [1.0 - 0.01 * place for place in range(5)], bins=3)
    assert list(found.categories) == ["[0.001, 0.01)", "[0.01, 0.1)", "[0.1, 1]"]
    assert "[0.01, 0.1)" not in list(found)


NUMBERS = st.lists(st.floats(-1e6, 1e6) | st.integers(-1000, 1000), min_size=EXACT + 1, max_size=40, unique=True)


@pytest.mark.parametrize("bins", [1, 2, 5])
@settings(max_examples=20)
@given(numbers=NUMBERS)
def test_every_number_is_between_the_ends_of_its_bin(bins: int, numbers: list[float]) -> None:
    found = levels(numbers, bins)
    labels = list(found.categories)
    assert 1 <= len(labels) <= bins
    for number, label in zip(numbers, found, strict=True):
        low, high = (float(end) for end in label[1:-1].split(", "))
        assert low <= number <= high
        assert number < high or label == labels[-1]


@given(NUMBERS)
def test_the_ends_rise(numbers: list[float]) -> None:
    found = edges(numbers, 4)
    assert all(low < high for low, high in pairwise(found))
