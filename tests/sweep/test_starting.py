"""Processes of trials that take long to start, as on a node that joins late or a machine with many slots."""

import os
import subprocess
import sys
from pathlib import Path

from study.home import StudyFolder
from study.record import StudyRecord

SLOW_TO_START = """
import os, sys, time
from pathlib import Path
from ray import tune

import study.sweep.worker as worker
from study import data
from study.home import Home
from study.ledger import Ledger, read
from study.record import StudyRecord
from study.spec import load_study
from study.sweep.driver import drive

def load(driver, begun):
    (Path(begun) / str(os.getpid())).touch()
    if os.getpid() != driver and len(os.listdir(begun)) > 2:
        time.sleep(3)
    return Slow(driver, begun)

class Slow:  # to load, but in the driver and the first process of trials
    def __init__(self, *given):
        self.given = given

    def __reduce__(self):
        return load, self.given

gate = Slow(os.getpid(), sys.argv[1])

def job(config, **_):
    gate
    worker.tell_start(heard=0)
    time.sleep(0.1)
    tune.report({"epoch": 1, "metrics": {"val/accuracy": 0.5}})

worker.run_job = job
spec = load_study("quickstart", [
    "search.sampler=random", "search.trials=100", "search.baseline=null", "search.confirm={top: 0}",
    "search.early_stopping={}", "train.epochs=1", "resources.cpu=" + str((os.cpu_count() or 1) / 2),
])
home = Home.locate()
folder = home.create(spec)
ledger = Ledger(folder.ledger_file)
drive(folder, spec, data.load_all(spec.data_sections), ledger, StudyRecord.fold(read(folder.ledger_file)))
"""


def test_a_process_that_is_starting_is_let_start_while_others_end_trials(tmp_path: Path) -> None:
    """Tune would hand the first waiting trial to whatever process comes free, and end the one started for it; where
    trials end more often than processes start, none but the first few would ever do anything.
    """
    (tmp_path / "begun").mkdir()
    done = subprocess.run(
        [sys.executable, "-c", SLOW_TO_START, str(tmp_path / "begun")],
        capture_output=True,
        text=True,
        timeout=240,
        env={**os.environ, "STUDY_HOME": str(tmp_path / "home")},
    )
    assert done.returncode == 0, done.stderr
    record = StudyRecord.load(StudyFolder(tmp_path / "home" / "quickstart").ledger_file)
    assert record.state == "complete"
    assert len(list((tmp_path / "begun").iterdir())) == 1 + 2, "the driver, and a process for each of two slots"
    assert len({trial.node for trial in record.trials.values()}) == 2
