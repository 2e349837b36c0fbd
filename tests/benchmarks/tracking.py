"""How fast a ledger gets into MLflow, and what that costs the driver's process.

    uv run python tests/benchmarks/tracking.py          1,000 one-report trials; 30 trials of 20; 300 of 10
    uv run python tests/benchmarks/tracking.py --follow 100 --rate 2    as many trials of 10 reports, as many a second

Each into the SQLite of a home and into a real `mlflow server` (one worker, SQLite). The whole ledger is there from the
start, so that the rate is the most that MLflow takes; a sweep of empty trials ends some 15 per second. `ms CPU` is what
this process computes per trial, which the driver of a sweep does with one hand: it holds Python's lock meanwhile.
`--follow` writes a ledger at the pace of a study beside the thread that follows it: how long the end waits for MLflow.
"""

import argparse
import math
import os
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from helpers import quickstart
from servers import MlflowServer
from tracked_study import PARAMS, SESSION

from study.home.events import EpochReported, SessionClosed, SessionOpened, TrialDecided, TrialEnded, TrialStarted
from study.home.folder import Home, StudyFolder
from study.home.ledger import Ledger
from study.spec import StudySpec
from study.tracking import MlflowTracker

METRICS = {"val/accuracy": 0.5} | {f"train/figure_{number}": 0.5 for number in range(14)}
SIZES = ((1000, 1), (30, 20), (300, 10))


def make(home: Home, spec: StudySpec, trials: int, reports: int) -> StudyFolder:
    """A complete study."""
    folder = home.create_study(spec)
    write(folder, trials, reports)
    return folder


def write(folder: StudyFolder, trials: int, reports: int, rate: float = math.inf) -> None:
    """The events of a complete study, with so many trials a second."""
    ledger, began = Ledger(folder.ledger_file), time.perf_counter()
    ledger.append(SessionOpened(**SESSION))
    for trial in range(trials):
        ledger.append(TrialDecided(trial=trial, stage="search", params=PARAMS, seed=0))
        ledger.append(TrialStarted(trial=trial, node="here"))
        for epoch in range(1, reports + 1):
            ledger.append(EpochReported(trial=trial, epoch=epoch, metrics=METRICS))
            time.sleep(max(0.0, began + (trial + epoch / reports) / rate - time.perf_counter()))
        ledger.append(TrialEnded(trial=trial, state="complete"))
    ledger.append(SessionClosed(state="complete"))
    ledger.close()


def follow(home: Home, trials: int, rate: float) -> str:
    """How long the end of a study waits, and what the process computes, ledger and all."""
    spec = quickstart("train.epochs=10", "search.early_stopping={}", "name=followed")
    folder = home.create_study(spec)
    tracker = MlflowTracker(home, folder, spec)
    tracker.start_following()
    tracker.has_lost_runs()  # MLflow is imported, and its database made
    busy = time.process_time()
    write(folder, trials, 10, rate)
    ended = time.perf_counter()
    problem = tracker.finish_writing()
    waited, busy = time.perf_counter() - ended, time.process_time() - busy
    return (
        f"{trials} trials of 10 reports, {rate:g} a second: waited {waited:.1f} s, {busy:.1f} s CPU; {problem or 'all'}"
    )


def measure(home: Home, where: str, trials: int, reports: int) -> str:
    """One row of the table."""
    from study.tracking.ledger_to_mlflow import LedgerToMlflowWriter

    spec = quickstart(f"train.epochs={reports}", "search.early_stopping={}", f"name=drain-{trials}-{reports}")
    folder = make(home, spec, trials, reports)
    began = time.perf_counter()
    writer = LedgerToMlflowWriter(home, folder, spec)
    connected, busy = time.perf_counter(), time.process_time()
    while writer.write_next_events():
        pass
    wall, busy = time.perf_counter() - connected, time.process_time() - busy
    return (
        f"{where:<8} {trials:>6} x {reports:<4} {trials / wall:>9.1f} {trials * reports / wall:>10.1f} "
        f"{1000 * busy / trials:>8.1f} {connected - began:>10.1f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=("sqlite", "server"))
    parser.add_argument("--follow", type=int, metavar="TRIALS")
    parser.add_argument("--rate", type=float, default=2.0, help="trials a second")
    given = parser.parse_args()
    only = given.only
    os.environ.pop("MLFLOW_TRACKING_URI", None)
    if given.follow:
        with tempfile.TemporaryDirectory() as path:
            print(follow(Home(Path(path) / "home"), given.follow, given.rate))
        return
    print(f"{'':<8} {'trials':>13} {'trials/s':>9} {'reports/s':>10} {'ms CPU':>8} {'connect, s':>10}")
    with tempfile.TemporaryDirectory() as path:
        if only != "server":
            for size in SIZES:
                print(measure(Home(Path(path) / "home"), "SQLite", *size), flush=True)
        if only != "sqlite":
            server = MlflowServer(Path(path), f"sqlite:///{path}/server.db")
            os.environ["MLFLOW_TRACKING_URI"] = server.uri
            try:
                for size in SIZES:
                    print(measure(Home(Path(path) / "other"), "server", *size), flush=True)
            finally:
                server.stop()


if __name__ == "__main__":
    main()
