"""Whatever becomes of a ledger or a lease, every command that reads it answers, without a traceback, soon and small."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict
from random import Random
from typing import Any

import pytest
from answers import SECONDS, answer, peak
from helpers import Told, quickstart, write_ledger
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mutations import mutate_bytes, mutate_events

from study.driver import ask_driver
from study.home import lease, ledger
from study.home.events import ModelEvaluated, RunLost, SessionClosed
from study.home.folder import Home, StudyFolder
from study.home.lease import LeaseHolder, ProcessIdentity
from study.home.ledger import Ledger, read_entries
from study.home.ledger_line import Entry, LineChainState

MEGABYTES = 500
"""What an answer may take."""

SEEDS = st.integers(0, 2**64)
SETTINGS: dict[str, Any] = {
    "deadline": None,
    "derandomize": True,
    "suppress_health_check": [HealthCheck.function_scoped_fixture],  # each example leaves things as they were
}

PARAMS = {"method.alpha": 0.5, "method.lambda": 1.0, "method.epsilon": 0.25}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> StudyFolder:
    """A complete study with a trial of every kind, and one beside it that nothing happens to."""
    home = Home(tmp_path_factory.mktemp("mutated") / "home")
    home.create_study(quickstart("name=other"))
    folder = home.create_study(quickstart("name=mine", "train.epochs=2", "search.trials=4", "search.early_stopping={}"))
    write_ledger(
        folder.ledger_file,
        Told("baseline", [0.2, 0.3], params={**PARAMS, "method.lambda": 0.0}),
        Told("search", [0.4, 0.5], params=PARAMS),
        Told("search", [0.1], "pruned", params={**PARAMS, "method.alpha": 0.1}),
        Told("search", [None], "failed", params={**PARAMS, "method.alpha": 0.01}),
        Told("confirm", [0.4, 0.6], params=PARAMS, seed=3, repeats=1, tested={"test/accuracy": 0.6}),
    )
    ledger = Ledger(folder.ledger_file)
    ledger.append(RunLost(trial=3, kind="PREEMPTED", reason="its process died", attempt=1))
    ledger.append(ModelEvaluated(trial=4, split="test", by="study evaluate"))
    ledger.append(SessionClosed(state="complete", enough="trials"))
    ledger.close()
    return folder


@pytest.fixture
def answers(folder: StudyFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STUDY_HOME", str(folder.path.parent))
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    monkeypatch.chdir(folder.path.parent.parent)
    for command in READING:
        answer(*command)  # imports what the commands need


def answered(*arguments: str) -> tuple[int, str]:
    """Exit status and errors of a command, held to what every answer is held to."""
    size = peak()
    done = answer(*arguments)
    assert peak() - size < MEGABYTES
    assert "Traceback" not in done.out + done.err, done.err
    assert "bug in study" not in done.err, done.err
    assert done.status in (0, 1, 2), done.err
    assert bool(done.status) is done.err.startswith("error: "), done.err
    return done.status, done.err


READING = [("list",), ("list", "--json"), *((name, "mine") for name in ("status", "logs"))]
READING += [("status", "mine", "--json"), ("logs", "mine", "--trial", "1"), ("export", "mine", "-o", "best.yaml")]
FEW = [("report", "mine"), ("compare", "mine", "other")]
"""These take a second where the ledger can be read."""
HELD = [("stop", "mine"), ("status", "mine"), ("resume", "mine"), ("delete", "mine", "-y")]
"""Of a study that is being run; the last two wait for it."""


def answer_to_a_ledger(folder: StudyFolder, seed: int) -> None:
    """One that is not as it was written is named by its place wherever it is read."""
    random, whole = Random(seed), folder.ledger_file.read_bytes()
    content = mutate_bytes(random, whole)
    folder.ledger_file.write_bytes(content)
    try:
        status, err = answered(*random.choice(READING))
        if not whole.startswith(content[: content.rfind(b"\n") + 1]) and status:
            assert f"{folder.ledger_file}: damaged at byte " in err
        ledger = Ledger(folder.ledger_file)  # as resume does
        ledger.close()
    finally:
        folder.ledger_file.write_bytes(whole)


def answer_to_events(folder: StudyFolder, seed: int, few: float = 0.0) -> None:
    """Also where the check values are right, as those of another version would be."""
    random, whole = Random(seed), folder.ledger_file.read_bytes()
    events: list[Entry] = read_entries(folder.ledger_file)
    for _ in range(random.choice([1, 1, 2])):
        events = mutate_events(random, events) or events
    folder.ledger_file.write_bytes(chained(events))
    try:
        answered(*random.choice(FEW if random.random() < few else READING))
    finally:
        folder.ledger_file.write_bytes(whole)


def chained(events: list[Entry]) -> bytes:
    """The lines of a ledger that has these events."""
    chain, lines = LineChainState(), []
    for event in events:
        lines.append(chain.complete_line(json.dumps(event).encode()))
        chain.advance_if_next(lines[-1])
    return b"".join(lines)


DRIVER = """
import fcntl, signal, sys
file = open(sys.argv[1], "rb")
fcntl.flock(file, fcntl.LOCK_EX)
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("holds it", flush=True)
signal.pause()
"""


@pytest.fixture
def driver(folder: StudyFolder, answers: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[LeaseHolder]:
    """A process that holds the study and does not mind SIGTERM; at the end it must still be there."""
    command = [sys.executable, "-c", DRIVER, str(folder.ledger_file)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        monkeypatch.setattr(ask_driver, "STOP_TIMEOUT_S", 0.0)
        monkeypatch.setattr(ledger, "LOCK_TIMEOUT_S", 0.05)
        answer("resume", "mine")  # imports MLflow
        yield LeaseHolder("one", lease.machine_id(), "here", since=1.0, **asdict(ProcessIdentity.from_pid(process.pid)))
        assert process.poll() is None
        process.kill()
    (folder.path / "lease.json").unlink(missing_ok=True)


def answer_to_a_lease(folder: StudyFolder, driver: LeaseHolder, seed: int) -> None:
    """Who holds the study is still there afterwards, see `driver`."""
    random = Random(seed)
    content = mutate_bytes(random, json.dumps(asdict(driver)).encode())
    (folder.path / "lease.json").write_bytes(content)
    status, err = answered(*random.choice(HELD if random.random() < 0.1 else HELD[:2]))
    assert status == 0 or err.startswith("error: mine: "), err
    assert os.path.exists(folder.ledger_file)


MEASURED = """
import atexit, time
from study.cli import main

