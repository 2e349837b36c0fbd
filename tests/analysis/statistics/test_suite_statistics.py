"""Estimates from few searches, ranks over data sets, variance components: numbers worked out elsewhere."""

import math
from statistics import fmean, stdev

import numpy as np
import pytest
from benchmarks.simulations import suites
from scipy import stats

from study.analysis.statistics.suite_table import (
    average,
    components,
    critical_difference,
    difference,
    estimate,
    leaders,
    ranks,
    reach,
)


def test_an_estimate_is_a_mean_with_students_interval() -> None:
    found = estimate([0.7, 0.8, 0.75])
    assert found is not None
    expected = stats.t.interval(0.95, 2, fmean([0.7, 0.8, 0.75]), stdev([0.7, 0.8, 0.75]) / math.sqrt(3))
    assert found.interval() == pytest.approx(expected)
    assert estimate([]) is None
    single = estimate([0.5])
    assert single is not None
    assert (single.mean, single.error, single.interval()) == (0.5, None, None)


def test_an_average_has_the_error_of_its_parts() -> None:
    """Two parts of two values: the interval of their mean is half that of Welch's sum."""
    one, other = [0.70, 0.74], [0.50, 0.60]
    found = average([estimate(one), estimate(other)])
    assert found is not None
    errors = [stdev(values) / math.sqrt(2) for values in (one, other)]
    assert found.error == pytest.approx(math.hypot(*errors) / 2)
    test = stats.ttest_ind(one, [-value for value in other], equal_var=False)
    assert found.freedom == pytest.approx(test.df)
    assert average([estimate(one), None]) is None
    flat = average([estimate([0.5, 0.5]), estimate([0.7, 0.7])])
    assert flat is not None
    assert flat.interval() == (pytest.approx(0.6), pytest.approx(0.6))
    lonely = average([estimate([0.5]), estimate([0.7, 0.7])])
    assert lonely is not None
    assert lonely.error is None


def test_methods_are_compared_within_searches() -> None:
    one, other = {1: 0.9, 2: 0.6, 3: 0.7}, {1: 0.8, 2: 0.48, 4: 0.1}
    found = difference([one], [other])
    assert found is not None
    assert (found.mean, found.error, found.count) == (pytest.approx(0.11), pytest.approx(0.01), 2)


def test_the_best_and_those_not_told_from_it() -> None:
    searches = {1: 0.0, 2: 0.01, 3: -0.01}
    best = {number: 0.9 + value for number, value in searches.items()}
    near = {1: 0.92, 2: 0.85, 3: 0.88}
    far = {number: 0.5 + value * 1.1 for number, value in searches.items()}
    assert leaders({"near": [near], "best": [best], "far": [far]}) == {"near": True, "best": True, "far": False}
    assert leaders({"best": [best], "far": [far]}, better=-1.0) == {"best": False, "far": True}
    assert leaders({"best": [{1: 0.9}], "other": [{1: 0.1}]}) == {"best": True, "other": None}
    assert leaders({}) == {}


def test_what_is_further_apart_than_the_reach_is_told() -> None:
    generator = np.random.default_rng(1)
    values = {name: [dict(enumerate(generator.normal(0.0, 0.1, 4).tolist())) for _ in range(3)] for name in "ab"}
    far = reach(values)
    assert far is not None
    between = difference(values["a"], values["b"])
    assert between is not None
    assert far[0] == far[1]
    shift = far[0] * 1.01 - between.mean
    values["a"] = [{number: value + shift for number, value in one.items()} for one in values["a"]]
    assert leaders(values) == {"a": True, "b": False}
    assert reach({"a": [{1: 0.1}], "b": [{1: 0.2}]}) is None


def test_the_critical_difference_is_demsars() -> None:
    """His example (JMLR 7, 2006, Section 3.2.4): 4 classifiers on 14 data sets, 1.25; with 5 q is 2.728."""
    assert critical_difference(4, 14) == pytest.approx(1.25, abs=0.005)
    assert critical_difference(5, 5) == pytest.approx(2.728, abs=0.001)


def test_friedmans_test_by_permutation_is_that_of_his_distribution_on_many_data_sets() -> None:
    generator = np.random.default_rng(3)
    values = generator.normal(0.0, 1.0, (4, 30)) + np.array([0.0, 0.2, 0.3, 0.6])[:, None]
    table = ranks({f"m{n}": dict(enumerate(row)) for n, row in enumerate(values.tolist())})  # type: ignore[misc]
    assert table is not None
    assert table.p == pytest.approx(stats.friedmanchisquare(*values).pvalue, abs=0.01)
    assert sum(table.average.values()) == pytest.approx(10.0)


def test_three_data_sets_tell_the_first_from_the_last_of_three_methods_alone() -> None:
    same = {"a": {"x": 3.0, "y": 3.0, "z": 3.0}, "b": {"x": 2.0, "y": 2.0, "z": 2.0}, "c": {"x": 1.0, "y": 1.0, "z": 1}}
    table = ranks(same)
    assert table is not None
    assert (dict(table.average), table.apart, table.can_tell) == ({"a": 1, "b": 2, "c": 3}, [("a", "c")], True)
    assert table.p == pytest.approx(1 / 36, abs=0.004)
    lower = ranks(same, better=-1.0)
    assert lower is not None
    assert lower.apart == [("c", "a")]
    two = ranks({name: {label: row[label] for label in ("x", "y")} for name, row in same.items()})
    assert two is not None
    assert (two.can_tell, two.apart) == (False, [])
    assert ranks({"a": same["a"]}) is None
    assert ranks({"a": same["a"], "b": {"x": 1.0}}) is None


def test_equal_values_share_their_ranks() -> None:
    table = ranks({name: {"x": 0.5, "y": 0.5} for name in "abc"})
    assert table is not None
    assert (set(table.average.values()), table.p, table.apart) == ({2.0}, 1.0, [])


def test_variance_is_split_into_searches_and_seeds() -> None:
    """By hand: means 0.5 and 0.7, variance 0.02; within 0.0002, of which half enters a mean of two."""
    found = components([[[0.49, 0.51], [0.69, 0.71]]])
    assert found.seed == pytest.approx(math.sqrt(0.0002))
    assert found.search == pytest.approx(math.sqrt(0.02 - 0.0001))
    assert found.p == pytest.approx(stats.f.sf(200, 1, 2))
    alone = components([[[0.4, 0.6], [0.4, 0.6]]])
    assert (alone.search, alone.p) == (0.0, 1.0)
    assert components([[[0.4]], [[0.5, 0.6]]]).p is None
    assert components([]).seed is None


@pytest.mark.parametrize("part", [suites.intervals, suites.told_by_ranks, suites.told_of_spread])
def test_what_a_table_says_is_right_as_often_as_it_promises(part) -> None:  # type: ignore[no-untyped-def]
    assert [row for row in part(100) if not row.holds] == []


@pytest.mark.slow
def test_equal_methods_are_told_apart_in_one_of_twenty_tables_at_most() -> None:
    assert [row for row in suites.told_by_searches(50) if not row.holds] == []


def test_the_same_difference_in_two_searches_by_chance_tells_nothing_apart() -> None:
    """Accuracies are counts of few samples: 0.80 and 0.70 against 0.79 and 0.69."""
    one, other = {0: 0.80, 1: 0.70}, {0: 0.79, 1: 0.69}
    assert leaders({"one": [one], "other": [other]}) == {"one": True, "other": True}
    assert leaders({"one": [one], "same": [dict(one)]}) == {"one": True, "same": True}
