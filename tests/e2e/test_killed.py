"""The driver is killed (SIGKILL) at chosen moments, again and again, and the study ends as if nothing had happened."""

import json
import os
import shutil
import signal
from collections.abc import Callable
from typing import Any

import pytest
from command import Command
from ended import assert_nothing_was_lost
from helpers import computed
from runs import Runs

from study import ranking
from study.home.folder import Home
from study.home.record import StudyRecord

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

LEDGER, PROGRESS = "study.home.ledger.Ledger", "study.tracking.tracked.Tracked"


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
    [
        pytest.param(0, marks=pytest.mark.slow),
        *(pytest.param(first, marks=pytest.mark.long) for first in (5, 10, 15)),
    ],
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
    done = command("resume", "tiny")
    assert done.returncode == 0, done.stderr
    record = assert_nothing_was_lost(command.folder("tiny"))
    Runs(Home(command.home).tracking_uri, "tiny").agree_with(record)
    assert computed(record) == computed(finished.load("tiny")[1])


def ended_twice(make_command: Callable[[], Command], *given: str) -> tuple[Command, Command]:
    """A home with the small study, run to its end, and a copy of it."""
    command, copy = make_command(), make_command()
    (command.work / "small.yaml").write_text(SMALL)
    done = command("run", "small.yaml", *(part for one in given for part in ("--set", one)))
    assert done.returncode == 0, done.stderr
    shutil.rmtree(copy.home)  # it has nothing but the empty database
    shutil.copytree(command.home, copy.home)
    return command, copy


@pytest.mark.long
@pytest.mark.timeout(600)
def test_killed_while_the_picks_of_other_rules_run_they_end_as_undisturbed(make_command: Callable[[], Command]) -> None:
    """Asked for after the search, killed in mid-trial and near its end; the study's best stays."""
    command, undisturbed = ended_twice(make_command, "search.confirm={top: 0, seeds: 2}")
    spec, before = command.load("small")
    assert kill(command, [LEDGER, "append", 6, "after"], "confirm", "small", "--rules")
    _, cut = command.load("small")
    assert cut.state == "interrupted"
    assert any(trial.stage == "rule" and 0 < trial.epochs < 3 for trial in cut.trials.values())
    done = undisturbed("confirm", "small", "--rules")
    assert (done.returncode, done.stderr) == (0, "")
    assert "what each selection rule would have picked" in done.stdout
    assert kill(command, [LEDGER, "append", 11, "before"], "resume", "small")
    _, cut = command.load("small")
    assert next(cut.by_stage("rule")).state == "complete"
    assert cut.test_readings < 2
    done = command("resume", "small")
    assert done.returncode == 0, done.stderr
    record = assert_nothing_was_lost(command.folder("small"))
    Runs(Home(command.home).tracking_uri, "small").agree_with(record)
    assert computed(record) == computed(undisturbed.load("small")[1])
    assert computed(record)[: len(before.trials)] == computed(before)
    assert [each.trial.number for each in ranking.ranked(record, spec)] == [
        each.trial.number for each in ranking.ranked(before, spec)
    ]
    assert all("test/accuracy" in trial.tested for trial in record.by_stage("rule"))
    assert record.test_readings == len(list(record.by_stage("rule"))) == 2
    again = command("confirm", "small", "--rules")
    assert again.returncode == 2
    assert "small: trial 0 has run on 2 fresh seeds or more" in again.stderr


@pytest.mark.long
@pytest.mark.timeout(600)
def test_killed_while_the_steps_of_an_ablation_run_they_end_as_undisturbed(make_command: Callable[[], Command]) -> None:
    """Asked for after the search, killed in mid-trial and while test is read."""
    space = "{train.learning_rate: {low: 0.008, high: 0.02}, method.epsilon: {low: 0.1, high: 0.5}}"
    baseline = "{train.learning_rate: 1.0e-6, method.epsilon: 0.0}"  # the search finds something better
    command, undisturbed = ended_twice(
        make_command, f"search.space={space}", f"search.baseline={baseline}", "search.confirm={top: 1, seeds: 2}"
    )
    spec, before = command.load("small")
    assert kill(command, [LEDGER, "append", 12, "after"], "ablate", "small")
    _, cut = command.load("small")
    assert cut.state == "interrupted"
    refused = command("ablate", "small")
    assert refused.returncode == 2
    assert "small: is interrupted, it must end first: study resume small" in refused.stderr
    done = undisturbed("ablate", "small", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    assert kill(command, [LEDGER, "append", 19, "before"], "resume", "small")
    done = command("resume", "small")
    assert done.returncode == 0, done.stderr
    record = assert_nothing_was_lost(command.folder("small"))
    Runs(Home(command.home).tracking_uri, "small").agree_with(record)
    assert computed(record) == computed(undisturbed.load("small")[1])
    assert computed(record)[: len(before.trials)] == computed(before)
    assert [each.trial.number for each in ranking.ranked(record, spec)] == [
        each.trial.number for each in ranking.ranked(before, spec)
    ]
    trials = list(record.by_stage("ablation"))
    assert len(trials) == 2 * 2
    assert all("test/accuracy" in trial.tested for trial in trials)
    again = command("ablate", "small")
    assert (again.returncode, len(command.load("small")[1].trials)) == (0, len(record.trials))
    assert "| in all | best against the baseline |" in again.stdout


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_final_training_killed_with_all_its_processes_goes_on_to_the_same_models(finished: Command) -> None:
    best = str(finished.folder("tiny").best_file)
    train = ["train", best, "--seeds", "0,1", "--epochs", "6", "--name"]
    assert finished(*train, "undisturbed").returncode == 0
    process = finished.start(*train, "killed", SABOTAGE=json.dumps({"slow": 1}))
    finished.wait_for("killed", lambda record: any(trial.epochs >= 2 for trial in record.trials.values()))
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    _, cut = finished.load("killed")
    assert cut.state == "interrupted"
    assert any(0 < trial.epochs < 6 for trial in cut.trials.values())
    done = finished("resume", "killed")
    assert done.returncode == 0, done.stderr
    record = assert_nothing_was_lost(finished.folder("killed"))
    assert computed(record) == computed(finished.load("undisturbed")[1])
    for number in record.trials:
        weights = [finished.folder(name).model_file(number).read_bytes() for name in ("killed", "undisturbed")]
        assert weights[0] == weights[1]
    Runs(Home(finished.home).tracking_uri, "killed").agree_with(record)
