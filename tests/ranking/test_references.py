"""What needs no search is beside what is searched: which is the result, and what every sentence says of it."""

import copy
import re
from dataclasses import replace
from pathlib import Path

import pytest
from helpers import Told, record, write_ledger
from matplotlib.text import Text
from told_studies import (
    CONSTRAINT,
    ERROR,
    FRONT,
    ODDS,
    PARAMS,
    REFERENCED,
    only,
    over,
    referenced,
    referenced_spec,
    said,
)

import study
from study.analysis.figures import FIGURES
from study.analysis.report.conclusions import GainOverBaseline, conclusion_statements
from study.analysis.report.figure_captions import FIGURE_CAPTIONS
from study.analysis.report.page_formats import page_to_markdown
from study.analysis.report.reference_sentences import (
    BetterReferenceNotChosen,
    ReferenceIsResult,
    ReferenceNotFitted,
    ReferenceResultOnTest,
    ReferencesNotCompared,
    ResultBesideReference,
)
from study.analysis.report.report_lead import report_lead_statements
from study.analysis.report.report_page import build_report_page
from study.analysis.statistics.compare_studies import compare_studies, comparison_table
from study.analysis.statistics.next_step import UseReference, next_steps
from study.analysis.statistics.unkept_constraints import NoConfigurationKeepsConstraints
from study.analysis.tables.report_tables import baseline_and_result_table
from study.commands import status
from study.commands.final_training import final_training_spec
from study.commands.progress import StudyProgress
from study.home import ledger
from study.home.events import ReferenceFitted, SessionClosed
from study.home.folder import Home
from study.home.record import StudyRecord, TrialRecord
from study.metrics.metric_format import format_metric
from study.ranking import FittedReference, Results, study_summary
from study.ranking.json_documents import to_plain_value
from study.ranking.study_summary import result_seeds
from study.spec import load_study
from study.spec.reference_models import REFERENCES
from study.tracking.runs_from_events import STUDY_RUN_KEY, EventTranslator
from study.tracking.tracking_state import TrackingState

RESULTS = {
    "wins": "logistic_regression",
    "wins, worse on test": "logistic_regression",
    "loses": None,
    "ties": "logistic_regression",
    "within the margin": "logistic_regression",
    "beyond the margin": None,
    "two metrics, dominates": "logistic_regression",
    "two metrics, one each": None,
    "keeps the limit": "majority",
    "misses the limit": None,
    "nothing keeps the limit": None,
    "needs the group": None,
    "the baseline leads": "logistic_regression",
}
"""Which reference is the result of the study of that name."""


@pytest.mark.parametrize("case", RESULTS)
def test_the_result_is_what_no_configuration_beats(case: str) -> None:
    results, expected = Results(*REFERENCED[case]), RESULTS[case]
    stays = results.reference_as_result
    assert (stays and stays.name) == expected
    document = study_summary.summarise_study(results)
    assert document.references is not None
    assert document.references.result == expected
    lines = study_summary.summary_lines(document)
    assert [one.reference for one in said(ReferenceIsResult, results)] == ([stays] if stays else [])
    if stays:
        assert f"best: {stays.name_in_sentence}, which needs no search" in lines
        assert next_steps(results)[0].why == UseReference(stays)
    else:
        assert not any(line.startswith("best: ") and "needs no search" in line for line in lines)


UNSCOPED = re.compile(
    r"trial \d+ (?:is|was) the best|trial \d+, (?:the )?best|best(?: by [\w ]+)? \(trial|^best: trial"
    r"|the best configuration|to the best\b|best so far|★",
    re.IGNORECASE | re.MULTILINE,
)
CHOSEN = re.compile(r"chose by [^:]+: trial|\d, chosen \||what was chosen of the front|Of the front .* is chosen")
"""What calls a configuration the chosen one."""


@pytest.mark.parametrize("case", [case for case in RESULTS if Results(*REFERENCED[case]).references_above_best])
def test_nothing_calls_a_configuration_the_best_while_a_reference_is_above_it(case: str) -> None:
    spec, found = REFERENCED[case]
    results = Results(spec, found)
    page = page_to_markdown(build_report_page(results, FIGURE_CAPTIONS.keys()))
    lines = "\n".join(study_summary.summary_lines(study_summary.summarise_study(results)))
    for text in (page, lines, StudyProgress(spec, found).progress_line(), drawn_text(results)):
        assert not UNSCOPED.findall(text), text
        assert not results.reference_as_result or not CHOSEN.findall(text), text
    assert "which best.yaml holds, is" not in page


