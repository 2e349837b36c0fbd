"""Trials whose processes die, hang, raise, diverge or run out of memory, for real; a full disk; a study taken over."""

import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path

import psutil
import pytest
from command import Command
from helpers import computed
from mlflow import MlflowClient

from study.home.folder import Home
from study.home.lease import LeaseHolder
from study.home.ledger import read_entries
from study.home.ledger_line import Entry
from study.home.record import StudyRecord

FAULTS = {
    "0": "SIGKILL",
    "1": "exception",
    "2": "NaN",
    "3": "memory",
    "4": "SIGSTOP",
    "5": "GPU",
    "6": "exception always",
    "7": "SIGKILL always",
}


@pytest.fixture
def command(make_command: Callable[[], Command]) -> Command:
    return make_command()


def events(command: Command, *names: str) -> list[Entry]:
    return [event for event in read_entries(command.folder("tiny").ledger_file) if event["event"] in names]


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_each_fault_is_told_apart_and_what_can_be_helped_runs_again(command: Command) -> None:
    """Killed, stopped, out of memory or with a broken GPU a trial goes on from its checkpoint; a bug or NaN ends it."""
    given = ["--set", "search.trials=8", "--set", "search.confirm.top=0", "--set", "search.early_stopping.name=none"]
    faults = json.dumps({"trials": FAULTS})
    command = replace(command, patience=800)  # twelve new processes, and a wait for the one that hangs
    command.done("run", "tiny.yaml", *given, "--set", "resources={cpu: 1, hang: 30s}", SABOTAGE=faults)
    _, record = command.load("tiny")
    found = {number: (trial.state, trial.failure_kind, trial.attempt) for number, trial in record.trials.items()}
    assert found == {
        0: ("complete", None, 1),
        1: ("failed", "BUG", 0),
        2: ("failed", "DIVERGED", 0),
        3: ("complete", None, 1),
        4: ("complete", None, 1),
        5: ("complete", None, 1),
        6: ("failed", "BUG", 0),
        7: ("failed", "PREEMPTED", 2),
    }
    lost = [(event["trial"], event["kind"]) for event in events(command, "lost")]
    assert lost == [(0, "PREEMPTED"), (3, "OOM"), (4, "HUNG"), (5, "PREEMPTED"), (7, "PREEMPTED"), (7, "PREEMPTED")]
    begun = [event for event in events(command, "started") if event["trial"] in (0, 3, 4, 5)]
    assert [event["epoch"] for event in begun] == [0, 1] * 4, "the second attempt goes on behind the first epoch"
    assert all([report["epoch"] for report in record.trials[number].reports] == [1, 2, 3, 4] for number in (0, 3, 4, 5))
    assert not Path("/proc", begun[4]["node"].split(":")[1]).exists(), "the process that was stopped is gone"
    assert not any(command.folder("tiny").checkpoints_folder.glob("*"))
    assert "ValueError: on purpose" in command.folder("tiny").error_file(1).read_text()
    client = MlflowClient(Home(command.home).tracking_uri)
    experiment = client.get_experiment_by_name("tiny")
    assert experiment is not None
    runs = {run.data.tags.get("study.trial"): run for run in client.search_runs([experiment.experiment_id])}
    assert len(runs) == 9
    statuses = {number: runs[str(number)].info.status for number in record.trials}
    assert {number for number, status in statuses.items() if status == "FAILED"} == {1, 2, 6, 7}
    assert runs["7"].data.tags["failure_kind"] == "PREEMPTED"
    assert "HUNG" in runs["4"].data.tags["study.lost.1"]


@pytest.mark.slow
def test_a_study_in_which_everything_fails_alike_stops_and_shows_why_once(command: Command) -> None:
    faults = json.dumps({"trials": {str(number): "exception" for number in range(7)}})
    done = command("run", "tiny.yaml", "--set", "search.early_stopping.name=none", SABOTAGE=faults)
    assert done.returncode == 1
    assert done.stdout.count("ValueError: on purpose") <= 3, "as it happens, the reason, and the end of one traceback"
    assert "in happens" in done.stdout
    assert len(command.load("tiny")[1].trials) == 3


