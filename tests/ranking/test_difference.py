"""The difference of two configurations: in pairs where they ran on the same seeds, and with the choice allowed for."""

import math
import subprocess
import sys
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from study.analysis.statistics import formatting
from study.home.record import EpochMetrics, TrialRecord
from study.ranking import SeedStatistics, seed_statistics
from study.ranking.arms import Arm
from study.ranking.difference import Difference, find_root, mean_difference, selection_adjusted_t
from study.spec import load_study

SPREADS = st.builds(SeedStatistics, st.floats(0, 1), st.none() | st.floats(0, 0.5), st.integers(2, 9))


@pytest.mark.parametrize(("one", "other"), [([0.1, 0.4, 0.5], [0.2, 0.21, 0.25, 0.3]), ([0.9, 0.7], [0.1, 0.2])])
def test_without_shared_seeds_the_interval_is_welchs(one, other):
    expected = stats.ttest_ind(one, other, equal_var=False).confidence_interval(0.95)
    for found in (
        mean_difference(dict(enumerate(one)), dict(enumerate(other, len(one)))),
        mean_difference(seed_statistics(one), seed_statistics(other)),
    ):
        assert found.interval == pytest.approx((expected.low, expected.high))
        assert (found.is_paired, found.n_candidates) == (False, 1)


def test_on_shared_seeds_it_is_the_paired_t():
    one, other = [0.81, 0.72, 0.93, 0.55], [0.75, 0.70, 0.85, 0.52]
    expected = stats.ttest_rel(one, other).confidence_interval(0.95)
    found = mean_difference(dict(zip((3, 1, 2, 9), one, strict=True)), dict(zip((3, 1, 2, 9), other, strict=True)))
    assert found.interval == pytest.approx((expected.low, expected.high))
    assert found.is_paired


def test_seeds_that_only_one_side_has_are_left_out():
    found = mean_difference({1: 0.8, 2: 0.7, 3: 0.1}, {1: 0.5, 2: 0.5, 4: 0.9})
    assert found.value == pytest.approx(0.25)
    assert found.is_paired


@pytest.mark.parametrize(("one", "other"), [({}, {1: 0.5}), ({1: 0.5}, {})])
def test_without_values_there_is_none(one, other):
    assert mean_difference(one, other) is None


def test_one_value_has_no_interval():
    assert mean_difference({1: 0.7}, {1: 0.5, 2: 0.6}).interval is None
    assert mean_difference({1: 0.7}, {1: 0.5}).is_clear is None


def test_pairs_that_differ_by_the_same_do_not_make_it_certain():
    one, other = [0.68, 0.70, 0.72], [0.48, 0.50, 0.52]
    found = mean_difference(dict(enumerate(one)), dict(enumerate(other)))
    expected = stats.ttest_ind(one, other, equal_var=False).confidence_interval(0.95)
    assert found.interval == pytest.approx((expected.low, expected.high))
    assert not found.is_paired


def test_a_side_without_spread_leaves_the_others():
    found = mean_difference(seed_statistics([0.5, 0.5]), seed_statistics([0.1, 0.3]))
    reach = 12.706205 * 0.1  # Student's t of 1 degree of freedom, times the standard error of 0.1 and 0.3
    assert found.interval == pytest.approx((0.3 - reach, 0.3 + reach))


def test_values_without_spread_differ_for_certain():
    found = mean_difference(seed_statistics([0.5, 0.5]), seed_statistics([0.25, 0.25]))
    assert (found.value, found.interval, found.is_clear) == (0.25, (0.25, 0.25), True)
    assert mean_difference(seed_statistics([0.5, 0.5]), seed_statistics([0.5, 0.5])).is_clear is False


