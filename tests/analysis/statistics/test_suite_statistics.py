"""Estimates from few searches: numbers worked out elsewhere."""

import math
from statistics import fmean, stdev

import pytest
from benchmarks.simulations import suites
from scipy import stats

from study.analysis.statistics.suite_statistics import (
    average_estimates,
    average_method_difference,
    compare_with_best_method,
    estimate_mean,
)


def test_an_estimate_is_a_mean_with_students_interval() -> None:
    found = estimate_mean([0.7, 0.8, 0.75])
    assert found is not None
    expected = stats.t.interval(0.95, 2, fmean([0.7, 0.8, 0.75]), stdev([0.7, 0.8, 0.75]) / math.sqrt(3))
    assert found.interval() == pytest.approx(expected)
    assert estimate_mean([]) is None
    single = estimate_mean([0.5])
    assert single is not None
    assert (single.mean, single.standard_error, single.interval()) == (0.5, None, None)


def test_an_average_has_the_error_of_its_parts() -> None:
    """Two parts of two values: the interval of their mean is half that of Welch's sum."""
    one, other = [0.70, 0.74], [0.50, 0.60]
    found = average_estimates([estimate_mean(one), estimate_mean(other)])
    assert found is not None
    errors = [stdev(values) / math.sqrt(2) for values in (one, other)]
    assert found.standard_error == pytest.approx(math.hypot(*errors) / 2)
    test = stats.ttest_ind(one, [-value for value in other], equal_var=False)
    assert found.degrees_of_freedom == pytest.approx(test.df)
    assert average_estimates([estimate_mean(one), None]) is None
    flat = average_estimates([estimate_mean([0.5, 0.5]), estimate_mean([0.7, 0.7])])
    assert flat is not None
    assert flat.interval() == (pytest.approx(0.6), pytest.approx(0.6))
    lonely = average_estimates([estimate_mean([0.5]), estimate_mean([0.7, 0.7])])
    assert lonely is not None
    assert lonely.standard_error is None


def test_methods_are_compared_within_searches() -> None:
    one, other = {1: 0.9, 2: 0.6, 3: 0.7}, {1: 0.8, 2: 0.48, 4: 0.1}
    found = average_method_difference([one], [other])
    assert found is not None
    assert (found.mean, found.standard_error, found.count) == (pytest.approx(0.11), pytest.approx(0.01), 2)


def test_the_best_and_those_not_told_from_it() -> None:
    searches = {1: 0.0, 2: 0.01, 3: -0.01}
    best = {number: 0.9 + value for number, value in searches.items()}
    near = {1: 0.92, 2: 0.85, 3: 0.88}
    far = {number: 0.5 + value * 1.1 for number, value in searches.items()}
    assert compare_with_best_method({"near": [near], "best": [best], "far": [far]}) == {
        "near": True,
        "best": True,
        "far": False,
    }
    assert compare_with_best_method({"best": [best], "far": [far]}, better=-1.0) == {"best": False, "far": True}
    assert compare_with_best_method({"best": [{1: 0.9}], "other": [{1: 0.1}]}) == {"best": True, "other": None}
    assert compare_with_best_method({}) == {}


def test_what_a_table_says_is_right_as_often_as_it_promises() -> None:
    assert [row for row in suites.intervals(100) if not row.holds] == []


@pytest.mark.slow
def test_equal_methods_are_told_apart_in_one_of_twenty_tables_at_most() -> None:
    assert [row for row in suites.told_by_searches(50) if not row.holds] == []


def test_the_same_difference_in_two_searches_by_chance_tells_nothing_apart() -> None:
    """Accuracies are counts of few samples: 0.80 and 0.70 against 0.79 and 0.69."""
    one, other = {0: 0.80, 1: 0.70}, {0: 0.79, 1: 0.69}
    assert compare_with_best_method({"one": [one], "other": [other]}) == {"one": True, "other": True}
    assert compare_with_best_method({"one": [one], "same": [dict(one)]}) == {"one": True, "same": True}
