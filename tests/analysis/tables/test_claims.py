"""Claims: what holds beyond doubt, what cannot be told, and how often a claim of nothing is believed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from study.analysis.statistics.parameter_tables import MetricCell
from study.analysis.tables.paper_comparison import (
    judge_best_claim,
    judge_better_claim,
    judge_decreasing_claim,
    judge_increasing_claim,
)


def cell(*values: float, metric: str = "test/accuracy") -> MetricCell:
    return MetricCell(metric, values)


LOW, MIDDLE, HIGH = cell(0.10, 0.11, 0.12), cell(0.50, 0.51, 0.52), cell(0.90, 0.91, 0.92)
WIDE = cell(0.2, 0.5, 0.9)


def test_what_is_far_apart_holds_or_does_not() -> None:
    found = judge_better_claim(HIGH, LOW)
    assert (found.verdict, found.is_direction_as_claimed, found.remark) == ("holds", True, "")
    assert found.p_value < 1e-6
    found = judge_better_claim(LOW, HIGH)
    assert (found.verdict, found.is_direction_as_claimed) == ("does not hold", False)
    assert found.p_value > 1 - 1e-6


def test_what_overlaps_cannot_be_told() -> None:
    found = judge_better_claim(WIDE, MIDDLE)
    assert found.verdict == "cannot tell"
    assert found.is_direction_as_claimed is True
    expected = stats.ttest_ind(WIDE.values, MIDDLE.values, equal_var=False, alternative="greater").pvalue
    assert found.p_value == pytest.approx(expected)


def test_of_a_gap_less_is_better_and_of_a_mean_squared_error_more() -> None:
    odds = [cell(*values, metric="test/bias_encoder_equalized_odds") for values in ((0.1, 0.11), (0.9, 0.91))]
    assert judge_better_claim(*odds).verdict == "holds"
    assert judge_increasing_claim(odds).verdict == "holds", "a trend is in the numbers, whatever is better"
    errors = [cell(*values, metric="test/condition_mse") for values in ((9.0, 9.1), (1.0, 1.1))]
    assert judge_better_claim(*errors).verdict == "holds"


def test_cells_that_share_their_seeds_are_compared_seed_by_seed() -> None:
    one = MetricCell("test/accuracy", (0.61, 0.72, 0.83), seeds=(0, 1, 2))
    other = MetricCell("test/accuracy", (0.59, 0.70, 0.80), seeds=(0, 1, 2))
    assert judge_better_claim(one, other).p_value == pytest.approx(
        stats.ttest_rel(one.values, other.values, alternative="greater").pvalue
    )
    assert judge_better_claim(one, other).verdict == "holds"
    assert judge_better_claim(cell(*one.values), cell(*other.values)).verdict == "cannot tell", (
        "without seeds they are not"
    )


def test_trends() -> None:
    assert judge_increasing_claim([LOW, MIDDLE, HIGH]).verdict == "holds"
    assert judge_decreasing_claim([LOW, MIDDLE, HIGH]).verdict == "does not hold"
    assert judge_decreasing_claim([HIGH, MIDDLE, LOW]).verdict == "holds"
    assert judge_increasing_claim([LOW, HIGH, MIDDLE]).verdict == "does not hold", (
        "one step that goes down for certain is enough"
    )
    assert judge_increasing_claim([LOW, WIDE, HIGH]).verdict == "cannot tell"


def test_a_row_without_differences_is_not_held_against_a_trend() -> None:
    """That five steps do not all rise for sure does not show that one falls."""
    found = judge_increasing_claim([cell(0.50 + 0.001 * place, 0.52, 0.54 - 0.001 * place) for place in range(6)])
    assert found.verdict == "cannot tell"
    assert found.p_value is not None
    assert 0.05 < found.p_value < 0.99


def test_the_best_is_better_than_each() -> None:
    assert judge_best_claim(HIGH, [LOW, MIDDLE]).verdict == "holds"
    assert judge_best_claim(MIDDLE, [LOW, HIGH]).verdict == "does not hold"
    assert judge_best_claim(HIGH, [LOW, cell(0.5, 0.95)]).verdict == "cannot tell"


def test_the_best_is_compared_with_what_there_is() -> None:
    found = judge_best_claim(HIGH, [LOW, cell()])
    assert (found.verdict, found.remark) == ("holds", "compared with the 1 of 2 others that have a value")
    found = judge_best_claim(HIGH, [cell()])
    assert (found.verdict, found.is_direction_as_claimed) == ("cannot tell", None)
    assert found.remark.startswith("there is nothing to compare with")


def test_one_seed_gives_the_direction_alone() -> None:
    found = judge_better_claim(cell(0.9), LOW)
    assert (found.verdict, found.is_direction_as_claimed, found.p_value, found.remark) == (
        "cannot tell",
        True,
        None,
        "one value is too few",
    )
    assert judge_better_claim(cell(0.0), LOW).is_direction_as_claimed is False


def test_a_missing_cell_gives_nothing() -> None:
    found = judge_better_claim(HIGH, cell())
    assert (found.verdict, found.is_direction_as_claimed, found.p_value, found.remark) == (
        "cannot tell",
        None,
        None,
        "a value is missing",
    )


def test_a_tie_is_not_better() -> None:
    found = judge_better_claim(cell(0.7, 0.7), cell(0.7, 0.7, 0.7))
    assert (found.verdict, found.is_direction_as_claimed) == ("does not hold", False)


VALUES = st.lists(st.floats(0, 1) | st.sampled_from([0.5, 0.25]), min_size=0, max_size=4)


@pytest.mark.slow
@given(VALUES, VALUES)
def test_a_claim_and_its_opposite_never_both_hold(one: list[float], other: list[float]) -> None:
    there, back = judge_better_claim(cell(*one), cell(*other)), judge_better_claim(cell(*other), cell(*one))
    assert (there.verdict, back.verdict) != ("holds", "holds")
    assert there == judge_better_claim(cell(*one), cell(*other)), "the same every time"
    if there.verdict == "holds":
        assert there.is_direction_as_claimed is True
        assert min(len(one), len(other)) >= 2