@given(SPREADS, SPREADS)
def test_a_difference_is_antisymmetric_and_in_its_interval(one, other):
    there, back = mean_difference(one, other), mean_difference(other, one)
    assert there.value == -back.value
    assert (there.interval is None) == (one.standard_deviation is None or other.standard_deviation is None)
    if there.interval:
        assert there.interval[0] <= there.value <= there.interval[1]
        assert there.interval == pytest.approx((-back.interval[1], -back.interval[0]), rel=1e-6, abs=1e-12)


@pytest.mark.parametrize(("freedom", "among"), [(1, 2), (2, 5), (2.7, 3), (4, 10), (9, 24)])
def test_the_chosen_ones_t_exceeds_its_quantile_as_often_as_it_says(freedom, among):
    generator = np.random.default_rng(0)
    luck = generator.normal(size=(200_000, among)).max(axis=1)
    error = np.sqrt(generator.chisquare(freedom, 200_000) / freedom)
    assert np.mean(luck / error > selection_adjusted_t(0.975, freedom, among)) == pytest.approx(0.025, abs=0.0015)


@pytest.mark.slow
@given(st.floats(1, 40), st.integers(1, 400), st.sampled_from([0.9, 0.95, 0.975]))
def test_a_choice_widens_by_no_more_than_bonferroni(freedom, among, level):
    found = selection_adjusted_t(level, freedom, among)
    assert stats.t.ppf(level, freedom) - 1e-9 <= found <= -stats.t.ppf((1 - level) / among, freedom) + 1e-6
    assert found >= selection_adjusted_t(level, freedom, max(1, among - 1)) - 1e-6


@pytest.mark.parametrize(
    ("other", "told"),
    [
        ([0.60, 0.44], "+18.0 points (too few seeds to judge)"),  # by the t of two seeds from -83.6 to +119.6
        ([0.60, 0.5985], "+10.1 points (95% interval +9.1 to +11.0)"),
        ([0.60, 0.44, 0.52], "+18.0 points (95% interval -1.9 to +37.9)"),
    ],
)
def test_two_seeds_that_cannot_tell_say_so(other: list[float], told: str) -> None:
    found = mean_difference(dict(enumerate([0.7] * len(other))), dict(enumerate(other)))
    assert formatting.difference_with_interval("test/accuracy", found) == told


NOISY = [1 / 30, 1 / 30 + 2e-17, 0.033333335]
"""Equal but for the rounding of floats, of 64 and of 32 bits."""


@pytest.mark.parametrize("size", [1.0, 1e4, 1e-5])
def test_values_that_are_equal_but_for_rounding_have_no_spread(size):
    one, other = [size * (value + 0.1) for value in NOISY], [size * 0.1] * 3
    found = mean_difference(dict(enumerate(one)), dict(enumerate(other)))
    assert found.has_zero_width
    assert formatting.difference_with_interval("val/equalized_odds", found).endswith(" on every seed alike")
    assert seed_statistics(one).standard_deviation == 0.0
    same = mean_difference(dict(enumerate(one)), dict(enumerate(reversed(one))))
    assert (same.value, same.interval) == (0.0, (0.0, 0.0))
    assert (
        formatting.difference_with_verdict("val/equalized_odds", same, better=False, over="seeds")
        == "the same on every seed"
    )
    assert mean_difference({0: one[0]}, {0: one[1]}).value == 0.0, "of one seed each, too"
    luck = mean_difference({0: 0.1 + 0.2, 1: 0.1, 2: 0.2}, {0: 0.1, 1: 0.2, 2: 0.3})
    assert (luck.value, luck.is_paired) == (0.0, True)


def test_differences_that_are_equal_but_for_rounding_do_not_make_it_certain():
    one, other = [0.68 + 1e-16, 0.70000001, 0.72], [0.48, 0.50, 0.52]
    found = mean_difference(dict(enumerate(one)), dict(enumerate(other)))
    assert not found.is_paired
    assert found.interval[1] - found.interval[0] > 0.05


