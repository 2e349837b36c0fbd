"""`study run` from the file to the outputs, and what each store says afterwards."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from command import Command
from helpers import timeless
from mlflow import MlflowClient
from mlflow.entities import Run
from typer.testing import CliRunner

from study import data, ranking
from study.cli import app
from study.home.folder import Home
from study.home.ledger import read
from study.sweep.early_stopping import early_stopping
from study.sweep.search_stage import SearchStage
from study.training import Trial


@pytest.fixture(scope="session")
def mlflow_runs(finished: Command) -> tuple[Run, dict[int, Run]]:
    """The study's run and its trials' runs by number."""
    client = MlflowClient(Home(finished.home).tracking_uri)
    experiment = client.get_experiment_by_name("tiny")
    assert experiment is not None
    runs = list(client.search_runs([experiment.experiment_id], max_results=1000))
    parents = [run for run in runs if "mlflow.parentRunId" not in run.data.tags]
    assert len(parents) == 1
    children = [run for run in runs if run.data.tags.get("mlflow.parentRunId") == parents[0].info.run_id]
    assert len(children) == len(runs) - 1
    return parents[0], {int(run.data.tags["study.trial"]): run for run in children}


def test_course_of_the_study(finished: Command) -> None:
    """Baseline first, then the search, then baseline and best on fresh seeds; some trials pruned."""
    spec, record = finished.load("tiny")
    stages = [trial.stage for trial in record.trials.values()]
    assert record.state == "complete"
    assert stages == ["baseline", *["search"] * 6, *["confirm"] * 4]
    assert record.trials[0].params == spec.search.baseline
    states = {trial.state for trial in record.by_stage("search")}
    assert states == {"complete", "pruned"}
    assert all(trial.state == "complete" for trial in record.by_stage("baseline", "confirm"))
    assert {(trial.repeats, trial.seed) for trial in record.by_stage("confirm")} == {
        (number, seed) for number in (0, ranking.searched(record, spec)[0].trial.number) for seed in (1, 2)
    }


def test_test_split_is_read_for_baseline_and_best_only(finished: Command) -> None:
    spec, record = finished.load("tiny")
    best, baseline = ranking.best(record, spec), ranking.baseline(record, spec)
    assert best is not None
    assert baseline is not None
    expected = {trial.number for one in (best, baseline) for trial in one.repeats}
    assert {trial.number for trial in record.trials.values() if trial.tested} == expected


@pytest.mark.slow
def test_mlflow_has_every_trial_once(finished: Command, mlflow_runs: tuple[Run, dict[int, Run]]) -> None:
    """Parameters, seed, status, stopped trials recognisable, code version: as the ledger has them."""
    spec, record = finished.load("tiny")
    parent, runs = mlflow_runs
    assert sorted(runs) == sorted(record.trials)
    assert parent.info.status == "FINISHED"
    for number, trial in record.trials.items():
        run = runs[number]
        assert {key: run.data.params[key] for key in trial.params} == {k: str(v) for k, v in trial.params.items()}
        assert run.data.params["train.seed"] == str(trial.seed)
        assert run.data.params["data.rho"] == "0.9"
        assert run.info.status == {"complete": "FINISHED", "pruned": "KILLED"}[trial.state]
        assert run.data.tags.get("pruned_by") == ("asha" if trial.state == "pruned" else None)
        assert run.data.tags["study.version"] == record.sessions[0]["version"]
        assert run.data.tags["study.data"] == data.load(spec.data_sections[0]).fingerprint
        assert run.data.tags["study.dataset"] == (spec.facts.title or "biased_digits")


def test_mlflow_has_every_epoch_once(finished: Command, mlflow_runs: tuple[Run, dict[int, Run]]) -> None:
    spec, record = finished.load("tiny")
    client = MlflowClient(Home(finished.home).tracking_uri)
    for number, trial in record.trials.items():
        history = client.get_metric_history(mlflow_runs[1][number].info.run_id, spec.metric)
        by_epoch = [(entry.step, entry.value) for entry in history]
        assert by_epoch == [(report["epoch"], report[spec.metric]) for report in trial.reports]


def test_mlflow_parent_has_result_and_artifacts(finished: Command, mlflow_runs: tuple[Run, dict[int, Run]]) -> None:
    spec, record = finished.load("tiny")
    parent, _ = mlflow_runs
    best = ranking.best(record, spec)
    assert best is not None
    assert best.confirmed is not None
    assert parent.data.metrics["best/val/accuracy"] == best.confirmed.mean
    client = MlflowClient(Home(finished.home).tracking_uri)
    names = {entry.path for entry in client.list_artifacts(parent.info.run_id)}
    assert {"study.yaml", "best.yaml", "report"} <= names


def test_optuna_hears_the_truth(finished: Command) -> None:
    """Full runs are complete, stopped ones pruned with their intermediate values."""
    spec, record = finished.load("tiny")
    told = {trial.number: trial for trial in SearchStage(spec, record, early_stopping(spec)).history()}
    for trial in record.by_stage("baseline", "search"):
        assert told[trial.number].state.name == {"complete": "COMPLETE", "pruned": "PRUNED"}[trial.state]
        assert list(told[trial.number].intermediate_values) == list(range(1, trial.epochs + 1))
        assert trial.state == "pruned" or trial.epochs == spec.epochs


@pytest.mark.slow
def test_sweep_and_single_process_give_the_same_bits(finished: Command) -> None:
    """Every metric of every epoch of three trials, run again here without Ray."""
    spec, record = finished.load("tiny")
    dataset = data.load(spec.data_sections[0])
    for number in (0, 1, max(record.trials)):
        trial = record.trials[number]
        epochs = Trial(spec.trial_config(trial.params, trial.seed), dataset).run()
        for report, metrics in zip(trial.reports, epochs, strict=False):
            assert _timeless(metrics) == _timeless(report)


@pytest.fixture
def here(finished: Command, monkeypatch: pytest.MonkeyPatch) -> CliRunner:
    """Runs commands in this process, which has imported what they need: that takes a new one seconds."""
    monkeypatch.setenv("STUDY_HOME", str(finished.home))
    monkeypatch.chdir(finished.work)
    return CliRunner()


@pytest.mark.slow
def test_exported_configuration_gives_the_metrics_again(finished: Command, here: CliRunner) -> None:
    spec, record = finished.load("tiny")
    best = ranking.best(record, spec)
    assert best is not None
    done = here.invoke(app, ["trial", str(finished.folder("tiny").best_file), "--json"])
    assert done.exit_code == 0, done.output
    last = json.loads(done.stdout)["epochs"][-1]
    assert _timeless(last) == _timeless(best.trial.reports[-1])


def test_end_says_where_things_are(finished: Command) -> None:
    shown = (finished.work / "run.out").read_text()
    folder = finished.folder("tiny")
    for expected in (folder.best_file, folder.report / "report.html", "study ui", "study train", "test/accuracy"):
        assert str(expected) in shown
    assert (folder.report / "report.html").stat().st_size > 1000
    assert (folder.report / "report.md").stat().st_size > 500


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [("list",), ("status", "tiny"), ("plan", "tiny.yaml", "--fast")])
def test_json_is_one_document(finished: Command, arguments: tuple[str, ...]) -> None:
    done = finished(*arguments, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)
    assert done.stderr == ""


@pytest.mark.slow
def test_report_shows_what_the_models_learned(finished: Command, here: CliRunner) -> None:
    """Of the baseline and the best the weights after the first epoch are kept, too, for the histograms. With --json
    nothing but one document is printed.
    """
    _, record = finished.load("tiny")
    for trial in record.by_stage("confirm"):
        assert finished.folder("tiny").model_file(trial.number, 1).is_file()
    done = here.invoke(app, ["report", "tiny", "--models", "--pdf", "-o", "learned", "--json"])
    assert (done.exit_code, done.stderr) == (0, "")
    assert {row["rule"] for row in json.loads(done.stdout)["rules"]} >= {"accuracy", "worst_class_accuracy"}
    assert "What the models learned" in (finished.work / "learned" / "report.html").read_text(encoding="utf-8")
    assert (finished.work / "learned" / "figures" / "similarities.pdf").is_file()


@pytest.mark.slow
def test_plan_starts_nothing(finished: Command) -> None:
    before = sorted(path.name for path in finished.home.iterdir())
    document = json.loads(finished("plan", "tiny.yaml", "--set", "name=other", "--fast", "--json").stdout)
    assert document["trials"] == {"baseline": 1, "search": 6, "replicate": 0, "confirm": 4, "rule": 0}
    assert sorted(path.name for path in finished.home.iterdir()) == before


@pytest.mark.slow
def test_train_exported_file_on_seeds(finished: Command) -> None:
    """Two seeds, then a third: the first two are kept; mean and sample sd over all; the test split is read."""
    best = str(finished.folder("tiny").best_file)
    first = finished("train", best, "--seeds", "0,1")
    assert first.returncode == 0, first.stderr
    events = read(finished.folder("tiny-final").ledger_file)
    second = finished("train", best, "--seeds", "1,2")
    assert second.returncode == 0, second.stderr
    assert read(finished.folder("tiny-final").ledger_file)[: len(events)] == events
    _, record = finished.load("tiny-final")
    assert [(trial.stage, trial.seed, trial.state) for trial in record.trials.values()] == [
        ("final", seed, "complete") for seed in (0, 1, 2)
    ]
    assert all("test/accuracy" in trial.tested for trial in record.trials.values())
    searched, search = finished.load("tiny")
    chosen = ranking.best(search, searched)
    assert chosen is not None
    assert _timeless(record.trials[0].reports[-1]) == _timeless(chosen.trial.reports[-1])
    status = json.loads(finished("status", "tiny-final", "--json").stdout)
    assert status["final"]["metrics"]["test/accuracy"]["n"] == 3
    assert "(3 seeds)" in second.stdout
    client = MlflowClient(Home(finished.home).tracking_uri)
    experiment = client.get_experiment_by_name("tiny-final")
    assert experiment is not None
    assert len(client.search_runs([experiment.experiment_id])) == 4


def _timeless(metrics: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in timeless([metrics])[0].items() if name != "epoch"}


@pytest.mark.slow
def test_as_many_trials_run_at_once_as_fit(make_command: Callable[[], Command]) -> None:
    command = make_command()
    given = ["resources.cpu=0.5", "search.concurrency=2", "search.confirm={top: 0}", "search.early_stopping={}"]
    assignments = (word for assignment in given for word in ("--set", assignment))
    done = command("run", "tiny.yaml", *assignments, SABOTAGE='{"slow": 1}')  # 28 s: time for a second process
    assert done.returncode == 0, done.stderr
    at_once, most = 0, 0
    for event in read(command.folder("tiny").ledger_file):
        at_once += {"started": 1, "ended": -1}.get(event["event"], 0)
        most = max(most, at_once)
    assert most == 2
