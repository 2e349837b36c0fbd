"""What stacks do for a whole study: trial-epochs per second, wall time and the processor's, of several sizes in turn.

    uv run python tests/benchmarks/stacked_sweep.py [STUDY] [--stack none 8 auto] [--runs 3] [--set KEY=VALUE] [--json]

Each run has a fresh home and data that were prepared before. An epoch's cost is that of the processes that train, from
the first epoch on: `wall` between the first start of a trial and the last epoch of the last, `cpu` what these processes
took of the processor in that time. Other programs on the machine slow `wall` down, and `cpu` hardly. The sizes run in
turn, so that what else the machine does meets all of them.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from study.home.ledger import Event, read

HERE = Path(__file__).resolve().parents[2]
TICKS = os.sysconf("SC_CLK_TCK")
LOOK = 0.2


def cpu(pid: int) -> float | None:
    """Seconds of the processor that a process has taken; None: it is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()
    except (OSError, IndexError):
        return None
    return (int(fields[11]) + int(fields[12])) / TICKS


def run(study: str, stack: str, given: list[str], data: Path) -> dict[str, Any]:
    """The figures of one run."""
    assignments = [word for one in [*given, f"resources.stack={stack}"] for word in ("--set", one)]
    with tempfile.TemporaryDirectory() as home:
        environment = {name: value for name, value in os.environ.items() if name != "MLFLOW_TRACKING_URI"}
        environment |= {"STUDY_HOME": home, "STUDY_DATA": str(data)}
        command = [sys.executable, "-m", "study", "run", study, "--quiet", *assignments]
        began = time.time()
        process = subprocess.Popen(command, env=environment, cwd=HERE, stdout=subprocess.DEVNULL)
        first: dict[int, float] = {}
        last: dict[int, float] = {}
        events: list[Event] = []
        while process.poll() is None:
            time.sleep(LOOK)
            for ledger in Path(home).glob("*/ledger.jsonl"):
                events = read(ledger)
            for pid in {int(event["node"].split(":")[1]) for event in events if event["event"] == "started"}:
                if (now := cpu(pid)) is not None:
                    first.setdefault(pid, now)
                    last[pid] = now
        whole = time.time() - began
        if process.returncode:
            raise SystemExit(f"{study} with stack {stack} ended with {process.returncode}")
        [ledger] = Path(home).glob("*/ledger.jsonl")
        events = read(ledger)
    reports = [event["time"] for event in events if event["event"] == "report"]
    started = min(event["time"] for event in events if event["event"] == "started")
    taken = sum(last.values()) - sum(first.values())
    return {
        "epochs": len(reports),
        "trials": sum(event["event"] == "trial" for event in events),
        "epochs_per_second": len(reports) / (max(reports) - started),
        "cpu_per_epoch": taken / len(reports),
        "whole": whole,
        "found": [event["trials"] for event in events if event["event"] == "stacked"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("study", nargs="?", default="quickstart")
    parser.add_argument("--stack", nargs="+", default=["none", "8"])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("STUDY_DATA", tempfile.gettempdir())))
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    found: dict[str, list[dict[str, Any]]] = {stack: [] for stack in asked.stack}
    for _ in range(asked.runs):
        for stack in asked.stack:
            found[stack].append(run(asked.study, stack, asked.set, asked.data))
            print(stack, json.dumps(found[stack][-1]), file=sys.stderr, flush=True)
    if asked.json:
        print(json.dumps(found))
        return
    print(f"{'stack':8}{'trials':>8}{'epochs':>8}{'epochs/s':>10}{'CPU s/epoch':>13}{'whole s':>9}")
    for stack, runs in found.items():
        middle = {name: statistics.median(one[name] for one in runs) for name in runs[0] if name != "found"}
        print(
            f"{stack:8}{middle['trials']:8.0f}{middle['epochs']:8.0f}{middle['epochs_per_second']:10.2f}"
            f"{middle['cpu_per_epoch']:13.3f}{middle['whole']:9.0f}"
        )


if __name__ == "__main__":
    main()