def test_a_difference_has_the_decimals_of_its_interval():
    found = Difference(-8.3333, (-13.46, -3.12))
    assert formatting.difference_with_interval("val/weights", found) == "-8.3 (95% interval -13.5 to -3.1)"
    assert formatting.format_difference("val/weights", found.value) == "-8.333"
    unclear = Difference(-8.3333, (-213.46, 203.12), degrees_of_freedom=1)
    assert formatting.difference_with_interval("val/weights", unclear) == "-8.333 (too few seeds to judge)"


BILLIONTHS = st.integers(-(10**9), 10**9).map(lambda number: number / 1e9)


@given(BILLIONTHS, BILLIONTHS.map(abs), st.sampled_from(["val/accuracy", "val/equalized_odds", "val/loss"]))
def test_an_interval_as_it_is_printed_has_its_two_ends_and_their_signs(value, reach, metric):
    found = Difference(value, (value - reach, value + reach))
    printed = formatting.format_difference_interval(metric, found)
    if found.interval[0] == found.interval[1]:
        assert printed == formatting.zero_width_interval_text(found)
        return
    low, high = map(float, printed.split(" to "))
    assert low < high, printed
    for end, shown in zip(found.interval, (low, high), strict=True):
        assert np.sign(round(end, 12)) == np.sign(shown), printed
    assert np.sign(float(formatting.format_difference(metric, value).split()[0])) == np.sign(value)


def test_a_difference_of_counts_has_no_decimals():
    assert formatting.format_difference("val/params", 1848.0) == "+1848"
    assert formatting.format_difference_interval("val/params", Difference(-530.0, (-540.0, -520.0))) == "-540 to -520"
    assert formatting.format_difference_interval("val/params", Difference(3.0, (2.5, 3.5))) == "+2.500 to +3.500"


@pytest.mark.parametrize(
    ("function", "low", "high", "zero"),
    [
        (lambda x: math.exp(-x) - 0.3, 0.0, 9.0, -math.log(0.3)),
        (lambda x: x**3 - 2, 0.0, 5.0, 2 ** (1 / 3)),
        (lambda x: 1 - x, 0.0, 2.0, 1.0),
        (lambda x: x, 0.0, 2.0, 0.0),
    ],
)
def test_a_root_is_found_to_ten_digits(
    function: Callable[[float], float], low: float, high: float, zero: float
) -> None:
    assert find_root(function, low, high) == pytest.approx(zero, abs=1e-10)


@pytest.mark.slow
def test_an_interval_is_told_without_scipys_optimizers() -> None:
    """`study status` waited most of a second for their import."""
    code = (
        "import sys; from study.analysis.statistics.seeds_needed import detection_power as p; p(1.0, 3, 4); "
        "print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"scipy.optimize", "torch", "pandas"} & set(done.stdout.split())


@pytest.mark.parametrize(
    ("name", "scale", "expected"),
    [("val/accuracy", 1.0, (-1.0, 1.0)), ("val/accuracy", 100.0, None), ("val/log_loss", 1.0, None)],
)
def test_an_interval_ends_where_the_metric_does(name: str, scale: float, expected: tuple[float, float] | None) -> None:
    """Two seeds are so few that Student's interval reaches beyond all values of an accuracy; not of a percentage."""
    arms = []
    for label, values in (("trial 1", (0.9, 0.1)), ("baseline", (0.1, 0.5))):
        reports = [[EpochMetrics(1, {name: scale * value})] for value in values]
        trials = [TrialRecord(0, "confirm", {}, seed, state="complete", reports=of) for seed, of in enumerate(reports)]
        arms.append(Arm(label, 0, trials, load_study("fairkl_digits")))
    one, other = arms
    unbounded = mean_difference(one.metric_by_seed(name), other.metric_by_seed(name))
    low, high = unbounded.interval
    assert (low < -scale, high > scale) == (True, True)
    assert one.difference_to(other, name).interval == (expected or unbounded.interval)
