"""The tables of the CCL-K and FSCL papers: what is printed twice, and that their rows and columns can be run."""

import pytest
from paper_texts import in_order, nearby, needs_texts, numbers, paper_text, places, table

from study.published import published_table_names

CCLK = [name for name in published_table_names() if name.startswith("cclk-")]
FSCL = [name for name in published_table_names() if name.startswith("fscl-")]


def test_a_colour_error_is_in_the_unit_of_our_metric() -> None:
    cell = table("cclk-table3").printed_cell("InfoNCE", "MSE")
    assert cell.value == pytest.approx(48.8 / 255**2)
    assert cell.spread == pytest.approx(4.5 / 255**2)


def test_cells_whose_row_and_column_contradict_each_other_have_no_trials_and_no_number() -> None:
    of = table("cclk-fig3")
    assert of.trial_keys_of("WeaklySup-CCLK", "10 (3502)") is None
    assert of.trial_keys_of("WeaklySup-CCLK", "none") == {"method.name": "weakly_supervised_cclk"}
    for name in CCLK + FSCL:
        for place in places(table(name)):
            row, _, cell = table(name).lines_and_text_at(*place)
            assert row.published_only or table(name).trial_keys_of(*place) is not None or cell == "-", (name, place)


@pytest.mark.parametrize("name", FSCL)
def test_contrastive_rows_are_judged_by_a_classifier_of_frozen_features_others_by_their_own(name: str) -> None:
    own = {"CE", "GRL", "GDRO", "SupCon, then GRL", "FSCL+, then GRL"}
    for place in places(table(name)):
        if where := table(name).trial_keys_of(*place):
            judged_by_own = not table(name).metric_of(*place).startswith("test/mlp_")
            assert judged_by_own == (where["method.name"] in own), place


@needs_texts
def test_the_means_of_fscl_table_1_are_in_its_own_print_too() -> None:
    """Their spreads are those of Table 7."""
    of = table("fscl-table1")
    (region,) = nearby(paper_text("fscl"), "Table 1,")
    means = [[numbers(cell)[0] for cell in row] for row in of.cells]
    assert in_order(numbers(region), means)
