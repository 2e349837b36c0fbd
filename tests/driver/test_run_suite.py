"""A suite that is run, stopped, gone on with and printed; its studies are told, not trained."""

import csv
import io
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from suites import TEXT, VALUES, small_suite, tell, write_suite
from typer.testing import CliRunner

from study.analysis.tables import suite_tables
from study.cli import app
from study.driver import run_suite as suites
from study.driver.run_suite import plan_suite, suite_plan_text
from study.driver.session import RunEnd
from study.errors import StartInterruptedError, StudyStoppedError, UserError
from study.home.events import SearchExtended, SessionClosed
from study.home.folder import Home
from study.home.ledger import Ledger
from study.home.record import StudyRecord
from study.spec import StudySpec
from study.spec.suite import Suite


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the studies that were started, each of which is complete at once."""
    started: list[str] = []

    def run(home: Home, spec: StudySpec, view: Any, address: Any, shared: Any) -> RunEnd:
        started.append(spec.name)
        (search,) = (one for one in small_suite(home.path.parent).searches if one.spec.name == spec.name)
        tell(home, search, *VALUES[search.method, search.data, search.search_number])
        folder = home.find_study(spec.name)
        return RunEnd(folder, spec, StudyRecord.load(folder.ledger_file), None)

    monkeypatch.setattr("study.driver.run.start_or_resume", run)
    monkeypatch.setattr("study.driver.run_suite.SharedRay", nullcontext)
    monkeypatch.setattr("study.tracking.MlflowTracker.is_behind", False)
    return started


def begin(home: Home, suite: Suite) -> suites.SuiteEnd:
    return suites.run_suite(home, suite, "small.yaml", lambda *_: nullcontext(), lambda _: None, None)


@pytest.fixture(scope="module")
def complete(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """A home in which the suite is complete; nothing is to change it."""
    folder = tmp_path_factory.mktemp("complete")
    home, suite = Home(folder / "home"), small_suite(folder)
    for search in suite.searches:
        tell(home, search, *VALUES[search.method, search.data, search.search_number])
    suites.write_suite_file(home, suite)
    return home


@pytest.mark.slow
def test_every_search_runs_once_and_what_is_complete_is_left_alone(tmp_path: Path, home: Home, runs: list[str]) -> None:
    suite = small_suite(tmp_path)
    tell(home, suite.searches[1], *VALUES["weak", "rho_95", 1])
    assert begin(home, suite) == suites.SuiteEnd(False, [], [])
    names = [search.spec.name for search in suite.searches]
    assert runs == [names[0], *names[2:]]
    assert begin(home, suite) == suites.SuiteEnd(False, [], [])
    assert len(runs) == 7
    text = suite_tables.suite_to_markdown(suites.suite_tables_so_far(home, suite))
    assert (home.suites_folder / "small" / "table.md").read_text() == text


def test_an_address_that_no_study_of_it_could_use_begins_nothing(tmp_path: Path, home: Home, runs: list[str]) -> None:
    with pytest.raises(UserError, match="within a cluster's network"):
        suites.run_suite(home, small_suite(tmp_path), "small", nullcontext, print, "http://head:8265")
    assert runs == []


def test_a_signal_ends_it_and_the_next_run_goes_on(
    tmp_path: Path, home: Home, runs: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    suite = small_suite(tmp_path)

    def stopped(home: Home, spec: StudySpec, *rest: Any) -> RunEnd:
        tell(home, suite.searches[0], closed="interrupted")
        folder = home.find_study(spec.name)
        return RunEnd(folder, spec, StudyRecord.load(folder.ledger_file), None)

    monkeypatch.setattr("study.driver.run.start_or_resume", stopped)
    assert begin(home, suite).was_stopped
    assert [folder.name for folder in home.list_studies()] == ["small--weak--rho_80--1"]
    asked: list[str] = []

    def resumed(home: Home, spec: StudySpec, *rest: Any) -> RunEnd:
        asked.append(spec.name)
        return RunEnd(home.find_study(spec.name), spec, StudyRecord(state="complete"), "MLflow is down")

    monkeypatch.setattr("study.driver.run.start_or_resume", resumed)
    with pytest.raises(UserError, match="no such study"):
        begin(home, suite)  # the second search has not begun
    assert asked == ["small--weak--rho_80--1", "small--weak--rho_95--1"]


@pytest.mark.parametrize(
    "error", [StudyStoppedError("no room. study resume x"), StartInterruptedError("stopped"), KeyboardInterrupt()]
)
def test_what_stops_it_says_how_it_goes_on(
    tmp_path: Path, home: Home, runs: list[str], error: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: Any) -> RunEnd:
        raise error

    monkeypatch.setattr("study.driver.run.start_or_resume", stop)
    with pytest.raises(
        StudyStoppedError if isinstance(error, StudyStoppedError) else StartInterruptedError,
        match=r"study suite small\.yaml",
    ):
        begin(home, small_suite(tmp_path))


CHANGES = {
    "temperature: {low: 0.1": ("temperature: {low: 0.2", "search.space.method.temperature.low: 0.1 before, 0.2 given"),
    "learning_rate: 0.003": ("learning_rate: 0.004", "train.learning_rate: 0.003 before, 0.004 given"),
    "rho: 0.8}": ("rho: 0.7}", "data.rho: 0.8 before, 0.7 given (small--weak--rho_80--1)"),
    "searches: 2": ("searches: 1", "searches: 2 before, 1 given"),
    "  rho_95: {name: biased_digits, rho: 0.95}\n": ("", "data.rho_95: was part of it, and is not given"),
    "trials: 2": ("trials: 3", "search.trials: 2 before, 3 given"),
    "rules: [accuracy, unb": ("rules: [unb", "rules: ['accuracy', 'unbiased_accuracy'] before"),
}


@pytest.mark.parametrize("old", CHANGES)
def test_a_changed_file_is_refused_with_what_differs(tmp_path: Path, complete: Home, runs: list[str], old: str) -> None:
    new, message = CHANGES[old]
    with pytest.raises(UserError) as refused:
        begin(complete, small_suite(tmp_path, TEXT.replace(old, new)))
    assert message in str(refused.value)
    assert runs == []


def test_more_of_it_is_no_change(tmp_path: Path, complete: Home) -> None:
    more = TEXT.replace("searches: 2", "searches: 3").replace("rules:", "  rho_99: {name: biased_digits}\nrules:")
    suites.check_suite_unchanged(complete, small_suite(tmp_path, more))
    suites.check_suite_unchanged(
        complete, small_suite(tmp_path, TEXT.replace("base:", "base:\n  resources: {cpu: 1, hang: 15m}"))
    )


def test_the_numbers_are_those_of_the_ledgers(tmp_path: Path, complete: Home) -> None:
    """By hand: the cell of weak on rho_80 by accuracy has the searches 0.61 and 0.65."""
    suite = small_suite(tmp_path)
    whole = suite_tables.suite_to_dict(suites.suite_tables_so_far(complete, suite))
    by_accuracy, by_unbiased = whole["tables"]
    cell = by_accuracy["cells"][0]
    assert (cell["method"], cell["data"], cell["n"]) == ("weak", "rho_80", 2)
    assert cell["mean"] == pytest.approx(0.63)
    assert cell["standard_error"] == pytest.approx(0.02)
    assert cell["interval"] == pytest.approx([0.63 - 12.7062 * 0.02, 0.63 + 12.7062 * 0.02], abs=1e-4)
    assert [search["values"] for search in cell["searches"]] == [[0.60, 0.62], [0.63, 0.67]]
    average = by_accuracy["averages"][0]
    assert average["mean"] == pytest.approx((0.63 + 0.34) / 2)
    assert average["standard_error"] == pytest.approx(0.02 * 2**0.5 / 2)
    assert by_unbiased["cells"][0]["mean"] == pytest.approx(0.71)
    assert [row["leads"] for row in by_accuracy["averages"]] == [False, True]
    assert whole["states"] == {"complete": 8}


def test_the_tables_in_print(tmp_path: Path, complete: Home) -> None:
    found = suites.suite_tables_so_far(complete, small_suite(tmp_path))
    text = suite_tables.suite_to_markdown(found)
    assert "| strong | **83.0 ± 2.0** | **74.0 ± 2.0** | **78.5 ± 1.4** |" in text
    assert "| weak | 63.0 ± 2.0 | 34.0 ± 2.0 | 48.5 ± 1.4 |" in text
    assert text.startswith("# small\n\n2 methods on 2 data sets, 2 searches of each: 8 searches, all complete.\n")
    assert text.count("± standard error over searches (not over seeds).") == 1
    assert "- strong has the best average, told apart from weak." in text
    assert "All searches on a data set share its split" in text
    assert "| method | accuracy | unbiased_accuracy |" in text
    assert "| strong | 78.5 ± 1.4 | 86.2 ± 0.9 |" in text
    latex = suite_tables.suite_to_latex(found)
    assert latex.count(r"\begin{table}") == 2
    assert "| all methods | 48 | 0 s |" in text
    assert r"strong & \textbf{83.0 $\pm$ 2.0} & " in latex
    rows = list(csv.DictReader(io.StringIO(suite_tables.suite_to_csv(found))))
    assert len(rows) == 2 * (4 + 2)
    assert (rows[4]["data"], float(rows[4]["mean"])) == ("average", pytest.approx(0.485))


def test_what_is_missing_is_said(tmp_path: Path, home: Home) -> None:
    suite = small_suite(tmp_path)
    tell(home, suite.searches[0], *VALUES["weak", "rho_80", 1])
    tell(home, suite.searches[1], VALUES["weak", "rho_95", 1][0])
    tell(home, suite.searches[2], closed="failed")
    found = suites.suite_tables_so_far(home, suite)
    by_accuracy, by_unbiased = found.tables
    assert by_accuracy.cells["weak", "rho_80"] is not None
    assert by_accuracy.cells["weak", "rho_80"].standard_error is None
    assert by_accuracy.results.missing_reasons["weak", "rho_80"] == {"not yet": 1}
    assert by_unbiased.results.missing_reasons["weak", "rho_95"] == {"no test value": 1, "not yet": 1}
    assert by_unbiased.results.missing_reasons["strong", "rho_80"] == {"failed": 1, "not yet": 1}
    text = suite_tables.suite_to_markdown(found)
    assert "8 searches, 2 complete, 1 failed and 5 not yet. The numbers are of the complete ones alone." in text
    assert "| strong | failed, not yet | not yet | - |" in text
    assert "| weak | **61.0** (1 of 2) | **32.0** (1 of 2) | **46.5** (2 of 4) |" in text
    assert "1 search without a value: no test value." in text


SINGLE = TEXT.replace("  rho_95: {name: biased_digits, rho: 0.95}\n", "").replace(", unbiased_accuracy]", "]")
"""One data set and one rule."""


def notes_of(home: Home, suite: Suite, values: Mapping[tuple[str, int], tuple[float, float]]) -> list[str]:
    """The notes of the first rule's table of what its picks had on two fresh seeds, by method and search."""
    for search in suite.searches:
        if (search.method, search.search_number) in values:
            tell(home, search, values[search.method, search.search_number])
    found = suites.suite_tables_so_far(home, suite)
    return suite_tables.rule_table_notes(suite, found.tables[0])


