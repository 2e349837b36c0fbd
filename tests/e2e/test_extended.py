"""Trials of a real study go on beyond their last epoch, and those that early stopping ended, as if never stopped."""

import json
from collections.abc import Callable
from dataclasses import replace

import pytest
from command import Command
from helpers import timeless
from runs import Runs

from study import data
from study.home.folder import Home
from study.home.ledger import read
from study.home.record import TrialRecord
from study.spec import StudySpec
from study.training import Trial

SMALL = """\
name: small
data:   {name: biased_digits, rho: 0.9}
model:  {name: small_conv_net, width: 4}
method: {name: eps_sup_info_nce, temperature: 0.1}
train:  {epochs: 3, batch_size: 128, final: [knn]}
search:
  space:
    train.learning_rate: {low: 0.0001, high: 0.01, log: true}
  baseline: {train.learning_rate: 0.003}
  enqueue: [{train.learning_rate: 0.01}, {train.learning_rate: 0.0001}]
  trials: 3
  concurrency: 1
  early_stopping: {name: asha, grace: 1, reduction: 2}
  confirm: {top: 1, seeds: 2}
resources: {cpu: 1, keep_checkpoints: 1}
"""


def alone(spec: StudySpec, trial: TrialRecord, epochs: int) -> list[dict[str, float]]:
    """The trial of so many epochs from the start, here, undisturbed."""
    document = spec.trial_config({**trial.params, "train.epochs": epochs}, trial.seed)
    return timeless(Trial(document, data.load(spec.base["data"]), "cpu").run())


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_extended_and_killed_meanwhile_they_are_trials_of_as_many_epochs(make_command: Callable[[], Command]) -> None:
    """The best and the baseline from their kept states, one that early stopping ended from its first epoch."""
    command = replace(make_command(), patience=600)
    (command.work / "small.yaml").write_text(SMALL)
    command.done("run", "small.yaml")
    folder = command.folder("small")
    spec, before = command.load("small")
    assert folder.end_file(0).exists(), "the baseline's state is kept"
    pruned = next(number for number, trial in before.trials.items() if trial.state == "pruned")
    extend = ("extend", "small", "--epochs", "6", "--top", "1", "--trials", str(pruned))
    killed = command(*extend, SABOTAGE=json.dumps({"driver": ["study.home.ledger.Ledger", "append", 9, "after"]}))
    assert killed.returncode == -9, killed.stderr
    assert "run again from their first epoch, as their state was not kept" in killed.stdout
    command.done("resume", "small", "--set", "search.concurrency=2", "--set", "resources.cpu=0.5")

    _, record = command.load("small")
    (longer,) = record.lengthened
    thawed = [number for number in longer.trials if before.trials[number].state == "pruned"]
    assert len(thawed) == 1
    for number in longer.trials:
        trial = record.trials[number]
        assert trial.state == "complete"
        assert timeless([{**report} for report in trial.reports]) == [
            {"epoch": epoch, **report} for epoch, report in enumerate(alone(spec, trial, 6), 1)
        ]
    begun = [event for event in read(folder.ledger_file) if event["event"] == "started" and event["trial"] == 0]
    assert begun[1]["epoch"] == 3, "it goes on behind its last epoch"
    assert record.placement == {"resources.cpu": 0.5, "search.concurrency": 2}
    assert record.state == "complete"
    assert "epochs: 6" in folder.best_file.read_text()
    Runs(Home(command.home).tracking_uri, "small").agree_with(record)
    assert "went on to epoch 6 and are compared with one another alone" in command("status", "small").stdout
