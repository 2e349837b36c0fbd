"""Studies side by side."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from helpers import Told, quickstart, record
from typer.testing import CliRunner

from study.analysis.report.page_formats import frame_to_markdown
from study.analysis.statistics.compare_studies import compare_studies, comparison_table, missing_comparison_notes
from study.cli import app
from study.commands.final_training import final_training_spec
from study.errors import UserError
from study.home.folder import Home
from study.home.record import StudyRecord
from study.ranking import Results
from study.ranking.difference import selection_adjusted_t
from study.ranking.json_documents import to_plain_value
from study.spec import StudySpec

FEW = replace(quickstart("search.trials=3"), name="few")
LONG = replace(quickstart("search.trials=9", "train.epochs=40"), name="long")
RAN = record(
    Told("baseline", [0.4, 0.5], params={"method.alpha": 1.0}),
    Told("search", [0.5, 0.7], params={"method.alpha": 0.1}),
    Told("search", [0.1], "pruned", params={"method.alpha": 0.2}),
    Told("confirm", [0.5], seed=1, repeats=0, params={"method.alpha": 1.0}, tested={"test/accuracy": 0.4}),
    Told("confirm", [0.5], seed=2, repeats=0, params={"method.alpha": 1.0}, tested={"test/accuracy": 0.4}),
    Told("confirm", [0.6], seed=1, repeats=1, params={"method.alpha": 0.1}, tested={"test/accuracy": 0.5}),
    Told("confirm", [0.8], seed=2, repeats=1, params={"method.alpha": 0.1}, tested={"test/accuracy": 0.5}),
)
SEARCHED, OTHER = "method.alpha: {low: 0.1, high: 1.0}", "train.learning_rate: {low: 0.001, high: 0.1}"
BEGUN = record(Told("baseline", [0.5]), Told("search", [], "running"))


def test_what_each_found_and_cost() -> None:
    assert frame_to_markdown(
        comparison_table(compare_studies([Results(FEW, RAN), Results(LONG, BEGUN)]))
    ).splitlines() == [
        "|  | few | long |",
        "| --- | --- | --- |",
        "| state | running | running |",
        "| trials | 6 complete, 1 pruned | 1 complete |",
        "| epochs run | 9 | 1 |",
        "| best trial | 1 | 0 (baseline) |",
        "| baseline val/accuracy | 50.0 ± 0.0% (2) | 50.0% (1) |",
        "| best val/accuracy | 70.0 ± 14.1% (2) | 50.0% (1) |",
        "| baseline test/accuracy | 40.0 ± 0.0% (2) | - |",
        "| best test/accuracy | 50.0 ± 0.0% (2) | - |",
        "| best - baseline val/accuracy | +20.0 points (too few seeds to judge) | - |",
        "| best - baseline test/accuracy | +10.0 points on every seed alike | - |",
        "| best method.alpha | 0.1 | - |",
        "| train.epochs | 20 | 40 |",
        "| search.trials | 3 | 9 |",
    ]


def test_keys_that_only_one_method_has_are_rows_where_they_are_set() -> None:
    """Those at their defaults come with the method's name; a training of the baseline ended with 22 rows of them."""
    methods = {"plain": "{name: cross_entropy, class_weights: 0.5}", "other": "{name: eps_sup_info_nce, epsilon: 0.25}"}
    nothing_searched = "search.space={}", "search.baseline=null"
    specs = [replace(quickstart(f"method={one}", *nothing_searched), name=name) for name, one in methods.items()]
    rows = comparison_table(compare_studies([Results(spec, BEGUN) for spec in specs])).set_index("")
    assert [name for name in rows.index if name.startswith("method.")] == [
        "method.name",
        "method.class_weights",
        "method.epsilon",
    ]
    assert rows.loc["method.epsilon"].tolist() == ["-", "0.25"]


def test_a_key_that_one_study_searches_is_a_row_where_another_has_it_at_its_default() -> None:
    searching, fixed = (quickstart(f"search.space={{{space}}}", "search.baseline=null") for space in (SEARCHED, OTHER))
    specs = [replace(spec, name=name) for spec, name in ((searching, "searching"), (fixed, "fixed"))]
    assert compare_studies([Results(spec, BEGUN) for spec in specs])[1].settings["method.alpha"] == 1.0


def test_final_trainings_do_not_differ_by_how_a_search_goes() -> None:
    """A training of the best has `search.confirm.folds: all`, one of the baseline null; neither searches."""
    ran = record(Told("final", [0.5], seed=1))
    spec = replace(quickstart("search.space={}", "search.baseline=null"), name="best", final_seeds=(1,))
    confirm = spec.search.confirm.model_copy(update={"folds": "all"})
    other = replace(spec, name="baseline", search=spec.search.model_copy(update={"confirm": confirm}))
    assert [one.settings for one in compare_studies([Results(spec, ran), Results(other, ran)])] == [{}, {}]