def test_one_data_set_has_no_average(tmp_path: Path, home: Home) -> None:
    suite = small_suite(tmp_path, SINGLE)
    (verdict,) = notes_of(
        home, suite, {key: (value, value + 0.01) for key, value in zip(ALL_FOUR, (0.6, 0.62, 0.8, 0.81), strict=True)}
    )
    assert verdict == "strong has the best mean, told apart from weak."
    text = suite_tables.suite_to_markdown(suites.suite_tables_so_far(home, suite))
    assert "| method | rho_80 |\n" in text
    assert "average" not in text


ALL_FOUR = [("weak", 1), ("weak", 2), ("strong", 1), ("strong", 2)]


def test_searches_that_differ_too_much_tell_nothing_apart(tmp_path: Path, home: Home) -> None:
    values = dict(zip(ALL_FOUR, ((0.1, 0.1), (0.9, 0.9), (0.8, 0.8), (0.7, 0.7)), strict=True))
    verdict, *_ = notes_of(home, small_suite(tmp_path, SINGLE), values)
    assert verdict == "strong has the best mean, told apart from no other."


def test_what_cannot_be_judged_is_not_said_to_be_told_apart(tmp_path: Path, home: Home) -> None:
    three = SINGLE.replace("data:", "  third:\n    method: {name: cross_entropy}\n    space: {train.learning_rate: "
                           "{low: 0.001, high: 0.01}}\ndata:")  # fmt: skip
    values = {("weak", 1): (0.6, 0.6), ("weak", 2): (0.62, 0.6), ("strong", 1): (0.8, 0.8), ("strong", 2): (0.8, 0.81)}
    verdict, unknown, *_ = notes_of(home, small_suite(tmp_path, three), {**values, ("third", 1): (0.5, 0.5)})
    assert verdict.startswith("strong has the best mean, told apart from weak.")
    assert unknown == "Too few searches in common with it to judge: third."


