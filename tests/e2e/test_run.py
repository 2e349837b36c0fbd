"""`study run` from the file to the outputs, and what each store says afterwards."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from command import Command
from helpers import timeless
from runs import Runs
from typer.testing import CliRunner

from study import data
from study.cli import app
from study.home.folder import Home
from study.home.ledger import read_entries
from study.ranking import Results
from study.training.trial import Trial


def test_course_of_the_study(finished: Command) -> None:
    """Baseline first, then the search, then baseline and best on fresh seeds; some trials pruned."""
    spec, record = finished.load("tiny")
    stages = [trial.stage for trial in record.trials.values()]
    assert record.state == "complete"
    assert stages == ["baseline", *["search"] * 6, *["confirm"] * 4]
    assert record.trials[0].params == spec.search.baseline
    states = {trial.state for trial in record.trials_of_stages("search")}
    assert states == {"complete", "pruned"}
    assert all(trial.state == "complete" for trial in record.trials_of_stages("baseline", "confirm"))
    assert {(trial.repeated_trial, trial.seed) for trial in record.trials_of_stages("confirm")} == {
        (number, seed)
        for number in (0, Results(spec, record).ranked_by_search_value[0].trial.number)
        for seed in (1, 2)
    }


def test_mlflow_has_every_trial_once_and_the_result_and_artifacts(finished: Command) -> None:
    spec, record = finished.load("tiny")
    runs, best = Runs(Home(finished.home).tracking_uri, "tiny"), Results(spec, record).best
    runs.agree_with(record)
    assert best is not None
    assert best.confirm_statistics is not None
    study = runs.by_name["tiny"].data
    assert study.metrics["best/val/accuracy"] == best.confirm_statistics.mean
    assert study.tags["study.version"] == record.sessions[0].version
    assert study.tags["study.data"] == data.load(spec.trial_data_sections[0]).fingerprint
    assert {"study.yaml", "best.yaml", "report"} <= runs.artifacts("tiny")


@pytest.mark.slow
def test_sweep_and_single_process_give_the_same_bits(finished: Command) -> None:
    """Every metric of every epoch of three trials, run again here without Ray."""
    spec, record = finished.load("tiny")
    dataset = data.load(spec.trial_data_sections[0])
    for number in (0, 1, max(record.trials)):
        trial = record.trials[number]
        epochs = Trial(spec.trial_config(trial.params, trial.seed), dataset).train_epochs()
        for report, metrics in zip(trial.reports, epochs, strict=False):
            assert _timeless(metrics) == _timeless(report)


@pytest.fixture
def here(finished: Command, monkeypatch: pytest.MonkeyPatch) -> CliRunner:
    """Runs commands in this process, which has imported what they need: that takes a new one seconds."""
    monkeypatch.setenv("STUDY_HOME", str(finished.home))
    monkeypatch.chdir(finished.work)
    return CliRunner()


def test_end_says_where_things_are(finished: Command) -> None:
    shown = (finished.work / "run.out").read_text()
    folder = finished.folder("tiny")
    for expected in (
        folder.best_file,
        folder.report_folder / "report.html",
        "study ui",
        "study train",
        "test/accuracy",
    ):
        assert str(expected) in shown
    assert (folder.report_folder / "report.html").stat().st_size > 1000
    assert (folder.report_folder / "report.md").stat().st_size > 500


@pytest.mark.slow
def test_a_report_with_pdfs_prints_one_document(finished: Command, here: CliRunner) -> None:
    done = here.invoke(app, ["report", "tiny", "--pdf", "-o", "printed", "--json"])
    assert (done.exit_code, done.stderr) == (0, "")
    assert {row["rule"] for row in json.loads(done.stdout)["rules"]} >= {"accuracy", "worst_class_accuracy"}
    assert (finished.work / "printed" / "figures" / "seeds.pdf").is_file()


@pytest.mark.slow
def test_more_is_asked_of_a_study_that_is_complete(make_command: Callable[[], Command]) -> None:
    """Fresh seeds of its best, and what each of its values brings."""
    study = make_command()
    study.done("run", "tiny.yaml", "--set", "search.confirm={top: 0}")
    study.done("confirm", "tiny", "--top", "1", "--seeds", "2")
    study.done("ablate", "tiny", "--seeds", "2", "--knobs", "method.lambda")
    _, record = study.load("tiny")
    assert record.state == "complete"
    assert len(list(record.trials_of_stages("confirm"))) >= 2
    assert {trial.state for trial in record.trials_of_stages("ablation")} == {"complete"}
    assert "ablation" in (study.folder("tiny").report_folder / "report.md").read_text().lower()


@pytest.mark.slow
def test_train_exported_file_on_seeds(finished: Command) -> None:
    """Two seeds, then a third: the first two are kept; mean and sample sd over all; the test split is read."""
    best = str(finished.folder("tiny").best_file)
    finished.done("train", best, "--seeds", "0,1")
    events = read_entries(finished.folder("tiny-final").ledger_file)
    out = finished.done("train", best, "--seeds", "1,2")
    assert read_entries(finished.folder("tiny-final").ledger_file)[: len(events)] == events
    _, record = finished.load("tiny-final")
    assert [(trial.stage, trial.seed, trial.state) for trial in record.trials.values()] == [
        ("final", seed, "complete") for seed in (0, 1, 2)
    ]
    assert all("test/accuracy" in trial.test_metrics for trial in record.trials.values())
    searched, search = finished.load("tiny")
    chosen = Results(searched, search).best
    assert chosen is not None
    assert _timeless(record.trials[0].reports[-1]) == _timeless(chosen.trial.reports[-1])
    status = json.loads(finished("status", "tiny-final", "--json").stdout)
    assert status["final"]["metrics"]["test/accuracy"]["n"] == 3
    assert "(3 seeds)" in out
    assert len(Runs(Home(finished.home).tracking_uri, "tiny-final", within="tiny").all) == 5


def _timeless(metrics: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in timeless([metrics])[0].items() if name != "epoch"}
