"""A reproduction as it is printed: a frozen study gives exactly this, and any part of one a part of it."""

import csv
import io
from collections.abc import Callable
from typing import Any

import pytest
from published_study import Course

from study import published
from study.analysis.statistics.parameter_tables import MetricCell
from study.home.folder import Home
from study.published import Claim
from study.reproduce import build_and_write_reproduction, reproduction_to_dict, reproduction_to_markdown
from study.reproduce.reproduction import Reproduction, judge_claim, printed_paper_entry

Begin = Callable[..., Course]

ROW, GOOD, OTHER = "0.999", "lambda = 0.5, alpha = 0.01", "lambda = 0.5, alpha = 1.0"


def at(rho: float, weight: float, alpha: float) -> dict[str, float]:
    return {"data.rho": rho, "method.lambda": weight, "method.alpha": alpha}


def partly(begin: Begin, state: str = "interrupted") -> Reproduction:
    """Two cells on two seeds, one that failed, one that runs; the best epoch of the first is not its last."""
    strongest = "search.space.data.rho.choices=[0.999, 0.997]"
    study = begin("fairkl-table12", strongest, "search.replicates=2", "train.epochs=2", profile="cpu")
    for seed, values in enumerate([(0.95, 0.90), (0.70, 0.80)]):
        study.trial(at(0.999, 0.5, 0.01), seed, values)
    for seed, values in enumerate([(0.20, 0.30), (0.30, 0.32)]):
        study.trial(at(0.999, 0.5, 1.0), seed, values)
    study.trial(at(0.999, 1.0, 0.01), 0, [], state="failed")
    study.trial(at(0.999, 1.0, 0.1), 0, [0.5], state=None)
    study.trial(at(0.997, 0.5, 0.01), 0, [0.85, 0.86])
    return build_and_write_reproduction(study.close(state), "fairkl-table12")


def line(reproduction: Reproduction, row: str, who: str) -> list[str]:
    """A printed line."""
    grid = reproduction.last_epoch_grid
    entries = grid.entries[list(grid.rows).index((row, who))]
    return [" ".join(part for part in (grid.number_text(one), one.remark) if part) for one in entries]


def test_each_cell_has_ours_the_papers_and_a_verdict_or_says_why_not(begin: Begin) -> None:
    reproduction = partly(begin)
    assert line(reproduction, ROW, "ours") == [
        "85.00 ± 7.07 (2)",
        "- not yet",
        "31.00 ± 1.41 (2)",
        "- failed",
        "- not yet",
        "- not yet",
    ]
    assert line(reproduction, ROW, "paper")[0] == "89.55 ± 1.43"
    assert line(reproduction, ROW, "verdict") == ["cannot tell", "", "differs", "", "", ""]
    assert line(reproduction, "0.997", "ours")[0] == "86.00 (1)"
    assert line(reproduction, "0.995", "paper (not run)")[0] == "92.42 ± 3.76"
    assert len(reproduction.last_epoch_grid.rows) == 3 + 3 + 1 + 1


def test_a_row_of_which_the_paper_prints_nothing_is_ours(begin: Begin) -> None:
    """As in a sweep of our own, which has the form of a table."""
    study = begin("fairkl-epsilon", "search.replicates=2", "train.epochs=2", profile="cpu")
    study.trial({"method.epsilon": 0.25, "method.name": "eps_sup_info_nce"}, 0, [0.3, 0.4])
    reproduction = build_and_write_reproduction(study.close("interrupted"), "fairkl-epsilon")
    assert [who for _, who in reproduction.last_epoch_grid.rows] == ["ours", "paper (not run)"]


def test_a_cell_of_which_the_paper_prints_nothing_has_no_verdict(begin: Begin) -> None:
    """In a row of which it prints another cell."""
    study = begin("cclk-table5", "search.replicates=2", "train.epochs=1", profile="cpu")
    for seed in (0, 1):
        study.trial(
            {"method.kernel": "linear"}, seed, [0.3], further={"test/lbfgs_accuracy": 0.8, "test/condition_mse": 0.01}
        )
    reproduction = build_and_write_reproduction(study.close("interrupted"), "cclk-table5")
    assert line(reproduction, "Linear", "ours")[0] == "80.0 ± 0.0 (2)"
    assert line(reproduction, "Linear", "verdict") == ["", "", ""]


