"""The driver is killed (SIGKILL) at chosen moments, again and again, and the study ends as if nothing had happened."""

import json
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from command import Command
from helpers import computed, timeless
from mlflow import MlflowClient

from study import data
from study.home import Home
from study.ledger import read
from study.record import StudyRecord
from study.training import Trial

SMALL = """\
name: small
data:   {name: biased_digits, rho: 0.9}
model:  {name: small_conv_net, width: 4}
method: {name: eps_sup_info_nce, temperature: 0.1}
train:  {epochs: 3, batch_size: 128, learning_rate: 0.003}
search:
  space:
    method.alpha: {low: 0.001, high: 1.0, log: true}
  baseline: {method.alpha: 1.0}
  trials: 3
  concurrency: 1
"""

LEDGER, PROGRESS = "study.ledger.Ledger", "study.tracking.progress.Progress"


def moments(count: int) -> list[list[Any]]:
    """Before and after writes of the ledger, and of the note of what MLflow has, which follows it."""
    points = [(LEDGER, "append", "after"), (LEDGER, "append", "before"), (PROGRESS, "save", "before")]
    points.append((PROGRESS, "save", "after"))
    found = []
    for number in range(count):
        owner, method, when = points[number % 4]
        found.append([owner, method, 4 + number * 5 % 7 if owner == LEDGER else 2 + number % 3, when])
    return found


def kill(command: Command, moment: list[Any], *arguments: str) -> bool:
    """Run the command with a driver that dies at that moment; False: it came to its end before."""
    done = command(*arguments, SABOTAGE=json.dumps({"driver": moment}))
    assert done.returncode in (-9, 0), done.stderr
    return done.returncode == -9


def assert_each_run_once(command: Command, name: str, record: StudyRecord) -> None:
    """One MLflow run per trial, none running, each epoch once."""
    client = MlflowClient(Home(command.home).tracking_uri)
    experiment = client.get_experiment_by_name(name)
    assert experiment is not None
    runs = list(client.search_runs([experiment.experiment_id], max_results=1000))
    assert "RUNNING" not in {run.info.status for run in runs}
    trials = Counter(int(run.data.tags["study.trial"]) for run in runs if "study.trial" in run.data.tags)
    assert trials == Counter(list(record.trials))
    assert len(runs) == len(trials) + 1
    for run in runs:
        if "study.trial" in run.data.tags:
            history = client.get_metric_history(run.info.run_id, "val/accuracy")
            reports = record.trials[int(run.data.tags["study.trial"])].reports
            assert [entry.step for entry in history] == [report["epoch"] for report in reports]


def assert_nothing_was_lost(command: Command, name: str) -> None:
    """In the ledger: no trial was decided on twice, none ran after its end, each goes on from where it was heard."""
    heard: Counter[int] = Counter()
    ended = set()
    for event in read(command.folder(name).ledger_file):
        number = event.get("trial")
        if event["event"] == "started":
            assert number not in ended
            assert event["epoch"] <= heard[number]
            heard[number] = event["epoch"]
        elif event["event"] == "report":
            heard[number] += 1
            assert event["epoch"] == heard[number]
        elif event["event"] == "ended":
            assert number not in ended
            ended.add(number)
    assert not list(command.folder(name).checkpoints.glob("*"))


@pytest.mark.timeout(600)
def test_killed_three_times_a_study_ends_as_the_undisturbed_one(make_command: Callable[[], Command]) -> None:
    """In mid-trial, behind the note that it was taken up again, and between MLflow and the note of what that has."""
    command = make_command()
    (command.work / "small.yaml").write_text(SMALL)
    assert kill(command, [LEDGER, "append", 12, "after"], "run", "small.yaml")
    spec, cut = command.load("small")
    assert (cut.state, cut.trials[1].state, cut.trials[1].epochs) == ("interrupted", "interrupted", 2)
    assert kill(command, [LEDGER, "append", 2, "after"], "resume", "small")
    assert kill(command, [PROGRESS, "save", 1, "before"], "resume", "small")
    done = command("resume", "small")
    assert done.returncode == 0, done.stderr
    spec, record = command.load("small")
    assert_nothing_was_lost(command, "small")
    assert_each_run_once(command, "small", record)
    assert [trial.state for trial in record.trials.values()] == ["complete"] * 3
    dataset = data.load(spec.base["data"])
    for trial in record.trials.values():
        alone = Trial(spec.trial_config(trial.params, trial.seed), dataset, "cpu")
        assert timeless(alone.run()) == [
            {name: value for name, value in report.items() if name != "epoch"} for report in timeless(trial.reports)
        ]


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("first", range(0, 20, 5))
def test_killed_at_twenty_moments_a_study_ends_as_the_undisturbed_one(
    first: int, make_command: Callable[[], Command], finished: Command
) -> None:
    """Five of them in a row: the same suggestions, stops, values and results, each trial once, those that ran go on."""
    command, kills = make_command(), 0
    for number, moment in enumerate(moments(20)[first : first + 5]):
        kills += kill(command, moment, *(("resume", "tiny") if number else ("run", "tiny.yaml")))
        StudyRecord.load(command.folder("tiny").ledger_file)
    assert kills >= 4, "the study came to its end before"
    done = command("resume", "tiny")
    assert done.returncode == 0, done.stderr
    record, undisturbed = command.load("tiny")[1], finished.load("tiny")[1]
    assert_nothing_was_lost(command, "tiny")
    assert_each_run_once(command, "tiny", record)
    assert computed(record) == computed(undisturbed)
