"""Studies whose processes train several trials as one: the same trials, and none is lost whatever happens to others."""

import json
import os
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace

import pytest
from command import Command
from ended import assert_nothing_was_lost, lost
from helpers import timeless
from runs import Runs

from study import data
from study.home.folder import Home, StudyFolder
from study.home.ledger import read
from study.home.record import StudyRecord
from study.training import Trial

STACKED = f"""\
name: stacked
data:   {{name: biased_digits, rho: 0.9}}
model:  {{name: small_conv_net, width: 4}}
method: {{name: eps_sup_info_nce, temperature: 0.1, regulariser: fair_kl}}
train:  {{epochs: 4, batch_size: 128, learning_rate: 0.003, threads: 1}}
search:
  space:
    method.alpha:  {{low: 0.001, high: 1.0, log: true}}
    method.lambda: {{low: 0.0, high: 2.0}}
  baseline: {{method.alpha: 1.0, method.lambda: 0.0}}
  sampler: random
  trials: 7
  confirm: {{top: 1, seeds: 2}}
resources: {{cpu: {os.cpu_count()}, stack: 3}}
"""
"""One process, so that its stacks are full."""


@pytest.fixture
def command(make_command: Callable[[], Command]) -> Command:
    made = replace(make_command(), patience=900)
    (made.work / "stacked.yaml").write_text(STACKED)
    return made


def most_at_once(folder: StudyFolder) -> int:
    """How many trials ran in one process at the same time, at most."""
    there: dict[str, set[int]] = defaultdict(set)
    most = 0
    for event in read(folder.ledger_file):
        if event["event"] == "started":
            there[event["node"]].add(event["trial"])
        elif event["event"] in ("ended", "lost"):
            for trials in there.values():
                trials.discard(event["trial"])
        most = max([most, *map(len, there.values())])
    return most


def assert_nearly_as_alone(folder: StudyFolder) -> None:
    """Each trial has the losses that it has when it is run here by itself, but for rounding."""
    spec, record = folder.spec(), StudyRecord.load(folder.ledger_file)
    dataset = data.load(spec.base["data"])
    for trial in record.trials.values():
        alone = list(timeless(Trial(spec.trial_config(trial.params, trial.seed), dataset, "cpu").run()))
        for report, expected in zip(trial.reports, alone, strict=False):
            assert report["train/loss"] == pytest.approx(expected["train/loss"], rel=1e-3)
            assert report.keys() - {"epoch"} >= expected.keys()


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_its_trials_are_those_that_run_alone(command: Command) -> None:
    """Decided, trained, confirmed and tested; the time of a process is told once, not once for each of its trials."""
    done = command("run", "stacked.yaml")
    assert (done.returncode, done.stderr) == (0, "")
    folder = command.folder("stacked")
    record = assert_nothing_was_lost(folder)
    assert [trial.stage for trial in record.trials.values()] == ["baseline", *["search"] * 6, *["confirm"] * 4]
    assert most_at_once(folder) == 3
    assert_nearly_as_alone(folder)
    assert all(trial.tested for trial in record.by_stage("confirm"))
    assert record.busy < record.worked
    runs = Runs(Home(command.home).tracking_uri, "stacked")
    runs.agree_with(record)
    told = {run.data.tags.get("study.stack"): run.data.tags.get("study.stack_size") for run in runs.all}
    assert told["0, 1, 2"] == "3"


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_what_happens_to_one_does_not_end_the_others(command: Command) -> None:
    """One diverges; one raises, kills its process or takes too much memory: it fails alone, the others go on."""
    faults = {"1": "NaN always", "2": "exception always", "4": "SIGKILL", "7": "GPU memory"}
    given = ["--set", "search.confirm.top=0", "--set", "search.trials=10"]
    done = command("run", "stacked.yaml", *given, SABOTAGE=json.dumps({"trials": faults}))
    assert done.returncode == 0, done.stderr
    folder = command.folder("stacked")
    record = assert_nothing_was_lost(folder)
    found = {number: (trial.state, trial.kind) for number, trial in record.trials.items()}
    broken = {1: ("failed", "DIVERGED"), 2: ("failed", "BUG")}
    assert found == {number: broken.get(number, ("complete", None)) for number in range(10)}
    assert all(trial.losses == 0 for trial in record.trials.values())
    assert {event["kind"] for event in lost(folder)} == {"BUG", "PREEMPTED", "OOM"}
    assert all(event["stacked"] for event in lost(folder))