def tell():
    with open("/proc/self/status") as status:
        peak = next(line.split()[1] for line in status if line.startswith("VmHWM:"))
    print(time.process_time(), peak)

atexit.register(tell)
main()
"""
"""The command, and what it took: seconds, and kB at its peak. `getrusage` would count what this process had when it
made it, too."""


@pytest.mark.slow
@pytest.mark.parametrize("damage", [b"[" * 2_000_000 + b"\n", b'{"event":"report","metrics":' * 100_000 + b"\n"])
def test_a_process_of_its_own_answers_small_and_soon(folder: StudyFolder, answers: None, damage: bytes) -> None:
    whole = folder.ledger_file.read_bytes()
    folder.ledger_file.write_bytes(whole + damage)
    command = [sys.executable, "-c", MEASURED, "status", "mine"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    folder.ledger_file.write_bytes(whole)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert done.stderr.startswith(f"error: {folder.ledger_file}: damaged at byte {len(whole)}: ")
    seconds, kilobytes = map(float, done.stdout.split())
    assert seconds < SECONDS
    assert kilobytes < MEGABYTES * 1024


@pytest.mark.slow
@settings(max_examples=150, **SETTINGS)
@given(SEEDS)
def test_mutated_ledgers_are_answered(folder: StudyFolder, answers: None, seed: int) -> None:
    answer_to_a_ledger(folder, seed)


@pytest.fixture
def reporting(answers: None) -> None:
    """With what a report needs imported."""
    for command in FEW:
        answer(*command)


@pytest.mark.slow
@settings(max_examples=150, **SETTINGS)
@given(SEEDS)
def test_mutated_events_are_answered(folder: StudyFolder, reporting: None, seed: int) -> None:
    answer_to_events(folder, seed, few=0.02)


@pytest.mark.slow
@settings(max_examples=150, **SETTINGS)
@given(SEEDS)
def test_mutated_leases_are_answered(folder: StudyFolder, answers: None, driver: LeaseHolder, seed: int) -> None:
    answer_to_a_lease(folder, driver, seed)