def test_of_several_limits_those_that_the_best_breaks_are_named() -> None:
    limits = "search.constraints=[val/equalized_odds <= 0.1, val/accuracy >= 0.2]"
    ran = record(Told("search", [0.5], further={"val/equalized_odds": 0.3}))
    studies = [Results(replace(quickstart(limits), name=name), ran) for name in ("one", "two")]
    (told,) = (
        row for row in comparison_table(compare_studies(studies)).itertuples(index=False) if row[0] == "best trial"
    )
    assert told[1] == "0, breaks val/equalized_odds <= 0.1"


def test_what_no_study_has_is_no_row() -> None:
    without = quickstart("search.baseline=null", "search.sampler=random")
    studies = [Results(replace(without, name=name), record(Told("search", [0.5]))) for name in ("one", "two")]
    rows = list(comparison_table(compare_studies(studies))[""])
    assert "best val/accuracy" in rows
    assert not any(row.startswith(("baseline", "best - baseline")) or "test" in row for row in rows)


def test_it_is_plain_json() -> None:
    first, second = json.loads(
        json.dumps(to_plain_value(compare_studies([Results(FEW, RAN), Results(LONG, BEGUN)])), allow_nan=False)
    )
    assert first["best"]["metrics"]["val/accuracy"] == {"mean": 0.7, "sd": pytest.approx(0.02**0.5), "n": 2}
    assert first["gain"]["val/accuracy"]["difference"] == pytest.approx(0.2)
    assert second["gain"] == {}
    assert second["settings"] == {"train.epochs": 40, "search.trials": 9}


def with_data(fingerprint: str) -> StudyRecord:
    found = record(Told("baseline", [0.5]))
    found.sessions[-1] = replace(found.sessions[-1], data=fingerprint)
    return found


@pytest.mark.parametrize(
    ("studies", "said"),
    [
        ([Results(FEW, RAN)], "few given: two or more different studies"),
        ([Results(FEW, RAN), Results(FEW, RAN)], "few and few given"),
        (
            [Results(FEW, RAN), Results(LONG, with_data("other"))],
            "different data cannot be compared. few: .* d; long: .* other"
            r"\. No key of their data differs, but what is read by it does: files have changed in between$",
        ),
        (
            [Results(FEW, RAN), Results(replace(quickstart("search.metric=val/equalized_odds"), name="fair"), RAN)],
            "different metric cannot be compared. few: val/accuracy; fair: val/equalized_odds",
        ),
        (  # no metric would help
            [
                Results(FEW, RAN),
                Results(replace(quickstart("search.metric=val/equalized_odds"), name="fair"), with_data("other")),
            ],
            "different data cannot be compared. few: .* d; fair: .* other\\.",
        ),
        (
            [Results(FEW, RAN), Results(replace(quickstart("data.rho=0.9"), name="weak"), with_data("other"))],
            r"They differ in data\.rho: 0\.95 in few, 0\.9 in weak$",
        ),
        (
            [
                Results(FEW, RAN),
                Results(
                    replace(quickstart("search.space.data.rho={choices: [0.8, 0.9]}"), name="all"), with_data("other")
                ),
            ],
            r"They differ in data\.rho: 0\.95 in few, \[0\.8, 0\.9\] in all$",
        ),
        ([Results(FEW, RAN), Results(LONG, StudyRecord())], "long: has not begun yet"),
        ([Results(FEW, RAN), Results(final_training_spec(LONG, [1], "trained"), RAN)], "trained: is a final training"),
    ],
)
def test_what_does_not_compare_is_refused(studies, said) -> None:
    with pytest.raises(UserError, match=said):
        compare_studies(studies)


FAIR = replace(quickstart("search.metric=val/equalized_odds"), name="fair")


def both(accuracy: float, odds: float, metric: str) -> StudyRecord:
    """A study's record whose one trial has both metrics; `metric` is the study's."""
    values = {"val/accuracy": accuracy, "val/equalized_odds": odds}
    return record(Told("baseline", [values.pop(metric)], metric=metric, further=values))


def test_studies_of_different_metrics_are_compared_by_one_that_all_have() -> None:
    studies = [Results(FEW, both(0.7, 0.2, "val/accuracy")), Results(FAIR, both(0.6, 0.1, "val/equalized_odds"))]
    with pytest.raises(UserError, match=r"--metric val/accuracy$"):
        compare_studies(studies)
    with pytest.raises(UserError, match=r"val/acc: .*Did you mean 'val/accuracy'"):
        compare_studies(studies, "val/acc")
    compared = compare_studies(studies, "val/accuracy")
    rows = comparison_table(compared, "val/accuracy").set_index("")
    assert rows.loc["best val/accuracy"].tolist() == ["70.0% (1)", "60.0% (1)"]
    assert not [name for name in rows.index if "equalized_odds" in name and "search" not in name]
    (told,) = missing_comparison_notes(studies, "val/accuracy")
    assert "not both were chosen by val/accuracy" in told