def test_while_the_search_goes_on_no_test_value_of_a_reference_is_shown() -> None:
    """The choice is still to be made, and nobody should make it by the test split."""
    spec, found = REFERENCED["wins, worse on test"]
    ended, running = copy.deepcopy(found), copy.deepcopy(found)
    ended.state, running.state = "complete", "running"
    for trial in running.trials.values():
        trial.test_metrics = {}
    ablated = copy.deepcopy(running)
    ablated.search_ended_by = "trials"
    over, going_on = Results(spec, ended), Results(spec, running)
    for shown in (over, Results(spec, ablated)):
        assert any(name.startswith("test/") for one in shown.references for name in one.metrics)
    assert [one.name for one in going_on.references] == [one.name for one in over.references]
    assert not any(name.startswith("test/") for one in going_on.references for name in one.metrics)
    lines = [
        line for line in study_summary.summary_lines(study_summary.summarise_study(going_on)) if "regression" in line
    ]
    assert lines
    assert not any("test/" in line for line in lines)
    assert build_report_page(going_on, FIGURE_CAPTIONS.keys())


def drawn_text(results: Results) -> str:
    """All words in the figures of a study."""
    figures = [figure for draw in FIGURES.values() if (figure := draw(results))]
    return "\n".join(text.get_text() for figure in figures for text in figure.findobj(Text))


