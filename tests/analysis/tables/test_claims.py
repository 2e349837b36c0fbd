"""Claims: what holds beyond doubt, what cannot be told, and how often a claim of nothing is believed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from study.analysis.statistics.cell_tables import MetricCell
from study.analysis.tables.paper_comparison import best, better, decreasing, increasing


def cell(*values: float, metric: str = "test/accuracy") -> MetricCell:
    return MetricCell(metric, values)


LOW, MIDDLE, HIGH = cell(0.10, 0.11, 0.12), cell(0.50, 0.51, 0.52), cell(0.90, 0.91, 0.92)
WIDE = cell(0.2, 0.5, 0.9)


def test_what_is_far_apart_holds_or_does_not() -> None:
    found = better(HIGH, LOW)
    assert (found.word, found.direction, found.remark) == ("holds", True, "")
    assert found.p < 1e-6
    found = better(LOW, HIGH)
    assert (found.word, found.direction) == ("does not hold", False)
    assert found.p > 1 - 1e-6


def test_what_overlaps_cannot_be_told() -> None:
    found = better(WIDE, MIDDLE)
    assert found.word == "cannot tell"
    assert found.direction is True
    expected = stats.ttest_ind(WIDE.values, MIDDLE.values, equal_var=False, alternative="greater").pvalue
    assert found.p == pytest.approx(expected)


def test_of_a_gap_less_is_better_and_of_a_mean_squared_error_more() -> None:
    odds = [cell(*values, metric="test/bias_encoder_equalized_odds") for values in ((0.1, 0.11), (0.9, 0.91))]
    assert better(*odds).word == "holds"
    assert increasing(odds).word == "holds", "a trend is in the numbers, whatever is better"
    errors = [cell(*values, metric="test/condition_mse") for values in ((9.0, 9.1), (1.0, 1.1))]
    assert better(*errors).word == "holds"


def test_cells_that_share_their_seeds_are_compared_seed_by_seed() -> None:
    one = MetricCell("test/accuracy", (0.61, 0.72, 0.83), seeds=(0, 1, 2))
    other = MetricCell("test/accuracy", (0.59, 0.70, 0.80), seeds=(0, 1, 2))
    assert better(one, other).p == pytest.approx(
        stats.ttest_rel(one.values, other.values, alternative="greater").pvalue
    )
    assert better(one, other).word == "holds"
    assert better(cell(*one.values), cell(*other.values)).word == "cannot tell", "without seeds they are not"


def test_trends() -> None:
    assert increasing([LOW, MIDDLE, HIGH]).word == "holds"
    assert decreasing([LOW, MIDDLE, HIGH]).word == "does not hold"
    assert decreasing([HIGH, MIDDLE, LOW]).word == "holds"
    assert increasing([LOW, HIGH, MIDDLE]).word == "does not hold", "one step that goes down for certain is enough"
    assert increasing([LOW, WIDE, HIGH]).word == "cannot tell"


def test_a_row_without_differences_is_not_held_against_a_trend() -> None:
    """That five steps do not all rise for sure does not show that one falls."""
    found = increasing([cell(0.50 + 0.001 * place, 0.52, 0.54 - 0.001 * place) for place in range(6)])
    assert found.word == "cannot tell"
    assert found.p is not None
    assert 0.05 < found.p < 0.99


def test_the_best_is_better_than_each() -> None:
    assert best(HIGH, [LOW, MIDDLE]).word == "holds"
    assert best(MIDDLE, [LOW, HIGH]).word == "does not hold"
    assert best(HIGH, [LOW, cell(0.5, 0.95)]).word == "cannot tell"


def test_the_best_is_compared_with_what_there_is() -> None:
    found = best(HIGH, [LOW, cell()])
    assert (found.word, found.remark) == ("holds", "compared with the 1 of 2 others that have a value")
    found = best(HIGH, [cell()])
    assert (found.word, found.direction) == ("cannot tell", None)
    assert found.remark.startswith("there is nothing to compare with")


def test_one_seed_gives_the_direction_alone() -> None:
    found = better(cell(0.9), LOW)
    assert (found.word, found.direction, found.p, found.remark) == (
        "cannot tell",
        True,
        None,
        "one value is too few",
    )
    assert better(cell(0.0), LOW).direction is False


def test_a_missing_cell_gives_nothing() -> None:
    found = better(HIGH, cell())
    assert (found.word, found.direction, found.p, found.remark) == ("cannot tell", None, None, "a value is missing")


def test_a_tie_is_not_better() -> None:
    found = better(cell(0.7, 0.7), cell(0.7, 0.7, 0.7))
    assert (found.word, found.direction) == ("does not hold", False)


VALUES = st.lists(st.floats(0, 1) | st.sampled_from([0.5, 0.25]), min_size=0, max_size=4)


@pytest.mark.slow
@given(VALUES, VALUES)
def test_a_claim_and_its_opposite_never_both_hold(one: list[float], other: list[float]) -> None:
    there, back = better(cell(*one), cell(*other)), better(cell(*other), cell(*one))
    assert (there.word, back.word) != ("holds", "holds")
    assert there == better(cell(*one), cell(*other)), "the same every time"
    if there.word == "holds":
        assert there.direction is True
        assert min(len(one), len(other)) >= 2
