"""The time in which a driver did not run is no time of its study's."""

import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from study.home.ledger import Ledger, read_entries
from study.home.record import StudyRecord

STOPS = """
import sys
from pathlib import Path
from study.home import ledger as of_ledger
from study.home.events import TrialDecided, TrialEnded, SessionOpened, TrialStarted
from study.home.ledger import Ledger
of_ledger.MAX_CLOCK_CHECK_DELAY_S, of_ledger.CLOCK_CHECK_INTERVAL_S = 0.6, 0.1
ledger = Ledger(Path(sys.argv[1]))
ledger.append(SessionOpened(owner="ada"))
ledger.append(TrialDecided(trial=0, stage="search", params={}, seed=0))
ledger.append(TrialStarted(trial=0, node="here:1"))
print(flush=True)
sys.stdin.readline()
ledger.append(TrialEnded(trial=0, state="complete"))
ledger.close()
"""


@pytest.mark.parametrize("stopped", [0.0, 2.0])
def test_a_driver_that_was_stopped_says_for_how_long(tmp_path: Path, stopped: float) -> None:
    Ledger.create(path := tmp_path / "ledger.jsonl")
    command = [sys.executable, "-c", STOPS, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        if stopped:
            process.send_signal(signal.SIGSTOP)
            time.sleep(stopped)
            process.send_signal(signal.SIGCONT)
        process.communicate(b"\n")
    assert process.returncode == 0
    ended = read_entries(path)[-1]
    trial = StudyRecord.load(path).trials[0]
    assert trial.total_run_seconds is not None
    if stopped:
        assert ended["asleep"] == pytest.approx(stopped, abs=0.5)
        assert trial.total_run_seconds < stopped / 2
    assert ended.get("asleep", 0.0) <= ended["time"] - read_entries(path)[-2]["time"]


def test_what_slept_is_taken_off_each_time_that_is_told() -> None:
    told: list[dict[str, Any]] = [
        {"event": "created", "id": "x", "time": 0.0},
        {"event": "opened", "owner": "ada", "time": 0.0},
        {"event": "trial", "trial": 0, "stage": "search", "params": {}, "seed": 0, "time": 10.0, "asleep": 4.0},
        {"event": "trial", "trial": 1, "stage": "search", "params": {}, "seed": 0, "time": 10.0},
        {"event": "started", "trial": 0, "node": "a:1", "time": 10.0},
        {"event": "report", "trial": 0, "epoch": 1, "metrics": {"val/accuracy": 0.5}, "time": 110.0, "asleep": 90.0},
        {"event": "started", "trial": 1, "node": "a:2", "time": 110.0},
        {"event": "ended", "trial": 0, "time": 115.0, "state": "complete"},
        {"event": "lost", "trial": 1, "kind": "HUNG", "reason": "x", "attempt": 1, "time": 130.0, "asleep": 12.0},
        {"event": "started", "trial": 1, "node": "a:2", "time": 130.0},
        {"event": "ended", "trial": 1, "time": 131.0, "state": "complete"},
    ]
    record = StudyRecord.from_entries(told)
    assert [trial.total_run_seconds for trial in record.trials.values()] == [15.0, 1.0]
    assert (record.total_driver_seconds, record.total_trial_seconds) == (131.0 - 106.0, 15.0 + 8.0 + 1.0)
    assert record.total_start_seconds == 10.0 - 4.0
