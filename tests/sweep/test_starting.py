"""Which trial gets which process: those that are starting are let start, and those that wait come in their order."""

from pathlib import Path

import pytest
from own_process import as_driver

from study.home.folder import StudyFolder
from study.home.ledger import read_entries
from study.home.ledger_line import Entry

SCRIPT = """
import os, sys, time
from pathlib import Path

from ray.tune.execution.tune_controller import TuneController

import study.sweep.driver as driver
from study.sweep import own_ray, tune_adapters
import study.sweep.worker as worker
from study import data
from study.home.folder import Home
from study.home.ledger import Ledger
from study.home.record import StudyRecord
from study.spec import load_study
from study.sweep.job_payload import MetricsReport, StartReport

trials, slots, begun, seconds = int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]), float(sys.argv[4])
ran = begun.with_name("ran")

def load(driver):
    if os.getpid() != driver:
        (begun / str(os.getpid())).touch()
        try:
            (begun / "first").open("x").close()
        except FileExistsError:
            time.sleep(3)
            (begun / "second").touch()
    return SlowToLoad(driver)

class SlowToLoad:  # but in the first process of trials
    def __init__(self, driver):
        self.driver = driver

    def __reduce__(self):
        return load, (self.driver,)

gate = SlowToLoad(os.getpid())

def job(config, **_):
    gate
    worker.report_start(0, StartReport(0, None, {"name": "cpu"}))
    (ran / str(os.getpid())).touch()
    time.sleep(seconds)
    number, patience = config["job"].trial, time.monotonic() + 300
    while number == 24 and not (begun / "second").exists():
        time.sleep(0.1)
    while number == trials - 1 and len(os.listdir(ran)) < 2 and time.monotonic() < patience:
        time.sleep(0.1)  # the second process has its data by now, and on a busy machine no trial yet
    worker.report_metrics(MetricsReport({"val/accuracy": 0.5}, 1))

own_ray.run_job_in_ray_worker = job
if slots > 2:
    driver.TrialSlots = lambda *_, **__: lambda: slots
    tune_adapters.PROCESS_REUSE_DELAY_S = 5.0
spec = load_study("quickstart", [
    "search.sampler=random", f"search.trials={trials}", "search.baseline=null", "search.confirm={top: 0}",
    "search.early_stopping={}", "train.epochs=1", "resources.cpu=" + str((os.cpu_count() or 1) / 2),
])
home = Home.locate()
folder = home.create_study(spec)
ledger = Ledger(folder.ledger_file)
handed, reset = [], TuneController._schedule_trial_reset
TuneController._schedule_trial_reset = lambda controller, trial, *rest: (
    handed.append(trial.config["job"].trial), reset(controller, trial, *rest)
)[1]
record = StudyRecord.load_without_closing(folder.ledger_file)
driver.drive_study(folder, spec, data.load_datasets(spec.trial_data_sections), ledger, record)
begun.with_name("handed").write_text(" ".join(map(str, handed)))
"""


def ran(folder: Path, trials: int, slots: int, seconds: float) -> list[Entry]:
    """A study of trials that take so many seconds, with room for two at once and `slots` handed out."""
    for name in ("begun", "ran"):
        (folder / name).mkdir()
    done = as_driver(
        SCRIPT, str(trials), str(slots), str(folder / "begun"), str(seconds), STUDY_HOME=str(folder / "home")
    )
    assert done.returncode == 0, done.stderr
    return list(read_entries(StudyFolder(folder / "home" / "quickstart").ledger_file))


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_process_that_is_starting_is_let_start_while_others_end_trials(tmp_path: Path) -> None:
    """Tune would hand the first waiting trial to whatever process comes free, and end the one started for it; where
    trials end more often than processes start, none but the first few would ever do anything.
    """
    events = ran(tmp_path, trials=40, slots=2, seconds=0.1)
    assert events[-1]["state"] == "complete"
    processes = {path.name for path in (tmp_path / "begun").iterdir()} - {"first", "second"}
    assert {event["node"].partition(":")[2] for event in events if event["event"] == "started"} == processes
    assert len(processes) == 2


@pytest.mark.long
@pytest.mark.timeout(600)
def test_trials_that_wait_for_room_are_not_overtaken_for_long(tmp_path: Path) -> None:
    """Where more are handed out than fit, as to a cluster that grows by itself: Tune gives a process that comes free to
    the newest trial, and those that wait would come last.
    """
    events = ran(tmp_path, trials=60, slots=4, seconds=0.5)
    assert sorted(event["trial"] for event in events if event["event"] == "started") == list(range(60))
    order = [int(number) for number in (tmp_path / "handed").read_text().split()]
    assert max(order.index(trial) for trial in (2, 3)) < 40, order
