"""A training function of the user's own, from a file: killed and taken up again, tested, in MLflow, trained."""

import json
from collections.abc import Callable

import pytest
from command import Command
from ended import assert_nothing_was_lost
from mlflow import MlflowClient
from runs import Runs

from study.home.folder import Home

MODULE = """\
import json


def train(config, seed, epochs, checkpoint):
    file = checkpoint / "state.json"
    done, value = json.loads(file.read_text()) if file.exists() else (0, 0.0)
    for epoch in range(done + 1, epochs + 1):
        value += (1 - value) * config["rate"] / config["depth"]
        file.write_text(json.dumps((epoch, value)))
        yield {"val/accuracy": value * (1 - seed % 10 / 1000), "test/accuracy": value / 2}
"""

STUDY = """\
name: mine
method: {name: own_function, function: my_module_of_this_test:train}
train: {epochs: 6}
search:
  space:
    method.rate: {low: 0.01, high: 1.0, log: true}
    method.depth: {low: 1, high: 4}
  baseline: {method.rate: 0.01, method.depth: 4}
  trials: 5
  sampler: qmc
  early_stopping: {name: asha, reduction: 2}
  confirm: {top: 1, seeds: 2}
  concurrency: 1
"""


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_killed_study_of_a_function_ends_with_everything(make_command: Callable[[], Command]) -> None:
    command = make_command()
    (command.work / "my_module_of_this_test.py").write_text(MODULE)
    (command.work / "mine.yaml").write_text(STUDY)
    killed = ["study.home.ledger.Ledger", "append", 12, "after"]
    begun = command("run", "mine.yaml", SABOTAGE=json.dumps({"driver": killed, "slow": 0}))
    assert begun.returncode == -9
    assert "has changed" not in begun.stdout
    with open(command.work / "my_module_of_this_test.py", "a") as module:
        module.write("# another remark\n")
    out = command.done("resume", "mine")
    assert "warning: my_module_of_this_test.py has changed since this study last ran" in out
    folder, record = command.folder("mine"), assert_nothing_was_lost(command.folder("mine"))
    assert record.state == "complete"
    alone = [1 - (1 - 0.01 / 4) ** epoch for epoch in range(1, 7)]
    assert [report["val/accuracy"] for report in record.trials[0].reports] == pytest.approx(alone)
    assert all("test/accuracy" not in report for trial in record.trials.values() for report in trial.reports)
    tested = {trial.number for trial in record.trials.values() if trial.test_metrics}
    assert tested == {trial.number for trial in record.trials_of_stages("confirm")}
    assert len(tested) == 4
    Runs(Home(command.home).tracking_uri, "mine").agree_with(record)
    assert (folder.report_folder / "report.html").is_file()
    command.done("train", str(folder.best_file), "--seeds", "7", "--name", "mine-final")
    _, final = command.load("mine-final")
    assert [trial.seed for trial in final.trials.values() if trial.test_metrics] == [7]


FOLDED = """\
def train(config, seed, fold, folds):
    value = {} if fold is None else {"val/accuracy": config["rate"] * (fold + 1) / folds}
    yield {**value, "test/accuracy": config["rate"]}
"""

FOLDS = """\
name: folded
data: {folds: 3}
method: {name: own_function, function: folded_of_this_test:train}
train: {epochs: 1}
search:
  space: {method.rate: {low: 0.1, high: 1.0}}
  baseline: {method.rate: 0.1}
  trials: 4
  confirm: {top: 1}
"""


@pytest.mark.slow
def test_the_folds_of_a_function_are_searched_in_turn_confirmed_all_and_trained_on_together(
    make_command: Callable[[], Command],
) -> None:
    command = make_command()
    (command.work / "folded_of_this_test.py").write_text(FOLDED)
    (command.work / "mine.yaml").write_text(FOLDS)
    out = command.done("run", "mine.yaml")
    assert "over folds and seeds" in out
    _, record = command.load("folded")
    assert [trial.fold for trial in record.trials.values()][:4] == [0, 1, 2, 0]
    assert [trial.fold for trial in record.trials_of_stages("confirm")] == 2 * [0, 1, 2]
    (best,) = {trial.params["method.rate"] for trial in record.trials_of_stages("confirm")} - {0.1}
    values = [
        trial.reports[0]["val/accuracy"]
        for trial in record.trials_of_stages("confirm")
        if trial.params["method.rate"] == best
    ]
    assert values == pytest.approx([best / 3, best * 2 / 3, best])
    command.done("train", str(command.folder("folded").best_file), "--seeds", "7")
    _, final = command.load("folded-final")
    assert [(trial.fold, trial.test_metrics) for trial in final.trials.values()] == [(None, {"test/accuracy": best})]


