"""How fast a ledger gets into MLflow, and what that costs the driver's process.

    uv run python tests/benchmarks/tracking.py          1,000 one-report trials; 30 trials of 20; 300 of 10

Each into the SQLite of a home and into a real `mlflow server` (one worker, SQLite). The whole ledger is there from the
start, so that the rate is the most that MLflow takes; a sweep of empty trials ends some 15 per second. `ms CPU` is what
this process computes per trial, which the driver of a sweep does with one hand: it holds Python's lock meanwhile.
"""

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from helpers import quickstart
from servers import MlflowServer
from tracked_study import PARAMS, SESSION

from study.home.events import Closed, Decided, Ended, Opened, Report, Started
from study.home.folder import Home, StudyFolder
from study.home.ledger import Ledger
from study.spec import StudySpec

METRICS = {"val/accuracy": 0.5} | {f"train/figure_{number}": 0.5 for number in range(14)}
SIZES = ((1000, 1), (30, 20), (300, 10))


def make(home: Home, spec: StudySpec, trials: int, reports: int) -> StudyFolder:
    """A complete study."""
    folder = home.create(spec)
    ledger = Ledger(folder.ledger_file)
    ledger.append(Opened(**SESSION))
    for trial in range(trials):
        ledger.append(Decided(trial=trial, stage="search", params=PARAMS, seed=0))
        ledger.append(Started(trial=trial, node="here"))
        for epoch in range(1, reports + 1):
            ledger.append(Report(trial=trial, epoch=epoch, metrics=METRICS))
        ledger.append(Ended(trial=trial, state="complete"))
    ledger.append(Closed(state="complete"))
    ledger.close()
    return folder


def measure(home: Home, where: str, trials: int, reports: int) -> str:
    """One row of the table."""
    from study.tracking.writer import Writer

    spec = quickstart(f"train.epochs={reports}", "search.early_stopping={}", f"name=drain-{trials}-{reports}")
    folder = make(home, spec, trials, reports)
    began = time.perf_counter()
    writer = Writer(home, folder, spec)
    connected, busy = time.perf_counter(), time.process_time()
    while writer.write_new():
        pass
    wall, busy = time.perf_counter() - connected, time.process_time() - busy
    return (
        f"{where:<8} {trials:>6} x {reports:<4} {trials / wall:>9.1f} {trials * reports / wall:>10.1f} "
        f"{1000 * busy / trials:>8.1f} {connected - began:>10.1f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=("sqlite", "server"))
    only = parser.parse_args().only
    os.environ.pop("MLFLOW_TRACKING_URI", None)
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