@pytest.mark.parametrize(
    ("search", "is_said"),
    [("{sampler: tpe}", True), ("{sampler: random, early_stopping: {name: asha}}", True), ("{sampler: random}", False)],
)
def test_a_search_that_looks_at_one_metric_is_said_to_suit_its_rule(tmp_path: Path, search: str, is_said: bool) -> None:
    suite = small_suite(tmp_path, TEXT.replace("base:", f"base:\n  search: {search}").replace("epochs: 1", "epochs: 4"))
    assert (
        any(
            "which may suit one rule more than others" in note for note in suite_tables.notes_on_all_suite_tables(suite)
        )
        == is_said
    )


def test_a_search_that_went_on_beyond_its_budget_does_not_count(tmp_path: Path, home: Home) -> None:
    suite = small_suite(tmp_path)
    tell(home, suite.searches[0], *VALUES["weak", "rho_80", 1], closed=None)
    ledger = Ledger(home.find_study(suite.searches[0].spec.name).ledger_file)
    ledger.append(SearchExtended(trials=52))
    ledger.append(SessionClosed(state="complete", enough="trials"))
    ledger.close()
    missing = suites.suite_tables_so_far(home, suite).tables[0].results.missing_reasons["weak", "rho_80"]
    assert missing == {"searched beyond the budget": 1, "not yet": 1}


