"""Trials that pause and go on: bit for bit, and whenever the driver is killed."""

import json
import shutil
from collections.abc import Callable
from itertools import pairwise

import pytest
from command import Command
from ended import assert_nothing_was_lost
from helpers import computed, timeless
from runs import Runs

from study import data
from study.home.folder import Home, StudyFolder
from study.home.ledger import read
from study.home.record import StudyRecord
from study.training import Trial

PROMOTED = """\
name: promoted
data:   {name: biased_digits, rho: 0.9}
model:  {name: small_conv_net, width: 4}
method: {name: eps_sup_info_nce, temperature: 0.1}
train:  {epochs: 4, batch_size: 128, learning_rate: 0.003, lr_milestones: [0.5]}
search:
  space:
    method.alpha: {low: 0.001, high: 1.0, log: true}
  baseline: {method.alpha: 1.0}
  trials: 6
  concurrency: 1
  early_stopping: {name: promotion, grace: 1, reduction: 2}
"""
APPEND = "study.home.ledger.Ledger", "append"


@pytest.fixture(scope="module")
def undisturbed(make_command: Callable[[], Command]) -> Command:
    command = make_command()
    (command.work / "promoted.yaml").write_text(PROMOTED)
    done = command("run", "promoted.yaml")
    assert (done.returncode, done.stderr) == (0, "")
    return command


def assert_went_on_where_they_paused(folder: StudyFolder) -> None:
    events = read(folder.ledger_file)
    paused = {event["trial"]: event["epoch"] for event in events if event["event"] == "paused"}
    assert len(paused) >= 3
    thawed = [(event["trial"], next_) for event, next_ in pairwise(events) if event["event"] == "thawed"]
    assert thawed
    for number, started in thawed:
        assert (started["event"], started["trial"]) == ("started", number)
        assert started["epoch"] > 0
        assert "note" not in started


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_trial_that_paused_has_the_bits_of_one_that_did_not(undisturbed: Command) -> None:
    folder = undisturbed.folder("promoted")
    record = assert_nothing_was_lost(folder)
    assert_went_on_where_they_paused(folder)
    Runs(Home(undisturbed.home).tracking_uri, "promoted").agree_with(record)
    spec = folder.spec()
    dataset = data.load(spec.base["data"])
    gone_on = sorted(record.trials.values(), key=lambda trial: (-trial.thaws, -trial.epochs))[:2]
    assert all(trial.thaws for trial in gone_on)
    assert gone_on[0].epochs == 4
    for trial in gone_on:
        alone = Trial(spec.trial_config(trial.params, trial.seed), dataset, "cpu").run()
        reports = [{name: value for name, value in epoch.items() if name != "epoch"} for epoch in trial.reports]
        assert timeless(reports) == timeless(epoch for epoch, _ in zip(alone, reports, strict=False))


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_killed_with_paused_trials_a_study_ends_as_the_undisturbed_one(
    make_command: Callable[[], Command], undisturbed: Command
) -> None:
    """Between a report at a rung and the note of the pause, between a thaw and the start, and in between."""
    command = make_command()
    shutil.copy(undisturbed.work / "promoted.yaml", command.work)
    events = [event["event"] for event in read(undisturbed.folder("promoted").ledger_file)]
    pause = [place for place, event in enumerate(events) if event == "paused"][1] + 1
    thaw = next(place for place, event in enumerate(events) if event == "thawed" and place > pause) + 1
    resumed = "resume", "promoted"
    kills = [(pause, "before", ("run", "promoted.yaml")), (thaw - pause + 3, "after", resumed), (5, "before", resumed)]
    paused = 0
    for count, when, arguments in kills:
        sabotage = json.dumps({"driver": [*APPEND, count, when]})
        assert command(*arguments, SABOTAGE=sabotage).returncode == -9
        cut = StudyRecord.load(command.folder("promoted").ledger_file)
        paused += any(trial.state == "paused" for trial in cut.trials.values())
    assert paused == len(kills)
    done = command(*resumed)
    assert done.returncode == 0, done.stderr
    record = assert_nothing_was_lost(command.folder("promoted"))
    Runs(Home(command.home).tracking_uri, "promoted").agree_with(record)
    assert computed(record) == computed(undisturbed.load("promoted")[1])
