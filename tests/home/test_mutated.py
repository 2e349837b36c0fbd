"""Whatever becomes of a ledger or a lease, every command that reads it answers, without a traceback, soon and small."""

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict
from random import Random
from typing import Any

import pytest
from helpers import Told, quickstart, write_ledger
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mutations import mutate_bytes, mutate_events

from study import cli
from study.commands import requests
from study.home import lease, ledger
from study.home.events import Chain
from study.home.folder import Home, StudyFolder
from study.home.lease import Holder, Process
from study.home.ledger import Event, Ledger, read

SECONDS, BYTES = 10.0, 500 * 2**20
"""Of an answer: processor time, so that it holds on a busy machine, and what the process may grow by."""

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
    home.create(quickstart("name=other"))
    folder = home.create(quickstart("name=mine", "train.epochs=2", "search.trials=4", "search.early_stopping={}"))
    write_ledger(
        folder.ledger_file,
        Told("baseline", [0.2, 0.3], params={**PARAMS, "method.lambda": 0.0}),
        Told("search", [0.4, 0.5], params=PARAMS),
        Told("search", [0.1], "pruned", params={**PARAMS, "method.alpha": 0.1}),
        Told("search", [None], "failed", params={**PARAMS, "method.alpha": 0.01}),
        Told("confirm", [0.4, 0.6], params=PARAMS, seed=3, repeats=1, tested={"test/accuracy": 0.6}),
    )
    ledger = Ledger(folder.ledger_file)
    ledger.append("lost", trial=3, kind="PREEMPTED", reason="its process died", attempt=1)
    ledger.append("evaluated", trial=4, split="test", by="study evaluate")
    ledger.append("closed", state="complete", enough="trials")
    ledger.close()
    return folder


@pytest.fixture
def answers(folder: StudyFolder, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> "Answers":
    monkeypatch.setenv("STUDY_HOME", str(folder.path.parent))
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    monkeypatch.chdir(folder.path.parent.parent)
    answers = Answers(monkeypatch, capfd)
    for command in READING:
        answers.run(*command)  # imports what the commands need
    return answers


class Answers:
    """Runs commands in this process, and holds each to what every answer is held to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
        self._monkeypatch, self._capfd = monkeypatch, capfd

    def run(self, *arguments: str) -> tuple[int, str, str]:
        """Exit status and what a command prints."""
        self._monkeypatch.setattr("sys.argv", ["study", *arguments])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        return int(ended.value.code or 0), *self._capfd.readouterr()

    def __call__(self, *arguments: str) -> tuple[int, str]:
        began, size = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        status, out, err = self.run(*arguments)
        assert time.process_time() - began < SECONDS
        assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - size) * 1024 < BYTES
        assert "Traceback" not in out + err, err
        assert "bug in study" not in err, err
        assert status in (0, 1, 2), err
        assert bool(status) is err.startswith("error: "), err
        return status, err


READING = [("list",), ("list", "--json"), *((name, "mine") for name in ("status", "cost", "logs"))]
READING += [("status", "mine", "--json"), ("logs", "mine", "--trial", "1"), ("export", "mine", "-o", "best.yaml")]
FEW = [("report", "mine"), ("compare", "mine", "other")]
"""These take a second where the ledger can be read."""
HELD = [("stop", "mine"), ("status", "mine"), ("resume", "mine"), ("delete", "mine", "-y")]
"""Of a study that is being run; the last two wait for it."""


def answer_to_a_ledger(folder: StudyFolder, answers: Answers, seed: int) -> None:
    """One that is not as it was written is named by its place wherever it is read."""
    random, whole = Random(seed), folder.ledger_file.read_bytes()
    content = mutate_bytes(random, whole)
    folder.ledger_file.write_bytes(content)
    try:
        status, err = answers(*random.choice(READING))
        if not whole.startswith(content[: content.rfind(b"\n") + 1]) and status:
            assert f"{folder.ledger_file}: damaged at byte " in err
        ledger = Ledger(folder.ledger_file)  # as resume does
        ledger.close()
    finally:
        folder.ledger_file.write_bytes(whole)


def answer_to_events(folder: StudyFolder, answers: Answers, seed: int, few: float = 0.0) -> None:
    """Also where the check values are right, as those of another version would be."""
    random, whole = Random(seed), folder.ledger_file.read_bytes()
    events: list[Event] = read(folder.ledger_file)
    for _ in range(random.choice([1, 1, 2])):
        events = mutate_events(random, events) or events
    folder.ledger_file.write_bytes(chained(events))
    try:
        answers(*random.choice(FEW if random.random() < few else READING))
    finally:
        folder.ledger_file.write_bytes(whole)


def chained(events: list[Event]) -> bytes:
    """The lines of a ledger that has these events."""
    chain, lines = Chain(), []
    for event in events:
        lines.append(chain.close(json.dumps(event).encode()))
        chain.passes(lines[-1])
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
def driver(folder: StudyFolder, answers: "Answers", monkeypatch: pytest.MonkeyPatch) -> Iterator[Holder]:
    """A process that holds the study and does not mind SIGTERM; at the end it must still be there."""
    command = [sys.executable, "-c", DRIVER, str(folder.ledger_file)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        monkeypatch.setattr(requests, "LONGEST_STOP", 0.0)
        monkeypatch.setattr(ledger, "PATIENCE", 0.05)
        answers.run("resume", "mine")  # imports MLflow
        yield Holder("one", lease.machine(), "here", since=1.0, **asdict(Process.of(process.pid)))
        assert process.poll() is None
        process.kill()
    (folder.path / "lease.json").unlink(missing_ok=True)


def answer_to_a_lease(folder: StudyFolder, answers: Answers, driver: Holder, seed: int) -> None:
    """Who holds the study is still there afterwards, see `driver`."""
    random = Random(seed)
    content = mutate_bytes(random, json.dumps(asdict(driver)).encode())
    (folder.path / "lease.json").write_bytes(content)
    status, err = answers(*random.choice(HELD if random.random() < 0.1 else HELD[:2]))
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
def test_a_process_of_its_own_answers_small_and_soon(folder: StudyFolder, answers: Answers, damage: bytes) -> None:
    whole = folder.ledger_file.read_bytes()
    folder.ledger_file.write_bytes(whole + damage)
    command = [sys.executable, "-c", MEASURED, "status", "mine"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    folder.ledger_file.write_bytes(whole)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert done.stderr.startswith(f"error: {folder.ledger_file}: damaged at byte {len(whole)}: ")
    seconds, kilobytes = map(float, done.stdout.split())
    assert seconds < SECONDS
    assert kilobytes * 1024 < BYTES


@pytest.mark.slow
@settings(max_examples=150, **SETTINGS)
@given(SEEDS)
def test_mutated_ledgers_are_answered(folder: StudyFolder, answers: Answers, seed: int) -> None:
    answer_to_a_ledger(folder, answers, seed)


@pytest.fixture
def reporting(answers: Answers) -> Answers:
    """With what a report needs imported."""
    for command in FEW:
        answers.run(*command)
    return answers


@pytest.mark.slow
@settings(max_examples=150, **SETTINGS)
@given(SEEDS)
def test_mutated_events_are_answered(folder: StudyFolder, reporting: Answers, seed: int) -> None:
    answer_to_events(folder, reporting, seed, few=0.02)


@pytest.mark.slow
@settings(max_examples=150, **SETTINGS)
@given(SEEDS)
def test_mutated_leases_are_answered(folder: StudyFolder, answers: Answers, driver: Holder, seed: int) -> None:
    answer_to_a_lease(folder, answers, driver, seed)