def test_final_trainings_which_chose_nothing_are_compared_by_any_metric() -> None:
    finals = [
        Results(
            replace(final_training_spec(FEW, [0, 1, 2]), name=name),
            record(
                *(Told("final", [0.7], seed=seed, further={"val/log_loss": one}) for seed, one in enumerate(losses))
            ),
        )
        for name, losses in (("one", (0.5, 0.6, 0.7)), ("two", (0.3, 0.41, 0.49)))
    ]
    assert compare_studies(finals, "val/log_loss")[1].against["val/log_loss"].value == pytest.approx(-0.2)
    assert "chosen" not in " ".join(missing_comparison_notes(finals, "val/log_loss"))


def test_bests_are_not_compared_by_a_metric_that_did_not_choose_them() -> None:
    one = study(0.70, 0.72, 0.76, further={"val/ece": 0.1})
    two = study(0.75, 0.78, 0.80, name="long", further={"val/ece": 0.2})
    told = frame_to_markdown(comparison_table(compare_studies([one, two], "val/ece"), "val/ece"))
    assert "best val/ece" in told
    assert "minus that of" not in told
    (line,) = missing_comparison_notes([one, two], "val/ece")
    assert "not both were chosen by val/ece" in line
    assert not list(missing_comparison_notes([one, two], "val/accuracy"))


def test_the_command(spec: StudySpec, frozen_ledger: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STUDY_HOME", str(tmp_path))
    for name, seed in (("one", 0), ("two", 5)):
        search = spec.search.model_copy(update={"seed": seed})
        shutil.copy(frozen_ledger, Home(tmp_path).create_study(replace(spec, name=name, search=search)).ledger_file)
    printed_lines = CliRunner().invoke(app, ["compare", "one", "two"]).stdout.splitlines()
    assert printed_lines[0] == "|  | one | two |"
    assert (
        "| best - baseline test/accuracy | +20.0 points (+14.4 to +25.6) | +20.0 points (+14.4 to +25.6) |"
        in printed_lines
    )
    assert printed_lines[-1] == "| search.seed | 0 | 5 |"
    documents = json.loads(CliRunner().invoke(app, ["compare", "one", "two", "--json"]).stdout)
    assert [one["name"] for one in documents] == ["one", "two"]
    assert isinstance(CliRunner().invoke(app, ["compare", "one"]).exception, UserError)


def study(*values: float, name: str = "few", seeds: tuple[int, ...] = (1, 2, 3), **told: Any) -> Results:
    """A study whose best, trial 1, has these values on fresh seeds."""
    confirmed = [
        Told("confirm", [value - 0.3 * (repeats == 0)], seed=seed, repeats=repeats, params={}, **told)
        for repeats in (0, 1)
        for seed, value in zip(seeds, values, strict=True)
    ]
    searched = [Told("baseline", [0.4], params={}, **told), Told("search", [0.7], params={}, **told)]
    return Results(replace(quickstart("search.confirm={top: 1, seeds: 3}"), name=name), record(*searched, *confirmed))


def test_the_bests_of_two_studies_are_compared_seed_by_seed() -> None:
    one, two = study(0.70, 0.72, 0.76), study(0.75, 0.78, 0.80, name="long")
    first, second = compare_studies([one, two])
    assert first.against == {}
    found = second.against["val/accuracy"]
    assert found.value == pytest.approx(0.05)
    assert (found.is_paired, found.n_candidates) == (True, 4)
    reach = selection_adjusted_t(0.975, 2, 4) * 0.01 / 3**0.5  # 0.05, 0.06 and 0.04
    assert found.interval == pytest.approx([0.05 - reach, 0.05 + reach])
    assert "best val/accuracy, minus that of few" in frame_to_markdown(comparison_table([first, second]))


def test_on_other_seeds_or_splits_the_bests_are_not_compared() -> None:
    one = study(0.70, 0.72, 0.76)
    other_split = Results(
        replace(quickstart("data.seed=7", "search.confirm={top: 1, seeds: 3}"), name="long"), one.record
    )
    for other in (study(0.75, 0.78, 0.80, name="long", seeds=(4, 5, 6)), other_split):
        documents = compare_studies([one, other])
        assert documents[1].against == {}
        reason = (
            "share fewer than two seeds"
            if other.spec.trial_data_sections == one.spec.trial_data_sections
            else "splits differ"
        )
        told = list(missing_comparison_notes([one, other]))
        assert told[0].startswith("Left out: the difference of long to few, as")
        assert reason in told[0]
        assert "minus that of" not in frame_to_markdown(comparison_table(documents))
