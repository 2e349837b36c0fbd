"""Verdicts against examples by hand, and what must hold of all of them."""

from statistics import fmean, pstdev, stdev

import pytest
from hypothesis import given
from hypothesis import strategies as st

from study.analysis.tables.paper_comparison import (
    VERDICT_RULE_NOTE,
    equivalence_margin,
    judge_agreement,
    widen_printed_spread,
)
from study.ranking import SeedStatistics

# Of two means of three values each, both of deviation 0.01, the difference has a standard error of
# 0.01 * sqrt(2 / 3) = 0.0081650 and 4 degrees of freedom: t is 2.131847 for 90%, 2.776445 for 95%.
REACH_90, REACH_95 = 2.131847 * 0.0081650, 2.776445 * 0.0081650


def of_three(mean: float) -> SeedStatistics:
    return SeedStatistics(mean, 0.01, 3)


@pytest.mark.parametrize(
    ("ours", "margin", "word"),
    [
        (0.8, REACH_90 + 1e-5, "agrees"),
        (0.8, REACH_90 - 1e-5, "cannot tell"),
        (0.805, REACH_90 + 0.005 + 1e-5, "agrees"),
        (0.795, REACH_90 + 0.005 - 1e-5, "cannot tell"),
        (0.8 + REACH_95 + 1e-5, 0.01, "differs"),
        (0.8 - REACH_95 - 1e-5, 0.01, "differs"),
        (0.8 + REACH_95 - 1e-5, 0.01, "cannot tell"),
        (0.8 + REACH_95 + 1e-5, 0.1, "agrees"),  # there is a difference, and it is too small to matter
    ],
)
def test_the_words_change_where_they_should(ours: float, margin: float, word: str) -> None:
    assert judge_agreement(of_three(ours), of_three(0.8), margin) == word


def test_both_spreads_and_counts_matter() -> None:
    steady, wild = SeedStatistics(0.9, 0.001, 3), SeedStatistics(0.8, 0.1, 3)
    assert judge_agreement(steady, SeedStatistics(0.8, 0.001, 3)) == "differs"
    assert judge_agreement(steady, wild) == judge_agreement(wild, steady) == "cannot tell"
    assert judge_agreement(steady, SeedStatistics(0.8, 0.1, 30)) == "differs"


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (None, of_three(0.8)),
        (of_three(0.8), None),
        (SeedStatistics(0.8, None, 1), of_three(0.8)),
        (of_three(0.8), SeedStatistics(0.1, None, 3)),
    ],
)
def test_what_is_not_known_cannot_be_told(ours: SeedStatistics | None, theirs: SeedStatistics | None) -> None:
    assert judge_agreement(ours, theirs) == "cannot tell"


def test_numbers_without_spread_are_taken_at_their_word() -> None:
    assert judge_agreement(SeedStatistics(0.9, 0.0, 2), SeedStatistics(0.895, 0.0, 2)) == "agrees"
    assert judge_agreement(SeedStatistics(0.9, 0.0, 2), SeedStatistics(0.8, 0.0, 2)) == "differs"


def test_the_margin_is_one_point_or_a_part_of_what_is_no_share() -> None:
    assert equivalence_margin("test/lbfgs_accuracy", of_three(0.8)) == 0.01
    assert equivalence_margin("test/condition_mse", of_three(0.8)) == pytest.approx(0.04)
    assert "within 1 points of percent to each side (5% of" in VERDICT_RULE_NOTE


def test_a_printed_deviation_is_read_as_the_populations() -> None:
    values = [0.7, 0.8, 0.85]
    printed = SeedStatistics(fmean(values), pstdev(values), 3)
    assert widen_printed_spread(printed) == SeedStatistics(fmean(values), pytest.approx(stdev(values)), 3)
    assert widen_printed_spread(None) is None
    assert widen_printed_spread(SeedStatistics(0.5, None, 1)) == SeedStatistics(0.5, None, 1)


SPREADS = st.builds(SeedStatistics, st.floats(0, 1), st.none() | st.floats(0, 0.2), st.integers(2, 9))


@given(SPREADS, SPREADS, st.floats(0.001, 0.2))
def test_a_verdict_is_the_same_from_either_side(one: SeedStatistics, other: SeedStatistics, margin: float) -> None:
    assert judge_agreement(one, other, margin) == judge_agreement(other, one, margin)


@given(SPREADS, SPREADS, st.floats(0.001, 0.1))
def test_a_wider_margin_never_takes_an_agreement_back(
    one: SeedStatistics, other: SeedStatistics, margin: float
) -> None:
    if judge_agreement(one, other, margin) == "agrees":
        assert judge_agreement(one, other, 2 * margin) == "agrees"
        assert abs(one.mean - other.mean) <= margin