ENDS = """\
import helper_of_this_test as helper

SEEN = []


class Odd(Exception):
    def __init__(self, what, where):
        super().__init__(f"odd {what} in {where}")


def train(config):
    SEEN.append(1)
    helper.SEEN.append(1)
    if config["how"] == "odd":
        raise Odd("value", "row 3")
    if config["how"] == "exit":
        raise SystemExit(3)
    if config["how"] == "surrogate":
        raise ValueError("cannot read f\\udcfcr.jpg")
    if config["how"] == "double":
        import torch

        print("sets", torch.get_default_dtype())
        torch.set_default_dtype(torch.float64)
    if config["how"] == "logs":
        import mlflow

        mlflow.set_experiment("of my own")
        mlflow.start_run(run_name="mine")
        mlflow.log_metric("loss", 0.25, step=3)
        mlflow.log_text("a note", "deep/note.txt")
    yield {"val/accuracy": 10**400 if config["how"] == "huge" else 1 / (len(SEEN) + len(helper.SEEN))}
"""


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_trial_finds_its_modules_as_new_and_fails_as_its_function_did(make_command: Callable[[], Command]) -> None:
    command = make_command()
    (command.work / "ends_of_this_test.py").write_text(ENDS)
    (command.work / "helper_of_this_test.py").write_text("SEEN = []\n")
    study = {
        "name": "ends",
        "method": {"name": "own_function", "function": "ends_of_this_test:train"},
        "train": {"epochs": 1},
        "search": {
            "space": {
                "method.how": {
                    "choices": ["fine", "odd", "double", "well", "exit", "huge", "surrogate", "logs", "good"]
                }
            },
            "sampler": "grid",
            "metric": "val/accuracy",
            "enqueue": [{"method.how": "fine"}],
            "concurrency": 1,
        },
    }
    (command.work / "ends.yaml").write_text(json.dumps(study))
    done = command("run", "ends.yaml", "--quiet")
    assert done.returncode == 0, done.stderr
    assert "raylet" not in done.stdout + done.stderr
    folder, (_, record) = command.folder("ends"), command.load("ends")
    trials = {str(trial.params["method.how"]): trial for trial in record.trials.values()}
    assert [trials[how].reports[0]["val/accuracy"] for how in ("fine", "well", "good", "double", "logs")] == [0.5] * 5
    failed = {how: trials[how] for how in ("odd", "exit", "huge", "surrogate")}
    assert {(trial.state, trial.failure_kind, trial.attempt) for trial in failed.values()} == {("failed", "BUG", 0)}
    told = {how: trial.reason or "" for how, trial in failed.items()}
    for how, message in (("odd", "Odd: odd value in row 3"), ("surrogate", r"ValueError: cannot read f\xfcr.jpg")):
        assert told[how].startswith("train (ends_of_this_test.py, line ")
        assert told[how].endswith(f"): {message}")
    assert "raised SystemExit(3) in epoch 1" in told["exit"]
    assert "yielded int for 'val/accuracy' in epoch 1, too large" in told["huge"]
    text = folder.error_file(failed["odd"].number).read_text()
    assert text.endswith("Odd: odd value in row 3")
    assert "/ray/" not in text
    assert "printed:\nsets torch.float32" in command.done("logs", "ends", "--trial", str(trials["double"].number))
    client = MlflowClient(Home(command.home).tracking_uri)
    experiments = {one.name: one.experiment_id for one in client.search_experiments()}
    assert "of my own" not in experiments
    (own,) = client.search_runs([experiments["ends"]], "tags.`study.kind` = 'own'")
    parent = client.get_run(own.data.tags["mlflow.parentRunId"])
    assert parent.data.tags["study.trial"] == str(trials["logs"].number)
    assert (own.info.run_name, own.info.status, own.data.metrics) == ("mine", "FINISHED", {"loss": 0.25})
    assert [file.path for file in client.list_artifacts(own.info.run_id, "deep")] == ["deep/note.txt"]
    assert not (command.work / "mlflow.db").exists()


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_study_of_a_metric_that_its_function_does_not_yield_leaves_nothing_behind(
    make_command: Callable[[], Command],
) -> None:
    """The same command works once the name is mended."""
    command = make_command()
    (command.work / "my_module_of_this_test.py").write_text(MODULE)
    (command.work / "mine.yaml").write_text(STUDY)
    limit = ("--set", "search.constraints=[val/acuracy >= 0.1]", "--set", "search.early_stopping.name=none")
    refused = command("run", "mine.yaml", *limit, "--set", "search.concurrency=2")
    assert refused.returncode == 2
    assert "failed" not in refused.stdout + refused.stderr
    assert "warning: val/acuracy is no metric of this software. Did you mean val/accuracy?" in refused.stderr
    assert (
        "my_module_of_this_test:train: did not yield val/acuracy in epoch 1. Did you mean 'val/accuracy'? It yielded: "
        "val/accuracy, test/accuracy. Every trial would fail like this: mend the function, or the metric's name"
    ) in refused.stderr.replace("\n", " ")
    home = Home(command.folder("mine").path.parent)
    assert not home.list_studies()
    client = MlflowClient(home.tracking_uri)
    assert not [run for one in client.search_experiments() for run in client.search_runs([one.experiment_id])]