@pytest.mark.slow
def test_the_memory_monitor_ends_a_greedy_trial_alone(command: Command) -> None:
    """The node's memory is nearly full by one trial's doing: it is lost for want of memory, the study goes on."""
    memory = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
    total, available = (int(memory[key].split()[0]) for key in ("MemTotal", "MemAvailable"))
    threshold = 1 - available / total + 0.25  # what other tests take meanwhile is less
    given = ["--set", "search.trials=2", "--set", "search.confirm.top=0", "--set", "search.early_stopping.name=none"]
    command.done(
        *("run", "tiny.yaml", *given),
        SABOTAGE=json.dumps({"trials": {"1": "greed"}}),
        RAY_memory_usage_threshold=f"{threshold:.3f}",
        RAY_memory_monitor_refresh_ms="50",
    )
    assert {(event["trial"], event["kind"]) for event in events(command, "lost")} == {(1, "OOM")}
    assert {trial.state for trial in command.load("tiny")[1].trials.values()} == {"complete"}


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 64 MB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", str(folder)], capture_output=True)
    if mount.returncode:
        pytest.skip(f"a small file system cannot be mounted here: {mount.stderr.decode().strip()}")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "room",
    [pytest.param(400, marks=pytest.mark.slow), *(pytest.param(room, marks=pytest.mark.long) for room in (150, 2000))],
    ids=lambda room: f"{room} kB",
)
def test_a_home_with_some_room_stops_the_study_wherever_that_ends(
    command: Command, finished: Command, small_disk: Path, room: int
) -> None:
    """In a checkpoint, in a model's weights or a figure of the report; no trial is taken for failed."""
    (home := small_disk / "home").mkdir()
    shutil.copy(command.home / "mlflow.db", home)
    command = replace(command, home=home)
    filler = small_disk / "filler"
    filler.write_bytes(b"x" * (shutil.disk_usage(small_disk).free - 1024 * room))
    done = command("run", "tiny.yaml", SABOTAGE="{}")
    assert done.returncode == 1, done.stdout
    assert done.stderr.count("\n") == 1, done.stderr
    assert "No space left on device" in done.stderr
    assert "study resume tiny" in done.stderr
    assert not [trial for trial in command.load("tiny")[1].trials.values() if trial.state == "failed"]
    filler.unlink()
    command.done("resume", "tiny")
    assert computed(command.load("tiny")[1]) == computed(finished.load("tiny")[1])


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_driver_that_is_killed_while_its_workers_start_takes_all_with_it(command: Command) -> None:
    """At moments around that at which its first one is there; ten seconds later there is none."""

    def of_the_study() -> list[psutil.Process]:
        found = []
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                if process.environ().get("STUDY_HOME") == str(command.home):
                    found.append(process)
        return found

    for moment in (0.0, 0.4, 2.0):
        shutil.rmtree(command.folder("tiny").path, ignore_errors=True)
        driver = command.start("run", "tiny.yaml", "--set", "train.epochs=500", "--set", "search.early_stopping={}")
        deadline = time.monotonic() + command.patience
        while len(of_the_study()) < 4:  # driver, head, node, and the first of its processes
            assert time.monotonic() < deadline
            assert driver.poll() is None
            time.sleep(0.02)
        time.sleep(moment)
        driver.kill()
        driver.communicate()
        _, left = psutil.wait_procs(of_the_study(), timeout=10)
        assert of_the_study() == left == []


@pytest.mark.slow
def test_a_driver_whose_study_was_taken_over_stops_without_writing(command: Command) -> None:
    """As by a machine that shares the folder, after this one was out of reach for too long."""
    changes = ("--set", "train.epochs=200", "--set", "search.early_stopping={}")
    process = command.start("run", "tiny.yaml", *changes, SABOTAGE='{"slow": 0.1}')
    command.wait_for("tiny", lambda record: any(trial.n_epochs for trial in record.trials.values()))
    folder = command.folder("tiny")
    other = LeaseHolder("other", "another kernel", "far", 7, time.time())
    part = folder.path / "theirs"
    part.write_text(json.dumps(asdict(other)))
    part.replace(folder.path / "lease.json")
    time.sleep(7)
    before = folder.ledger_file.read_bytes()
    _, err = process.communicate(timeout=100)
    assert process.returncode == 1, err
    assert "another driver took the study over: process 7 on far" in err
    assert folder.ledger_file.read_bytes() == before
    assert "another kernel" in (folder.path / "lease.json").read_text()
    os.utime(folder.path / "lease.json", (0, 0))
    assert StudyRecord.load(folder.ledger_file).state == "interrupted"
