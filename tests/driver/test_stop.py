"""`study stop` ends the driver of a study, and no other process whatever the lease says."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from helpers import ROOT, quickstart

from study.driver.ask_driver import stop_driver
from study.errors import UserError
from study.home.folder import Home
from study.home.lease import ProcessGoneError, ProcessIdentity
from study.home.ledger import Ledger, is_driver_running

DRIVER = """
import signal, sys
from pathlib import Path
from study.home.events import SessionClosed
from study.home.ledger import Ledger
held = Ledger(Path(sys.argv[1]))
signal.signal(signal.SIGTERM, lambda *_: (held.append(SessionClosed(state="interrupted")), held.close(), sys.exit(7)))
print("holds it", flush=True)
signal.pause()
"""


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """A home with the study `mine`."""
    home = Home(tmp_path / "home")
    home.create_study(quickstart("name=mine"))
    return home


@pytest.fixture
def bystander() -> Iterator["subprocess.Popen[bytes]"]:
    """A process that has nothing to do with any study."""
    with subprocess.Popen(["sleep", "60"]) as process:
        yield process
        process.kill()


def test_the_driver_is_stopped_and_waited_for(home: Home) -> None:
    ledger = home.find_study("mine").ledger_file
    command = [sys.executable, "-c", DRIVER, str(ledger)]
    environment = {"PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as driver:
        assert driver.stdout is not None
        assert driver.stdout.readline() == "holds it\n"
        assert stop_driver(home, "mine").startswith(f"process {driver.pid} on ")
        assert not is_driver_running(ledger)
        assert driver.wait(20) == 7


def test_a_study_that_does_not_run_is_told(home: Home) -> None:
    with pytest.raises(UserError, match="mine: is not running"):
        stop_driver(home, "mine")


def changed(of_bystander: dict[str, Any], name: str) -> dict[str, Any]:
    """What a lease says of the process, by what is wrong with it."""
    return {
        "pid": {"pid": of_bystander["pid"]},
        "command": {key: of_bystander[key] for key in ("pid", "started")},
        "namespace": {**of_bystander, "namespace": "pid:[1]"},
        "machine": {**of_bystander, "machine": "another kernel"},
        "gone": {"pid": 2**22 + 1},
    }[name]


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ("pid", r"mine: was not stopped: .*lease\.json says that process \d+ on .* runs it, and .* is another one now"),
        ("command", r"mine: was not stopped: .* and process \d+ runs another command now: sleep 60"),
        (
            "namespace",
            r"process \d+ on .* runs it in another container of this machine.* Stop it there: study stop mine",
        ),
        ("machine", r"process \d+ on .* runs it, not on this machine"),
        ("gone", r"mine: was not stopped: .* and there is no process 4194305"),
    ],
)
def test_no_other_process_is_ended(home: Home, bystander: "subprocess.Popen[bytes]", wrong: str, told: str) -> None:
    """Here the driver is this process, which would not outlive a signal either."""
    ledger = home.find_study("mine").ledger_file
    held, lease = Ledger(ledger), ledger.with_name("lease.json")
    mine = json.loads(lease.read_text())
    lease.write_text(json.dumps(mine | changed(asdict(ProcessIdentity.from_pid(bystander.pid)), wrong)))
    with pytest.raises(UserError, match=told):
        stop_driver(home, "mine")
    held.close()
    assert bystander.poll() is None


@pytest.mark.parametrize(
    "damage",
    [
        *({"pid": pid} for pid in (0, -1, 2**40, "1", True, None, 1.0)),
        *({"since": since} for since in ("noon", 1e300, -1, None)),
        *({"host": 3}, {"namespace": None}),
    ],
    ids=str,
)
def test_a_damaged_lease_ends_nobody(home: Home, damage: dict[str, Any]) -> None:
    ledger = home.find_study("mine").ledger_file
    held, lease = Ledger(ledger), ledger.with_name("lease.json")
    lease.write_text(json.dumps(json.loads(lease.read_text()) | damage))
    with pytest.raises(UserError, match=r"mine: was not stopped: .*lease\.json, .* is missing or damaged. .*try again"):
        stop_driver(home, "mine")
    lease.unlink()
    with pytest.raises(UserError, match="missing or damaged"):
        stop_driver(home, "mine")
    held.close()


def test_a_process_that_has_ended_gets_no_signal(bystander: "subprocess.Popen[bytes]") -> None:
    process = ProcessIdentity.from_pid(bystander.pid)
    os.kill(bystander.pid, signal.SIGKILL)
    os.waitid(os.P_PID, bystander.pid, os.WEXITED | os.WNOWAIT)  # a zombie until its parent asks
    with pytest.raises(ProcessGoneError, match="has ended"):
        process.send_signal(signal.SIGTERM)
    bystander.wait()
    with pytest.raises(ProcessGoneError, match="there is no process"):
        process.send_signal(signal.SIGTERM)