def test_a_protocol_of_our_own_is_not_called_the_papers(begin: Begin) -> None:
    study = begin("fscl-digits", "search.replicates=2", "train.epochs=2")
    study.trial({"data.rho": 0.8, "method.name": "FSCL"}, 0, [0.3, 0.4])
    notes = " ".join(build_and_write_reproduction(study.close("interrupted"), "fscl-digits").last_epoch_grid.notes)
    assert "Against a protocol of our own: search.replicates 2 instead of 5; train.epochs 2 instead of 15." in notes


def test_the_epoch_that_is_best_on_the_test_split_is_shown_apart(begin: Begin) -> None:
    reproduction = partly(begin)
    assert reproduction.last_epoch_cells[ROW, GOOD].values == (0.90, 0.80)
    assert reproduction.best_epoch_cells[ROW, GOOD].values == (0.95, 0.80)
    text = reproduction_to_markdown(reproduction)
    assert "## At the best epoch on the test split" in text
    assert "Nothing else is chosen by the test split" in text
    assert "no split chose it" in text


def test_claims_are_checked_with_what_there_is(begin: Begin) -> None:
    claims = partly(begin).claims_frame.set_index("claim")["result"]
    assert claims["At rho 0.999 and lambda 0.5 alpha 0.01 is better than alpha 1.0"] == "holds"
    assert claims["At rho 0.997 and lambda 0.5 alpha 0.01 is better than alpha 1.0"] == "cannot tell"


def test_the_table_states_budget_variant_and_what_is_missing(begin: Begin) -> None:
    notes = " ".join(partly(begin).last_epoch_grid.notes)
    assert "Biased-MNIST, lenet, 2 epochs, 2 seeds (0, 1)" in notes
    assert "model.name lenet instead of simple_conv_net" in notes
    assert "search.replicates 2 instead of 3" in notes
    assert "train.epochs 2 instead of 80" in notes
    assert "method.alpha_squared false; method.base_temperature 0.07" in notes
    assert "Reading of the protocol: once" in notes
    assert "method.variant reference" in notes
    assert "Missing: not run (not part of this study: see --profile): 0.995; 0.99." in notes
    assert f"failed (every trial failed): {ROW}: lambda = 1, alpha = 0.01." in notes


def test_files_are_written_beside_the_report(begin: Begin, home: Home) -> None:
    reproduction = partly(begin)
    folder = home.find_study("fairkl-table12").report_folder
    assert (folder / "reproduction.md").read_text(encoding="utf-8") == reproduction_to_markdown(reproduction)
    latex = (folder / "reproduction.tex").read_text(encoding="utf-8")
    assert latex.count(r"\begin{tabular}") == 2
    assert r"\textbf{85.00 $\pm$ 7.07} (2) & - not yet & \underline{31.00 $\pm$ 1.41} (2)" in latex
    rows = list(csv.DictReader(io.StringIO((folder / "reproduction.csv").read_text(encoding="utf-8"))))
    first = next(iter(rows))
    assert float(first["mean"]) == pytest.approx(0.85)
    assert first["n"] == "2"


def test_json_has_every_cell(begin: Begin) -> None:
    found = reproduction_to_dict(partly(begin))
    assert len(found["cells"]) == 24
    first, second = found["cells"][:2]
    assert first["last_epoch"] == {"mean": pytest.approx(0.85), "sd": pytest.approx(0.070710678), "n": 2}
    assert first["printed"] == "89.55 ± 1.43"
    assert (first["missing"], second["missing"], second["last_epoch"]) == (None, "not yet", None)


def test_a_study_of_which_nothing_ran_is_the_papers_table(begin: Begin) -> None:
    reproduction = build_and_write_reproduction(begin("fairkl-table12").close("interrupted"), "fairkl-table12")
    assert set(reproduction.missing_reasons.values()) == {"not yet"}
    assert reproduction.best_epoch_grid is None
    assert [who for _, who in reproduction.last_epoch_grid.rows] == ["paper (not yet)"] * 4
    assert set(reproduction.claims_frame["result"]) == {"cannot tell"}


def test_what_the_project_does_not_have_is_the_papers_alone(begin: Begin) -> None:
    study = begin("fairkl-table3", profile="cpu")
    study.trial({"data.rho": 0.99, "method.name": "CE"}, 0, [0.1] * 5 + [0.4])
    reproduction = build_and_write_reproduction(study.close("interrupted"), "fairkl-table3")
    assert ("LNL", "paper (published only)") in reproduction.last_epoch_grid.rows
    assert reproduction.last_epoch_cells["CE", "0.99"].values == (0.4,)
    assert reproduction.missing_reasons["CE", "0.999"] == "not run"
    assert reproduction.missing_reasons["eps-SupInfoNCE", "0.99"] == "not yet"


