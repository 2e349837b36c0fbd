"""The tables of the CCL-K and FSCL papers: what is printed twice, and that their rows and columns can be run."""

import pytest
from paper_texts import in_order, nearby, needs_texts, numbers, paper_text, places, table

from study.published import names

CCLK = [name for name in names() if name.startswith("cclk-")]
FSCL = [name for name in names() if name.startswith("fscl-")]


def printed(name: str, row: str, column: str) -> str:
    return table(name).cell(row, column).printed


def test_a_colour_error_is_in_the_unit_of_our_metric() -> None:
    cell = table("cclk-table3").cell("InfoNCE", "MSE")
    assert cell.value == pytest.approx(48.8 / 255**2)
    assert cell.spread == pytest.approx(4.5 / 255**2)


def test_cells_whose_row_and_column_contradict_each_other_have_no_trials_and_no_number() -> None:
    of = table("cclk-fig3")
    assert of.where("WeaklySup-CCLK", "10 (3502)") is None
    assert of.where("WeaklySup-CCLK", "none") == {"method.name": "weakly_supervised_cclk"}
    for name in CCLK + FSCL:
        for place in places(table(name)):
            row, _, cell = table(name).at(*place)
            assert row.published_only or table(name).where(*place) is not None or cell == "-", (name, place)


@pytest.mark.parametrize("name", FSCL)
def test_contrastive_rows_are_judged_by_a_classifier_of_frozen_features_others_by_their_own(name: str) -> None:
    own = {"CE", "GRL", "GDRO", "SupCon, then GRL", "FSCL+, then GRL"}
    for place in places(table(name)):
        if where := table(name).where(*place):
            judged_by_own = not table(name).metric_of(*place).startswith("test/mlp_")
            assert judged_by_own == (where["method.name"] in own), place


@pytest.mark.parametrize("name", ["fscl-table2", "fscl-table3", "fscl-table5", "fscl-table6", "fscl-table10"])
def test_what_fscl_prints_in_several_tables_is_the_same_but_for_one_spread(name: str) -> None:
    again = {
        "CE": ("27.8 ± 0.2", "79.6 ± 0.5"),
        "SupCon": ("30.5 ± 1.3", "80.5 ± 0.7"),
        "FSCL+": ("6.5 ± 0.4", "79.1 ± 0.1"),
    }
    rows = {row.set["method.name"]: row.label for row in table(name).rows if row.set.get("method.name") in again}
    assert "FSCL+" in rows
    for method, row in rows.items():
        assert (printed(name, row, "EO"), printed(name, row, "Acc.")) == again[method]
        assert printed("fscl-table1", str(method), "T=a / S=m, EO") == again[str(method)][0]
    assert printed("fscl-table1", "SupCon", "T=a / S=m, Acc.") == "80.5 ± 0.7"
    assert printed("fscl-table1", "FSCL+", "T=a / S=m, Acc.") == "79.1 ± 0.4"


def test_what_cclk_prints_in_several_tables_is_the_same_but_for_info_nce_on_imagenet_100() -> None:
    for column in ("Top-1 Accuracy", "MSE"):
        cosine = printed("cclk-table5", "Cosine", f"Fair-CCLK, {column}")
        assert printed("cclk-table3", "Fair-CCLK (ours)", column) == cosine
        short, long = printed("cclk-table3", "Fair-InfoNCE", column), printed("cclk-table8", "10", column)
        assert [round(float(one), 1) for one in numbers(long)] == [float(one) for one in numbers(short)]
    for row in ("InfoNCE", "HardNeg-InfoNCE", "HardNeg-CCLK (ours)"):
        assert printed("cclk-table4", row, "CIFAR-10") == printed("cclk-table6", row, "CIFAR-10 (setting 1)")
    hard_negatives = printed("cclk-table4", "HardNeg-CCLK (ours)", "CIFAR-10")
    assert printed("cclk-table5", "RBF", "HardNeg-CCLK, CIFAR-10") == hard_negatives
    assert printed("cclk-table2", "InfoNCE", "ImageNet-100") == "76.2 ± 0.3"
    assert printed("cclk-table4", "InfoNCE", "ImageNet-100") == "77.8 ± 0.4"


@needs_texts
def test_the_means_of_fscl_table_1_are_in_its_own_print_too() -> None:
    """Their spreads are those of Table 7."""
    of = table("fscl-table1")
    (region,) = nearby(paper_text("fscl"), "Table 1,")
    means = [[numbers(cell)[0] for cell in row] for row in of.cells]
    assert in_order(numbers(region), means)