@pytest.fixture
def written(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> study.Study:
    """The study of that case as a folder of a home."""
    monkeypatch.setenv("STUDY_HOME", str(tmp_path / "home"))
    spec, found = REFERENCED[request.param]
    folder = Home.locate().create_study(replace(spec, name="mine"))
    write_ledger(folder.ledger_file, *(of_trial(one) for one in found.trials.values()))
    more = ledger.Ledger(folder.ledger_file)
    for event in (*found.reference_events.values(), SessionClosed(state="complete")):
        more.append(event)
    more.close()
    return study.load("mine")


def of_trial(one: TrialRecord) -> Told:
    further = {name: value for name, value in one.reports[-1].items() if name not in ("epoch", "val/accuracy")}
    tested = {name: value for name, value in one.test_metrics.items() if value is not None}
    value = one.last_metric("val/accuracy")
    return Told(one.stage, [value], params=dict(one.params), tested=tested, further=further)


@pytest.mark.parametrize("written", RESULTS, indirect=True)
def test_all_who_read_a_study_take_the_same_for_its_result(written: study.Study, tmp_path: Path) -> None:
    """File, Python, JSON, list, MLflow, comparison and page name one thing, with one value of the study's metric."""
    results, metric = written.results, written.spec.metric
    best, told = written.best, written.summary["best"]
    assert best is not None
    result, value = best.reference or best.trial, best.metrics[metric].mean
    assert ("(no seed)" in str(best)) == ("(no seed)" in str(written)) == (best.reference is not None)
    assert result == (
        results.reference_as_result.name if results.reference_as_result else results.ranked_all[0].trial.number
    )

    (file,) = written.export(tmp_path / "best.yaml")
    origin = load_study(str(file)).origin or {}
    assert (origin.get("reference", origin.get("trial")), origin["metrics"][metric]) == (result, value)
    assert (told.get("reference", told.get("trial")), told["metrics"][metric]["mean"]) == (result, value)
    assert written.summary["result"] == best.reference

    (row,) = status.list_study_rows(Home.locate())
    assert (row["reference"], row["best"]) == (best.reference, value)

    runs = {
        run.run_key: run
        for run in EventTranslator(written.spec, TrackingState(""), StudyRecord()).translate(
            ledger.read_entries(written.folder.ledger_file)
        )
    }
    key = f"reference {best.reference}" if best.reference else str(best.trial)
    assert [each for each, run in runs.items() if run.tags.get("study.best")] == [key]
    assert {point.value for point in runs[STUDY_RUN_KEY].metric_values if point.name == f"best/{metric}"} == {value}

    other = Results(replace(written.spec, name="other"), written.record)
    columns = comparison_table(compare_studies([results, other]))
    rows = dict(zip(columns[""], columns["mine"], strict=True))
    assert rows[f"best {metric}"].startswith(format_metric(metric, value))
    assert (
        REFERENCES[best.reference].description in rows["best trial"]
        if best.reference
        else str(result) in rows["best trial"]
    )
    assert rows["without a search"] == (results.best_reference and results.best_reference.name_in_sentence)

    page = page_to_markdown(build_report_page(results, ()))
    assert ("| result (" in page) == (best.reference is not None)


@pytest.mark.parametrize("written", ["wins", "the baseline leads"], indirect=True)
def test_what_leads_the_search_is_there_beside_the_result(written: study.Study) -> None:
    searched, leads = written.best_searched, written.results.ranked_all[0].trial
    assert searched is not None
    assert (searched.trial, searched.params, searched.reference) == (leads.number, leads.params, None)
    assert written.summary["search"]["trial"] == leads.number
    assert to_plain_value(study_summary.summarise_study(Results(*REFERENCED["loses"]))).keys().isdisjoint({"search"})


def test_on_test_the_result_stands_beside_both() -> None:
    """That it is worse there than what it was chosen over is said."""
    results = Results(*REFERENCED["wins, worse on test"])
    on_test = only(ReferenceResultOnTest, results)
    reference, *others = on_test.arms
    assert (on_test.metrics, [arm.trial_number for arm in others]) == (["test/accuracy"], [0, 1])
    assert (reference.is_reference, reference.label) == (True, results.reference_as_result.name_in_sentence)
    assert str(on_test).endswith("60.0% for logistic regression, 90.0% for the baseline and 90.0% for trial 1.")


def test_what_is_above_by_its_group_is_named_and_not_chosen() -> None:
    results = Results(*REFERENCED["needs the group"])
    assert [one.name for one in results.references_above_best] == ["threshold_optimizer"]
    assert [one.reference for one in said(BetterReferenceNotChosen, results)] == results.references_above_best
    assert "needs the group, randomised" in page_to_markdown(build_report_page(results, {}))


@pytest.mark.parametrize("changes", [(), (FRONT,)])
def test_what_needs_the_group_is_not_said_to_be_better_than_a_result_that_it_does_not_beat(
    changes: tuple[str, ...],
) -> None:
    """It is above what leads the search, as the result is."""
    beside = {"logistic_regression": (0.8, 0.2), "threshold_optimizer": (0.75, 0.2)}
    results = Results(referenced_spec(*changes), referenced(beside, [(0.7, 0.3)], baseline=(0.6, 0.3)))
    assert results.reference_as_result is not None
    assert results.reference_as_result.name == "logistic_regression"
    assert "threshold_optimizer" in {one.name for one in results.references_above_best}
    assert said(BetterReferenceNotChosen, results) == []


def test_the_gain_over_the_best_of_them_names_its_metric() -> None:
    beside = only(ResultBesideReference, Results(*REFERENCED["loses"]))
    assert (beside.arm.trial_number, beside.reference.name) == (1, "logistic_regression")
    assert beside.gain == pytest.approx(0.1)
    assert str(beside).startswith("In val/accuracy trial 1 is 10.0 points ahead of logistic regression, ")


def test_what_is_better_on_test_than_the_result_is_named_there() -> None:
    on_val, on_test = said(ResultBesideReference, Results(*REFERENCED["behind on test"]))
    assert on_val.ahead == ()
    assert on_test.names == ["test/accuracy"]
    better = ["logistic_regression_class_balanced", "hist_gradient_boosting_class_balanced"]
    assert [one.name for one in on_test.ahead] == better


def beside_reference(
    tested: dict[str, float], of_reference: dict[str, float], error: float = 0.02
) -> tuple[ResultBesideReference, ResultBesideReference]:
    """Return what is said on validation and on test of a trial with 0.7 on validation, and of a reference with 0.6."""
    errors = {"test/accuracy_standard_error": error}
    found = over(Told("search", [0.7], params=PARAMS, further={ERROR: 0.02}, tested=tested | errors))
    metrics = {"val/accuracy": 0.6, ERROR: 0.02, **of_reference, **errors}
    found.apply(ReferenceFitted("logistic_regression", metrics, 1.0, time=90.0))
    on_val, on_test = said(ResultBesideReference, Results(referenced_spec("search.baseline=null"), found))
    return on_val, on_test


@pytest.mark.parametrize("gain", [0.05, -0.05])
def test_where_accuracies_do_not_say_the_same_on_test_all_are_told(gain: float) -> None:
    worst, overall, balanced = "test/worst_group_accuracy", "test/accuracy", "test/conflicting_accuracy"
    tested = {overall: 0.7, balanced: 0.6 + gain, worst: 0.4 - gain}
    on_val, on_test = beside_reference(tested, {overall: 0.7 - gain, balanced: 0.6, worst: 0.4})
    assert on_val.accuracies_ahead_and_behind == ([], [])
    assert on_test.gain == pytest.approx(gain)
    ahead, behind = [balanced, overall], [worst]
    assert on_test.accuracies_ahead_and_behind == ((ahead, behind) if gain > 0 else (behind, ahead))
    assert f"{worst} ({0.4 - gain:.1%} against 40.0%)" in str(on_test)
    _, alike = beside_reference({overall: 0.7, worst: 0.4 + gain}, {overall: 0.7 - gain, worst: 0.4})
    assert alike.accuracies_ahead_and_behind == ([], [])


@pytest.mark.parametrize(("error", "is_within"), [(0.05, True), (0.02, False)])
def test_a_lead_that_the_samples_do_not_tell_says_so(error: float, is_within: bool) -> None:
    _, on_test = beside_reference({"test/accuracy": 0.7}, {"test/accuracy": 0.8}, error)
    assert on_test.is_lead_within_sampling_error is is_within
    assert ("within the error of the split's samples" in str(on_test)) is is_within


def test_the_reference_that_is_compared_is_not_told_again_as_ahead_on_test() -> None:
    _, on_test = beside_reference({"test/accuracy": 0.7}, {"test/accuracy": 0.8})
    assert on_test.gain == pytest.approx(-0.1)
    assert not on_test.ahead


def test_the_most_frequent_class_for_all_is_not_told_as_lacking_a_metric() -> None:
    spec, found = referenced_spec(), referenced({"logistic_regression": (0.8, 0.2)}, [(0.7, 0.2)])
    found.apply(ReferenceFitted("majority", {"val/balanced_accuracy": 0.5}, 1.0, time=90.0))
    assert said(ReferencesNotCompared, Results(spec, found)) == []


def test_a_lower_metric_gains_by_being_lower() -> None:
    spec = referenced_spec(f"search.metric={ODDS}")
    found = referenced({"logistic_regression": (0.9, 0.2)}, [(0.7, 0.05)])
    assert only(ResultBesideReference, Results(spec, found)).gain == pytest.approx(0.15)
    assert Results(spec, referenced({"logistic_regression": (0.1, 0.01)}, [(0.7, 0.05)])).reference_as_result


def test_of_several_metrics_the_values_stand_side_by_side() -> None:
    beside = only(ResultBesideReference, Results(*REFERENCED["two metrics, one each"]))
    values = [(beside.arm.metric_statistics(name).mean, beside.reference.metrics[name]) for name in beside.names]
    assert values == [(0.7, 0.8), (0.1, 0.2)]


def test_a_margin_says_why_it_stays() -> None:
    stays = only(ReferenceIsResult, Results(*REFERENCED["within the margin"]))
    assert (stays.lead.candidate.trial.number, stays.lead.gain) == (1, pytest.approx(0.02))
    assert stays.margin * stays.lead.standard_error == pytest.approx(0.02 * 2**0.5)


def test_they_stand_in_the_first_table_with_the_baseline() -> None:
    page = page_to_markdown(build_report_page(Results(*REFERENCED["wins"]), {}))
    table = page[page.index("## Summary") :].split("\n\n")[1]
    names = [row.split(" | ")[0].removeprefix("| ") for row in table.splitlines()[2:]]
    assert names == [
        "the baseline",
        "logistic regression (the result)",
        "the most frequent class for all",
        "the search: trial 1",
    ]


def test_beside_a_result_that_needs_no_search_what_leads_the_search_has_the_studys_metric_alone() -> None:
    document = study_summary.summarise_study(Results(*REFERENCED["wins"]))
    document = replace(document, shown=["val/accuracy", "val/balanced_accuracy"])
    for arm in document.arms.values():
        arm.metrics["val/balanced_accuracy"] = arm.metrics["val/accuracy"]  # type: ignore[index]
    shown = [line.split()[:2] for line in study_summary.summary_lines(document)]
    own, other = "val/accuracy", "val/balanced_accuracy"
    assert [line for line in shown if line[1] in (own, other)] == [
        ["baseline", own],
        ["baseline", other],
        ["search", own],
        ["best", own],
        ["best", other],
    ]


def test_the_result_that_needs_no_search_has_no_seed() -> None:
    results = Results(*REFERENCED["wins"])
    seeds = baseline_and_result_table(results)["seeds"]
    assert set(seeds) == {"0 / no seed"}
    (best, *_) = [
        line for line in study_summary.summary_lines(study_summary.summarise_study(results)) if line.startswith("best ")
    ]
    assert "(no seed)" in best


def test_one_without_the_metric_is_shown_and_not_compared() -> None:
    spec, found = referenced_spec(), referenced({}, [(0.7, 0.2)])
    found.apply(ReferenceFitted("logistic_regression", {"val/balanced_accuracy": 0.9}, 1.0, time=90.0))
    assert Results(spec, found).best_reference is None
    assert [one.name for one in Results(spec, found).references] == ["logistic_regression"]
    lacking = only(ReferencesNotCompared, Results(spec, found))
    assert ([one.name for one in lacking.references], list(lacking.metrics)) == (
        ["logistic_regression"],
        ["val/accuracy"],
    )


def test_one_that_failed_is_told_and_changes_nothing() -> None:
    spec, found = referenced_spec(), referenced({}, [(0.7, 0.2)])
    before = conclusion_statements(Results(spec, found))
    found.apply(ReferenceFitted("logistic_regression", reason="no memory", time=90.0))
    assert conclusion_statements(Results(spec, found)) == before
    assert only(ReferenceNotFitted, Results(spec, found)) == ReferenceNotFitted("logistic_regression", "no memory")
    lines = study_summary.summary_lines(study_summary.summarise_study(Results(spec, found)))
    assert "  logistic_regression could not be fitted: no memory" in lines


def test_a_search_on_one_fold_is_not_compared_while_it_goes_on() -> None:
    """A reference has predicted the samples of all folds."""
    spec = referenced_spec("data.val=biased", "data.folds=5", "search.confirm={top: 1, folds: all}")
    found = record(Told("baseline", [0.5], fold=0), Told("search", [0.6], params=PARAMS, fold=0))
    found.apply(ReferenceFitted("logistic_regression", {"val/accuracy": 0.9, ERROR: 0.02}, 1.0, time=90.0))
    results = Results(spec, found)
    assert results.best_reference
    assert (results.reference_as_result, results.references_above_best, results.reference_standing) == (None, [], None)
    assert not said(ReferenceIsResult, results)
    assert not said(ResultBesideReference, results)
    text = "\n".join(study_summary.summary_lines(study_summary.summarise_study(results)))
    assert "60.0% (1 fold, 1 seed)" in text
    assert "without a search, judged on all folds:" in text
    assert "both on one fold, seed 0" in str(only(GainOverBaseline, results))


def test_a_reference_reads_test_once_on_each_fold() -> None:
    found = record(*(Told("search", [0.6], fold=fold) for fold in (0, 1, 0)))
    found.apply(ReferenceFitted("logistic_regression", {"val/accuracy": 0.9, "test/accuracy": 0.8}, 1.0, time=90.0))
    found.apply(ReferenceFitted("majority", {"val/accuracy": 0.5}, 1.0, time=90.0))
    assert found.n_test_readings == 2


def test_of_fresh_seeds_the_means_are_compared() -> None:
    """The search's own value was lucky: on fresh seeds the reference is better."""
    spec = referenced_spec("search.confirm={top: 1, seeds: 2}")
    error = {ERROR: 0.02}
    base = dict(spec.search.baseline or {})
    trials = [Told("baseline", [0.5], params=base, further=error), Told("search", [0.9], params=PARAMS, further=error)]
    trials += [Told("confirm", [0.5], params=base, seed=seed, repeats=0, further=error) for seed in (1, 2)]
    trials += [Told("confirm", [0.7], params=PARAMS, seed=seed, repeats=1, further=error) for seed in (1, 2)]
    found = record(*trials)
    found.state = "complete"
    found.apply(ReferenceFitted("logistic_regression", {"val/accuracy": 0.8}, 1.0, time=90.0))
    stays = Results(spec, found).reference_as_result
    assert isinstance(stays, FittedReference)
    arm = only(ReferenceIsResult, Results(spec, found)).arm
    assert (arm.trial_number, arm.metric_statistics("val/accuracy").mean) == (1, pytest.approx(0.7))


def test_where_nothing_keeps_the_limit_that_is_said_first_and_no_reference_is_proposed() -> None:
    """Gradient boosting is nearest to the limit, breaks it too, and is the worst by the study's metric."""
    results = Results(*REFERENCED["nothing keeps the limit"])
    assert results.references_above_best == []
    first = report_lead_statements(results)["Result"][0]
    assert isinstance(first, NoConfigurationKeepsConstraints)
    assert str(first) == (
        "No configuration keeps val/accuracy >= 0.999; the nearest, trial 1, has 90.9%. What needs no search does not "
        "keep it, either; there the nearest, class-balanced gradient boosting, has 95.0%."
    )
    beside = str(only(ResultBesideReference, results))
    assert "class-balanced gradient boosting, which of what needs no search comes nearest to the limits" in beside
    step = next_steps(results)[0]
    assert (step.kind, step.command) == ("loosen", None)
    assert "Loosen the limit (search.constraints)" in str(step.why)
    assert [str(one) for one in report_lead_statements(results)["Next"]] == [str(step.why)]
    lines = study_summary.summary_lines(study_summary.summarise_study(results))
    missed = "val/accuracy >= 0.999 by 0.09 (it has 90.9%)"
    assert f"the best misses {missed}; none of those that it was chosen from keeps it" in lines


def test_what_leads_the_search_is_named_where_it_misses_the_limit() -> None:
    """The reference alone keeps it."""
    results = Results(referenced_spec(CONSTRAINT), referenced({"majority": (0.3, 0.0)}, [(0.7, 0.2)]))
    missed = f"{ODDS} <= 0.1 by 0.1 (it has 0.200)"
    said_of = f"trial 1, which leads the search, misses {missed}; none of those that it was chosen from keeps it"
    assert said_of in study_summary.summary_lines(study_summary.summarise_study(results))
    assert not said(NoConfigurationKeepsConstraints, results)


def test_of_several_limits_those_that_a_better_configuration_breaks_are_named() -> None:
    """The trial's gap is 0.2; the reference alone keeps both limits."""
    spec = referenced_spec(f"search.constraints=[{ODDS} <= 0.1, val/accuracy >= 0.2]")
    stays = only(ReferenceIsResult, Results(spec, referenced({"majority": (0.3, 0.0)}, [(0.7, 0.2)])))
    assert f"is better (70.0%), and misses {ODDS} <= 0.1." in str(stays)


def test_a_reference_that_was_fitted_finally_has_no_seed() -> None:
    """It was fitted once: no line speaks of its seed, or of a spread over seeds that one more would tell."""
    spec = final_training_spec(referenced_spec("train.epochs=1", "search.early_stopping=none"), [6], "fitted")
    spec = replace(spec, base={**spec.base, "method": {"name": "reference", "model": "logistic_regression"}})
    found = over(Told("final", [0.8], seed=6, further={ERROR: 0.02}, tested={"test/accuracy": 0.7}))
    results = Results(spec, found)
    page = page_to_markdown(build_report_page(results, {"seeds"}))
    lines = "\n".join(study_summary.summary_lines(study_summary.summarise_study(results)))
    for text in (page.partition("## Settings")[0], page.partition("## What is not known")[2], lines):
        assert not re.findall("(?i)seed 6|1 seed|one seed|deviation over|the seeds|each ring", text), text
    assert "(no seed)" in lines
    assert "It was fitted once" in page
    assert result_seeds(results) == {"study.final_seeds": "6"}