def test_data_that_a_user_must_bring_are_a_reason_of_their_own(begin: Begin) -> None:
    reproduction = build_and_write_reproduction(
        begin("fairkl-table8", profile="cpu").close("interrupted"), "fairkl-table8"
    )
    assert reproduction.missing_reasons["ImageNet-100", "CE"] == "data to bring"
    assert reproduction.missing_reasons["CIFAR-100", "CE"] == "not run"
    assert reproduction.missing_reasons["CIFAR-10", "CE"] == "not yet"


def test_a_printed_spread_of_unknown_count_stands_behind_the_number() -> None:
    """The mean squared error of colours is in the printed unit, 0 to 255 squared."""
    table = published.load_published_table("cclk-table3")
    entry = printed_paper_entry(table, ("InfoNCE", "MSE"))
    assert entry.statistics is not None
    assert entry.statistics.mean == pytest.approx(48.8)
    assert (entry.statistics.standard_deviation, entry.remark) == (None, "± 4.5")
    known = printed_paper_entry(published.load_published_table("fairkl-table12"), (ROW, GOOD)).statistics
    assert known is not None
    assert (known.standard_deviation, known.count) == (pytest.approx(0.0143), 3)


def test_numbers_of_another_quantity_get_no_verdict_and_the_table_says_why(begin: Begin) -> None:
    """The gaps that WCL's Table 3 prints for COMPAS are not those of its equation."""
    study = begin("wcl-table3", "train.epochs=2", profile="cpu")
    for split in (0, 1):
        for method, gap in (("DCL", 0.02), ("WCL", 0.01 + split / 1000)):
            params = {"data.name": "compas", "data.split_seed": split, "method.name": method}
            params["train.augmentation"] = "corrupt_columns"
            further = {"test/lbfgs_accuracy": 0.6, "test/lbfgs_accuracy_parity": gap}
            study.trial(params, 0, [0.6, 0.6], further=further)
    reproduction = build_and_write_reproduction(study.close("interrupted"), "wcl-table3")
    assert line(reproduction, "WCL (E_d)", "ours")[3] == "1.0 ± 0.1 (2)"
    assert line(reproduction, "WCL (E_d)", "verdict")[3] == "no verdict"
    assert line(reproduction, "WCL (E_d)", "verdict")[2] != "no verdict"
    assert any("No verdict on COMPAS EOd: " in note for note in reproduction.last_epoch_grid.notes)
    claims = reproduction.claims_frame.set_index("claim")
    fairer = claims.loc["On COMPAS WCL is fairer than DCL"]
    assert (fairer["result"], fairer["our means"]) == ("cannot tell", "-")
    assert "another quantity" in fairer["remark"]
    assert claims.loc["On COMPAS WCL is more accurate than DCL", "our means"] != "-"
    cells = {(cell["row"], cell["column"]): cell for cell in reproduction_to_dict(reproduction)["cells"]}
    assert "another quantity" in cells["WCL (E_d)", "COMPAS EOd"]["no_verdict"]
    assert cells["WCL (E_d)", "Adult EOd"]["no_verdict"] is None


OURS = {
    ("0.999", GOOD): MetricCell("test/accuracy", (0.50, 0.51, 0.52)),
    ("0.999", OTHER): MetricCell("test/accuracy", (0.10, 0.11, 0.12)),
    ("0.997", GOOD): MetricCell("test/accuracy", (0.90, 0.91, 0.92)),
}


@pytest.mark.parametrize(
    ("claim", "word"),
    [
        ({"better": [["0.999", GOOD], ["0.999", OTHER]]}, "holds"),
        ({"better": [["0.999", GOOD], ["0.995", GOOD]]}, "cannot tell"),
        ({"increasing": {"column": GOOD, "rows": ["0.999", "0.997"]}}, "holds"),
        ({"decreasing": {"row": "0.999", "columns": [GOOD, OTHER]}}, "holds"),
        ({"best": {"row": "0.997", "column": GOOD}}, "holds"),
        ({"best": {"row": "0.999", "column": GOOD}}, "does not hold"),
        ({"best": {"row": "0.999", "column": GOOD, "among": "row"}}, "holds"),
    ],
)
def test_claims_as_a_published_table_states_them(claim: dict[str, Any], word: str) -> None:
    assert judge_claim(Claim.model_validate({"text": "as printed"} | claim), OURS).verdict == word
