"""What a worker does before a trial."""

import importlib
import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest
from course import payload
from own_process import as_driver

from study.home.folder import StudyFolder
from study.home.ledger import read_entries
from study.sweep import worker
from study.upstream.environment import ProcessKind, variables_of_processes


def test_a_process_is_given_back_by_an_error_and_trains_nothing() -> None:
    with pytest.raises(worker.WorkerReleasedError):
        worker.run_job({"job": payload(kind="release")}, datasets={}, weights={})


def test_tune_waits_longer_for_a_trial_to_end_than_its_process_does() -> None:
    assert (
        float(variables_of_processes(ProcessKind.TRIAL)["TUNE_FUNCTION_THREAD_TIMEOUT_S"]) > worker.CLEAN_UP_TIMEOUT_S
    )


def test_a_file_of_the_working_folder_hides_no_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray puts the driver's working folder first; a trial has one of its own, and is told the driver's."""
    (tmp_path / "skops.py").write_text("hidden = True\n")
    (tmp_path / "mine.py").write_text("")
    monkeypatch.setattr(sys, "path", [sys.path[0], str(tmp_path), *sys.path[1:]])
    monkeypatch.delitem(sys.modules, "skops", raising=False)
    importlib.invalidate_caches()
    origins = []
    for _ in range(2):
        found, mine = importlib.util.find_spec("skops"), importlib.util.find_spec("mine")
        assert found is not None
        assert mine is not None
        origins.append(Path(str(found.origin)).parent == tmp_path)
        worker._move_to_end_of_path(str(tmp_path))
    assert origins == [True, False]


BUSY = """
import time

import study.sweep.driver as driver
from study import data
from study.home.folder import Home
from study.home.ledger import Ledger
from study.home.record import StudyRecord
from study.spec import load_study
from study.sweep import own_ray

def job(config, **_):
    from study.sweep import worker
    from study.sweep.job_payload import MetricsReport, StartReport

    worker.CLEAN_UP_TIMEOUT_S = 1.0
    listener, job = worker.TuneListener(0), config["job"]
    listener(StartReport(0, None, {}))
    try:
        listener(MetricsReport({"val/accuracy": 0.5}, 1))
    finally:
        while job.trial == 0:
            time.sleep(1)
        listener.is_over.set()

own_ray.run_job_in_ray_worker = job
spec = load_study("quickstart", [
    "search.sampler=random", "search.trials=3", "search.baseline=null", "search.confirm={top: 0}",
    "search.early_stopping={}", "train.epochs=1", "search.concurrency=1",
])
folder = Home.locate().create_study(spec)
record = StudyRecord.load_without_closing(folder.ledger_file)
driver.drive_study(folder, spec, data.load_datasets(spec.trial_data_sections), Ledger(folder.ledger_file), record)
"""


@pytest.mark.slow
def test_a_process_that_does_not_come_to_its_trials_end_is_ended(tmp_path: Path) -> None:
    """The trial that was to have it is lost once and runs in another; Tune alone would drop it and tell nobody."""
    done = as_driver(BUSY, STUDY_HOME=str(tmp_path))
    assert done.returncode == 0, done.stderr
    events = list(read_entries(StudyFolder(tmp_path / "quickstart").ledger_file))
    assert [(event["trial"], event["kind"]) for event in events if event["event"] == "lost"] == [(1, "PREEMPTED")]
    assert [event["trial"] for event in events if event["event"] == "ended"] == [0, 1, 2]
    assert events[-1]["state"] == "complete"
    assert len({event["node"] for event in events if event["event"] == "started"}) == 2


def test_a_worker_whose_trials_have_processes_of_their_own_starts_without_pytorch() -> None:
    """Its import takes seconds on a busy machine, and the server that forks those processes imports it as well."""
    program = "import sys, study.sweep.worker; print('torch' in sys.modules)"
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert told.stdout == "False\n"
