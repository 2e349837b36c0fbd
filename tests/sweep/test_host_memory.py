"""Which processes that died were ended for want of memory: what the kernel counted, and what they held."""

import json
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from groups import killed, real_group

from study.sweep.failures import TrialFailedError
from study.sweep.host_memory import MemoryLimit, OomDetector

HERE = socket.gethostname()
GIB = 2**30


@pytest.fixture
def counter(tmp_path: Path) -> Path:
    file = tmp_path / "memory.events"
    killed(file, 2)
    return file


def memory(counter: Path, kills: int = 2) -> MemoryLimit:
    return MemoryLimit(4 * GIB, str(counter), kills)


def test_a_kill_that_is_counted_explains_one_death(counter: Path) -> None:
    deaths = OomDetector()
    for name in ("one", "other", "third"):
        deaths.note_process(name, f"{HERE}:1", memory(counter))
    assert deaths.find_oom_cause("one", {HERE}) is None, "both were before"
    killed(counter, 3)
    why = deaths.find_oom_cause("other", {HERE})
    assert why is not None
    assert "OOM killer" in why
    assert "4.0 GiB" in why
    assert deaths.find_oom_cause("third", {HERE}) is None


def test_a_kill_of_long_ago_was_somebody_elses(counter: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = 1000.0
    monkeypatch.setattr(time, "monotonic", lambda: clock)
    deaths = OomDetector()
    deaths.note_process("one", f"{HERE}:1", memory(counter))
    deaths.update_memory_readings(["one"])
    killed(counter, 3)
    for _ in range(70):
        clock += 1
        deaths.update_memory_readings(["one"])
    assert deaths.find_oom_cause("one", {HERE}) is None


def test_a_kill_just_before_a_death_is_its_own_however_long_the_process_lived(
    counter: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = 1000.0
    monkeypatch.setattr(time, "monotonic", lambda: clock)
    deaths = OomDetector()
    deaths.note_process("one", f"{HERE}:1", memory(counter))
    for _ in range(200):
        clock += 1
        deaths.update_memory_readings(["one"])
    killed(counter, 3)
    deaths.update_memory_readings(["one"])
    assert deaths.find_oom_cause("one", {HERE})


@pytest.mark.parametrize(("count", "is_told"), [(3, True), (2, False), (None, False)])
def test_another_node_is_asked_for_its_count(counter: Path, count: int | None, is_told: bool) -> None:
    asked = []

    def ask(machine: str, file: str) -> int | None:
        asked.append((machine, file))
        return count

    deaths = OomDetector(ask)
    deaths.note_process("one", "there:1", memory(counter), "far")
    assert bool(deaths.find_oom_cause("one", {HERE, "there"})) == is_told
    assert asked == [("far", str(counter))]


@pytest.mark.parametrize(("hosts", "is_told"), [({HERE}, True), ({HERE, "there"}, False)])
def test_a_process_that_died_before_it_told_anything(
    counter: Path, monkeypatch: pytest.MonkeyPatch, hosts: set[str], is_told: bool
) -> None:
    """While the data of its first trial came, say; where it was is known if there is one machine alone."""
    monkeypatch.setattr(MemoryLimit, "of_this_process", lambda: memory(counter))
    deaths = OomDetector()
    killed(counter, 3)
    assert bool(deaths.find_oom_cause("", hosts)) == is_told


GROWS = "import time; held = bytearray(b'x') * {}; print(flush=True); time.sleep(60)"


@pytest.mark.parametrize(("held", "is_told"), [(200 * 2**20, True), (1, False)])
def test_a_process_that_vanished_while_it_held_much(held: int, is_told: bool) -> None:
    """As one that a daemon ended before the kernel had to, which counts nothing."""
    with subprocess.Popen([sys.executable, "-c", GROWS.format(held)], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        deaths = OomDetector()
        deaths.note_process("one", f"{HERE}:{process.pid}", MemoryLimit(300 * 2**20))
        deaths.update_memory_readings(["one"])
        process.send_signal(signal.SIGKILL)
        process.wait()
        deaths.update_memory_readings(["one"])
        why = deaths.find_oom_cause("one", {HERE})
    assert bool(why) == is_told
    assert why is None or "of 0.3 GiB" in why


@pytest.mark.parametrize(
    ("text", "more", "kind"),
    [
        ("DataLoader worker (pid 7) is killed by signal: Killed. ", 1, "OOM"),
        ("A process in the process pool was terminated abruptly while the future was running", 1, "OOM"),
        ("Command 'convert' died with <Signals.SIGKILL: 9>.", 1, "OOM"),
        ("DataLoader worker (pid 7) is killed by signal: Killed. ", 0, "BUG"),
        ("no such column", 1, "BUG"),
    ],
)
def test_a_process_of_the_trials_own_was_killed(counter: Path, text: str, more: int, kind: str) -> None:
    before = memory(counter)
    killed(counter, 2 + more)
    found = TrialFailedError.from_exception(RuntimeError(text), before).failure
    assert found.kind == kind
    assert text.strip() in found.reason


EATS = """
import sys
open(sys.argv[1], "w").write("0")
held = []
while True:
    held.append(bytearray(b"x") * 2**20)
"""


TELLS = """
import json, sys
open(sys.argv[1], "w").write("0")
from dataclasses import asdict
from study.sweep.host_memory import MemoryLimit
print(json.dumps(asdict(MemoryLimit.of_this_process())))
"""


def test_the_kernel_counts_what_it_ends() -> None:
    """In a real group of this machine's, where one can be made."""
    with real_group(100 * 2**20) as group:
        if group is None:
            pytest.skip("no control group can be made here")
        place = str(group / "cgroup.procs")
        told = subprocess.run([sys.executable, "-c", TELLS, place], capture_output=True, check=True)
        before = MemoryLimit(**json.loads(told.stdout))
        assert before.limit_bytes == 100 * 2**20
        done = subprocess.run([sys.executable, "-c", EATS, place], check=False)
        assert done.returncode == -signal.SIGKILL
        assert before.kills_since_start() == 1
