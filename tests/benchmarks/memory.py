"""What a driver keeps in memory for each trial of a study: its size after the first trials, and after many.

    uv run python tests/benchmarks/memory.py                        2,000 trials of one report, tracked on SQLite
    uv run python tests/benchmarks/memory.py --reports 10           of ten reports
    uv run python tests/benchmarks/memory.py --trials 500 --trace   and which lines of code took what is kept

Trials do nothing but report, see `overhead.py`. What is printed, as JSON, is the driver's own memory (what it shares
with other processes, as the object store, does not count) in MB after each fifth of the trials, and what a trial of the
last four fifths added in kB. `--trace` costs memory and time of its own.
"""

import argparse
import gc
import json
import os
import tempfile
import tracemalloc
from pathlib import Path
from typing import Any

import overhead
import psutil
from ray import cloudpickle


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=2000)
    parser.add_argument("--reports", type=int, default=1)
    parser.add_argument("--trace", action="store_true")
    given = parser.parse_args()
    cloudpickle.register_pickle_by_value(overhead)  # trials run where this folder is not
    sizes: dict[int, float] = {}
    traces: list[tracemalloc.Snapshot] = []
    fifth = given.trials // 5

    def note(ended: int) -> None:
        if ended % fifth == 0:
            gc.collect()
            memory = psutil.Process().memory_info()
            sizes[ended] = (memory.rss - memory.shared) / 1e6
            traces.extend([tracemalloc.take_snapshot()] if given.trace else [])

    count_ends(note)
    if given.trace:
        tracemalloc.start(8)
    with tempfile.TemporaryDirectory() as home:
        os.environ |= {"STUDY_HOME": home, "MLFLOW_DISABLE_TELEMETRY": "true"}
        os.environ.pop("MLFLOW_TRACKING_URI", None)
        overhead.study(given.trials, given.reports, 0.0, "own", 0, parts=False)
    grown = (sizes[5 * fifth] - sizes[fifth]) * 1000 / (4 * fifth)
    print(json.dumps({"MB": {ended: round(size, 1) for ended, size in sizes.items()}, "kB per trial": round(grown, 1)}))
    if given.trace:
        print_growth(traces[0], traces[-1], 4 * fifth)


def count_ends(note: Any) -> None:
    """Have `note` called with the number of trials that have ended, at each end."""
    from study.home.events import Event, TrialEnded
    from study.home.ledger import Ledger

    append, ended = Ledger.append, 0

    def noting(self: Ledger, event: Event) -> Any:
        nonlocal ended
        entry = append(self, event)
        if isinstance(event, TrialEnded):
            ended += 1
            note(ended)
        return entry

    Ledger.append = noting  # type: ignore[method-assign]


def print_growth(before: tracemalloc.Snapshot, after: tracemalloc.Snapshot, trials: int) -> None:
    """The places that took most of what was added."""
    differences = after.compare_to(before, "lineno")
    total = sum(one.size_diff for one in differences) / trials
    print(f"{total / 1000:.1f} kB per trial in Python objects")
    for one in differences[:40]:
        place = "/".join(Path(one.traceback[0].filename).parts[-4:])
        print(f"{one.size_diff / trials:9.0f} B {one.count_diff / trials:8.2f}  {place}:{one.traceback[0].lineno}")
    for one in after.compare_to(before, "traceback")[:12]:
        print(f"\n{one.size_diff / trials:9.0f} B", *one.traceback.format(), sep="\n")


if __name__ == "__main__":
    main()
