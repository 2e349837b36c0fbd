"""One driver holds a ledger at a time, whichever machine it is on."""

import json
import os
import platform
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

import pytest
from helpers import ROOT

from study.errors import UserError
from study.home import lease, ledger
from study.home.events import SessionClosed
from study.home.lease import LeaseHolder
from study.home.ledger import LeaseLostError, Ledger, read_entries


@pytest.mark.slow
def test_a_second_driver_in_another_process_is_refused(path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from study.errors import UserError; from study.home import "
        "ledger\nprint(ledger.is_driver_running(Path(sys.argv[1])))\ntry: ledger.Ledger(Path(sys.argv[1])).close(); "
        "print('taken')\nexcept UserError as error: print(error)"
    )

    def other() -> list[str]:
        command = [sys.executable, "-c", code, str(path)]
        done = subprocess.run(command, env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=True)
        return done.stdout.splitlines()

    held = Ledger(path)
    is_open, refusal = other()
    assert is_open == "True"
    assert refusal.startswith(
        f"mine: another process is running this study, process {os.getpid()} on {platform.node()}"
    )
    assert refusal.endswith("UTC; its state: study status mine")
    held.close()
    assert other() == ["False", "taken"]


def test_the_lock_of_a_killed_driver_is_gone(path: Path) -> None:
    code = (
        "import os, sys; from pathlib import Path; from study.home.ledger import Ledger\n"
        "from study.home.events import SessionOpened\n"
        "held = Ledger(Path(sys.argv[1])); held.append(SessionOpened(owner='ada')); os.kill(os.getpid(), 9)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(path)], env={"PYTHONPATH": str(ROOT)}, check=False)
    assert done.returncode == -9
    assert not ledger.is_driver_running(path)
    Ledger(path).close()
    assert read_entries(path)[-1]["event"] == "opened"


def another_machine(path: Path, silent: float = 0.0) -> Path:
    """The lease of a driver on another machine, whose last sign of life was so many seconds ago."""
    found = path.with_name("lease.json")
    found.write_text(json.dumps(asdict(LeaseHolder("other", "another kernel", "far", 7, 0.0))))
    now = time.time()
    os.utime(found, (now - silent, now - silent))
    return found


def test_a_driver_on_another_machine_keeps_others_out_as_long_as_it_lives(path: Path) -> None:
    """Where the folder is shared and the lock on the ledger reaches only one machine."""
    theirs = another_machine(path, silent=lease.EXPIRY_S - 10)
    assert ledger.is_driver_running(path)
    with pytest.raises(UserError, match=r"process 7 on far, since 1970-01-01 00:00:00 UTC.*60 s after its last sign"):
        Ledger(path)
    assert "another kernel" in theirs.read_text()


def test_a_dead_machines_lease_expires(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease, "TAKEOVER_SETTLE_S", 0.0)
    another_machine(path, silent=lease.EXPIRY_S + 1)
    assert not ledger.is_driver_running(path)
    held = Ledger(path)
    held.append(SessionClosed(state="interrupted"))
    held.close()
    assert not path.with_name("lease.json").exists()


def test_of_two_that_take_a_dead_machines_lease_one_has_it(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    another_machine(path, silent=lease.EXPIRY_S + 1)
    monkeypatch.setattr(lease.time, "sleep", lambda seconds: another_machine(path))
    before = path.read_bytes()
    with pytest.raises(UserError, match="process 7 on far"):
        Ledger(path)
    assert path.read_bytes() == before


def test_of_many_that_take_a_study_without_a_lease_at_once_one_has_it(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the lock on the ledger reaches one machine only, and each has seen that nobody runs the study."""
    count = 8
    seen, over = threading.Barrier(count), threading.Barrier(count)
    free = lease.holder_on_other_machine

    def nobody(file: Path) -> LeaseHolder | None:
        found = free(file)
        if not passed.is_set():
            with suppress(threading.BrokenBarrierError):
                seen.wait(20)
            passed.set()
        return found

    passed = threading.Event()
    monkeypatch.setattr(ledger, "lock_file", lambda file, timeout_s=0.0: True)
    monkeypatch.setattr(lease, "machine_id", lambda: threading.current_thread().name)
    monkeypatch.setattr(lease, "holder_on_other_machine", nobody)
    refused, has = [], []

    def take() -> None:
        try:
            held = Ledger(path)
        except UserError as error:
            refused.append(str(error))
            over.wait(20)
        else:
            has.append(threading.current_thread().name)
            over.wait(20)
            held.close()

    threads = [threading.Thread(target=take, name=f"machine {number}") for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(has), len(refused)) == (1, count - 1)
    assert all("another process is running this study" in told for told in refused)


@pytest.mark.parametrize("content", ["", '{"owner": '])
def test_a_lease_that_was_cut_off_is_nobodys(path: Path, monkeypatch: pytest.MonkeyPatch, content: str) -> None:
    monkeypatch.setattr(lease, "TAKEOVER_SETTLE_S", 0.1)
    path.with_name("lease.json").write_text(content)
    held = Ledger(path)
    held.append(SessionClosed(state="complete"))
    held.close()
    assert not path.with_name("lease.json").exists()


def test_a_driver_that_was_taken_over_writes_no_more(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It hears of it within seconds, and at once when it was stopped for a while itself."""
    monkeypatch.setattr(lease, "RENEWAL_INTERVAL_S", 0.01)
    of_others = threading.enumerate()
    held = Ledger(path)
    theirs, before = another_machine(path), path.read_bytes()
    for thread in threading.enumerate():
        if thread.name == "lease" and thread not in of_others:
            thread.join(100)
    with pytest.raises(LeaseLostError, match="process 7 on far"):
        held.append(SessionClosed(state="complete"))
    held.close()
    assert path.read_bytes() == before
    assert "another kernel" in theirs.read_text()


def test_a_driver_that_slept_looks_before_it_writes(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    held = Ledger(path)
    another_machine(path)
    slept = time.monotonic() + lease.EXPIRY_S
    monkeypatch.setattr(lease.time, "monotonic", lambda: slept)
    with pytest.raises(LeaseLostError):
        held.append(SessionClosed(state="complete"))
    held.close()


def test_a_holder_renews_its_lease_and_one_that_vanished(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease, "RENEWAL_INTERVAL_S", 0.01)
    mine, held = path.with_name("lease.json"), Ledger(path)
    os.utime(mine, (0, 0))
    deadline = time.monotonic() + 100
    while mine.stat().st_mtime == 0:
        assert time.monotonic() < deadline
    mine.unlink()
    while not mine.exists():
        assert time.monotonic() < deadline
    held.append(SessionClosed(state="complete"))
    held.close()