def test_a_rule_that_the_data_cannot_have_is_said(tmp_path: Path, home: Home) -> None:
    inferred = TEXT.replace("{name: sup_con}", "{name: sup_con}\n    train: {inferred_groups: early}")
    suite = small_suite(tmp_path, inferred.replace("unbiased_accuracy]", "inferred_unbiased_accuracy]"))
    table = suites.suite_tables_so_far(home, suite).tables[1]
    assert table.results.missing_reasons["weak", "rho_80"] == {"lacks what the rule needs": 2}
    assert table.results.missing_reasons["strong", "rho_80"] == {"not yet": 2}


def test_the_plan_says_how_far_it_is(tmp_path: Path, home: Home) -> None:
    suite = small_suite(tmp_path)
    tell(home, suite.searches[0], *VALUES["weak", "rho_80", 1])
    tell(home, suite.searches[4], closed="interrupted")
    planned = plan_suite(home, suite)
    assert planned["states"] == {"complete": 1, "interrupted": 1, "not yet": 6}
    assert "| weak | rho_80 | 1 complete, 1 interrupted | 2 + at most 4 | 8 |" in suite_plan_text(planned)
    first = planned["places"][0]
    assert (first["searches_left"], first["trials_per_search"]) == (1, {"search": 2, "fresh": 4})
    assert first["epochs_left"]["most"] == 6 - 2
    assert first["trial_hours_left"] is not None
    assert planned["places"][2]["trial_hours_left"] is None
    assert "how long they take is told once" in suite_plan_text(planned)


@pytest.fixture
def command(tmp_path: Path, home: Home, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    monkeypatch.setenv("STUDY_HOME", str(home.path))
    monkeypatch.chdir(tmp_path)
    return lambda *given: CliRunner().invoke(app, ["suite", write_suite(tmp_path), *given])


@pytest.mark.slow
def test_the_command(tmp_path: Path, home: Home, runs: list[str], command: Callable[..., Any]) -> None:
    assert "8 searches (8 not yet); nothing is started" in command("--plan").output
    assert not runs
    done = command("-o", "table.tex")
    assert done.exit_code == 0, done.output
    assert "search 8 of 8: small--strong--rho_95--2" in done.output
    assert "# small" in done.output
    assert f"written: table.md, table.tex and table.csv in {home.suites_folder / 'small'}" in done.output
    assert (tmp_path / "table.tex").read_text().startswith(r"\begin{table}")
    printed = command("--report")
    assert printed.output.startswith("# small")
    assert len(runs) == 8


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("--plan", "--report"), "--plan, --report: give one of them"),
        (("-o", "table.pdf"), "allowed endings are .md, .tex, .csv"),
    ],
)
def test_the_command_refuses(given: tuple[str, ...], message: str, command: Callable[..., Any]) -> None:
    refused = command(*given).exception
    assert isinstance(refused, UserError)
    assert message in str(refused)


def test_the_same_picks_by_another_test_metric(tmp_path: Path, complete: Home) -> None:
    def printed(judge: str) -> str:
        suite = small_suite(tmp_path, f"{TEXT}judge: {judge}\n")
        suites.check_suite_unchanged(complete, suite)
        return suite_tables.suite_to_markdown(suites.suite_tables_so_far(complete, suite))

    assert "test/accuracy in percent, of what a rule picks" in printed("test/accuracy")
    other = printed("test/worst_group_accuracy")
    assert "test/worst_group_accuracy in percent, of what a rule picks" in other
    assert "no test value" in other  # the ledger has accuracies alone
    gaps = printed("test/equalized_odds")
    assert "test/equalized_odds, the lower the better, of what a rule picks" in gaps  # gaps are printed as fractions
