"""The driver is killed (SIGKILL) at chosen moments, again and again, and the study ends as if nothing had happened."""

import json
import os
import signal
from collections.abc import Callable
from typing import Any

import pytest
from command import Command
from ended import assert_nothing_was_lost
from helpers import computed
from runs import Runs

from study.home.folder import Home
from study.home.record import StudyRecord

LEDGER, PROGRESS = "study.home.ledger.Ledger", "study.tracking.tracking_state.TrackingState"


def moments(count: int) -> list[list[Any]]:
    """Before and after writes of the ledger, and of the note of what MLflow has, which follows it."""
    points = [(LEDGER, "append", "after"), (LEDGER, "append", "before"), (PROGRESS, "save", "before")]
    points.append((PROGRESS, "save", "after"))
    found = []
    for number in range(count):
        owner, method, when = points[number % 4]
        found.append([owner, method, 4 + number * 5 % 7 if owner == LEDGER else 2 + number % 3, when])
    return found


def kill(command: Command, moment: list[Any], *arguments: str, slow: float = 0) -> bool:
    """Run the command with a driver that dies at that moment; False: it came to its end before."""
    done = command(*arguments, SABOTAGE=json.dumps({"driver": moment, "slow": slow}))
    is_over = done.returncode == 2 and "complete, there is nothing to go on with" in done.stderr
    assert done.returncode in (-9, 0) or is_over, done.stderr
    return done.returncode == -9


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "first",
    [pytest.param(0, marks=pytest.mark.slow), *(pytest.param(first, marks=pytest.mark.long) for first in (5, 10, 15))],
)
def test_killed_at_twenty_moments_a_study_ends_as_the_undisturbed_one(
    first: int, make_command: Callable[[], Command], finished: Command
) -> None:
    """Five of them in a row: the same suggestions, stops, values and results, each trial once, those that ran go on."""
    command, kills = make_command(), 0
    for number, moment in enumerate(moments(20)[first : first + 5]):
        slow = 1 if moment[0] == PROGRESS else 0.3  # MLflow has to come so far meanwhile
        kills += kill(command, moment, *(("resume", "tiny") if number else ("run", "tiny.yaml")), slow=slow)
        StudyRecord.load(command.folder("tiny").ledger_file)
    assert kills >= 4, "the study came to its end before"
    command.done("resume", "tiny")
    record = assert_nothing_was_lost(command.folder("tiny"))
    Runs(Home(command.home).tracking_uri, "tiny").agree_with(record)
    assert computed(record) == computed(finished.load("tiny")[1])


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_final_training_killed_with_all_its_processes_goes_on_to_the_same_models(finished: Command) -> None:
    best = str(finished.folder("tiny").best_file)
    train = ["train", best, "--seeds", "0,1", "--epochs", "6", "--name"]
    assert finished(*train, "undisturbed").returncode == 0
    process = finished.start(*train, "killed", SABOTAGE=json.dumps({"slow": 1}))
    finished.wait_for("killed", lambda record: any(trial.n_epochs >= 2 for trial in record.trials.values()))
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    _, cut = finished.load("killed")
    assert cut.state == "interrupted"
    assert any(0 < trial.n_epochs < 6 for trial in cut.trials.values())
    finished.done("resume", "killed")
    record = assert_nothing_was_lost(finished.folder("killed"))
    assert computed(record) == computed(finished.load("undisturbed")[1])
    for number in record.trials:
        weights = [finished.folder(name).model_file(number).read_bytes() for name in ("killed", "undisturbed")]
        assert weights[0] == weights[1]
    Runs(Home(finished.home).tracking_uri, "killed", within="tiny").agree_with(record)
