"""How long `study run` takes to its first trial, its first report, the end of its search and its own end.

    uv run python tests/benchmarks/start.py [STUDY] [--runs 5] [--against DIR] [--set KEY=VALUE ...] [--json]

Each run has a fresh home and data that were prepared before; the bytecode is compiled first. `--against` is another
checkout with a `.venv` of its own: the two run in turn. Seconds are from the command on, by the ledger's time stamps;
`cpu` are those of the processor that the command and all of its processes used.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parents[2]

FIGURES = {
    "first trial": "the first trial runs",
    "first report": "its first epoch is over",
    "search over": "the last trial is",
    "whole": "the command has ended",
    "cpu": "seconds of the processor",
}


def compile_bytecode(checkout: Path) -> None:
    """Of the checkout and of the libraries in its environment."""
    python = checkout / ".venv" / "bin" / "python"
    libraries = next((checkout / ".venv" / "lib").glob("python*/site-packages"))
    command = [str(python), "-m", "compileall", "-q", "-j", "0", str(checkout / "study"), str(libraries)]
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)


def run(checkout: Path, study: str, assignments: list[str], data: Path) -> dict[str, float]:
    """The figures of one run."""
    given = [word for one in assignments for word in ("--set", one)]
    with tempfile.TemporaryDirectory() as home:
        environment = {name: value for name, value in os.environ.items() if name != "MLFLOW_TRACKING_URI"}
        environment |= {"STUDY_HOME": home, "STUDY_DATA": str(data)}
        command = [str(checkout / ".venv" / "bin" / "study"), "run", study, "--quiet", *given]
        before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.time()
        done = subprocess.run(command, env=environment, cwd=home, capture_output=True, text=True, check=False)
        whole, after = time.time() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
        if done.returncode:
            raise SystemExit(f"{checkout}: {done.stdout[-2000:]}\n{done.stderr[-2000:]}")
        [ledger] = Path(home).glob("*/ledger.jsonl")
        events = [json.loads(line) for line in ledger.read_text(encoding="utf-8").splitlines()]
    times = {name: [event["time"] - began for event in events if event["event"] == name] for name in KINDS}
    return {
        "first trial": times["started"][0],
        "first report": times["report"][0],
        "search over": times["closed"][-1],
        "whole": whole,
        "cpu": after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime,
    }


KINDS = ("started", "report", "closed")


def table(results: dict[str, list[dict[str, float]]]) -> str:
    """Median and range of each figure."""
    lines = [f"{'seconds':<32}" + "".join(f"{name:>26}" for name in FIGURES)]
    for name, runs in results.items():
        cells = []
        for figure in FIGURES:
            values = sorted(figures[figure] for figures in runs)
            cells.append(f"{statistics.median(values):.1f} ({values[0]:.1f} to {values[-1]:.1f})")
        lines.append(f"{name[-31:]:<32}" + "".join(f"{cell:>26}" for cell in cells))
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("study", nargs="?", default="quickstart")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--against", type=Path, help="another checkout, with an environment of its own")
    parser.add_argument("--set", dest="assignments", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    checkouts = [HERE] + ([given.against.resolve()] if given.against else [])
    for checkout in checkouts:
        compile_bytecode(checkout)
    results: dict[str, list[dict[str, float]]] = {str(checkout): [] for checkout in checkouts}
    with tempfile.TemporaryDirectory() as data:
        run(checkouts[0], given.study, ["search.trials=1", "search.confirm={top: 0}", *given.assignments], Path(data))
        for _ in range(given.runs):
            for checkout in checkouts:
                results[str(checkout)].append(run(checkout, given.study, given.assignments, Path(data)))
                load = os.getloadavg()[0]
                print(f"{checkout}: {results[str(checkout)][-1]}, load {load:.1f}", file=sys.stderr, flush=True)
    print(json.dumps(results) if given.json else table(results))


if __name__ == "__main__":
    main()
