"""Other packages' searches on tables of recorded curves, each through its own package, all under one set of rules.

    P="python tests/benchmarks/peers"
    uv run --no-project --with pyyaml --with optuna==5.0.0 $P play --methods optuna-tpe-hyperband -o FOLDER
    uv run --no-project --with pyyaml --with optuna==5.0.0 $P list       # all methods, and what to get for each
    uv run --no-project --with pyyaml --with numpy $P collect FOLDER -o peers.json [--short]
    uv run --no-project --with pyyaml --with numpy $P show peers.json

A package is got for the run alone and is no part of this project. `--curves FOLDER` before the command adds the tables
that `tests/benchmarks/curves` recorded to those of `selection_curves.npz`. The rules are in `game.py`: a budget of 24
full trials, 2 and 8 slots, one seed seen, worth by the others. `results.json` is what `collect --short` made.

Each package runs with its defaults but for what `list` prints. Where a package has a smallest budget, it is played with
one epoch and, as `-grace`, with this project's. Seconds of CPU for a repeat: random search none, Syne Tune's
ASHA 0.01, Optuna 0.03 to 0.2, NePS 0.2 to 0.8, BOHB 0.5 to 1.3, SMAC3 1 to 7 (`seconds` in `results.json`); MOBSTER 57.
"""

import argparse
import json
import time
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
from curve_table import Table, tables
from game import TRIALS, first, play, regrets, until
from roster import FAILED, PEERS

PARTS = (0.1, 0.25, 0.5, 1.0)


def play_cell(table: Table, name: str, slots: int, repeats: int, seconds: float) -> dict[str, Any]:
    """A method on a table, as the JSON form has it: as many repeats as fit into the seconds of CPU, three at least."""
    PEERS[name].make(table, 0)  # what a package loads is not counted
    budget, begun, traces, idle = TRIALS * table.epochs, time.process_time(), [], []
    for repeat in range(repeats):
        method = PEERS[name].make(table, repeat)
        played = play(table, method, repeat % len(table.val), slots, budget)
        traces.append(played.trace)
        idle.append(played.idle)
        if time.process_time() - begun > seconds and repeat >= 2:
            break
    spent = (time.process_time() - begun) / len(traces)
    return {
        "table": table.name,
        "rows": len(table.params),
        "method": name,
        "label": PEERS[name].label,
        "settings": PEERS[name].settings,
        "package": PEERS[name].package,
        "slots": slots,
        "budget": budget,
        "seconds": round(spent, 3),
        "idle": round(float(np.mean(idle)), 4),
        "traces": traces,
    }


def versions() -> dict[str, str]:
    """Of the packages that are here."""
    wanted = ("numpy", "optuna", "neural-pipeline-search", "syne-tune", "smac", "ConfigSpace", "torch", "botorch")
    found = {}
    for name in wanted:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def play_all(given: argparse.Namespace) -> None:
    held = tables(given.curves)
    given.output.mkdir(parents=True, exist_ok=True)
    for name in given.tables or held:
        for method in given.methods:
            for slots in given.slots:
                file = given.output / f"{name}.{len(held[name].params)}.{method}.{slots}.json"
                if file.exists() and not given.again:
                    continue
                run = play_cell(held[name], method, slots, given.repeats, given.seconds)
                file.write_text(json.dumps({"versions": versions(), "run": run}))
                repeats, told = len(run["traces"]), summary(held[name], run)["others"]
                print(f"{name:18} {method:34} {slots} slots {repeats:4} x {run['seconds']:7.2f} s ", end="")
                print(
                    f"until {told['until']:6.1f}  regret", " ".join(f"{one:5.2f}" for one in told["regret"]), flush=True
                )


def summary(table: Table, run: dict[str, Any]) -> dict[str, Any]:
    """What a run says: epochs until within a point, and regret at parts of the budget, over repeats.

    Worth is validation on the seeds that the search did not see; under `test` test on these seeds; under `all`
    validation on all seeds.
    """
    seeds, found = len(table.val), {"repeats": len(run["traces"])}
    at = [max(1, round(part * run["budget"])) - 1 for part in PARTS]
    whole = table.val[:, :, -1].mean(0)
    worths = {
        "others": [table.others(table.val, seed) for seed in range(seeds)],
        "test": [table.others(table.test, seed) for seed in range(seeds)],
        "all": [whole] * seeds,
    }
    for name, worth in worths.items():
        traces = enumerate(run["traces"])
        curves = np.array([regrets(trace, worth[repeat % seeds], run["budget"]) for repeat, trace in traces])
        reached = [until(curve) for curve in curves]
        found[name] = {
            "until": round(float(np.mean(reached)), 1),
            "until_error": round(float(np.std(reached, ddof=1) / len(reached) ** 0.5), 1) if len(reached) > 1 else None,
            "until_median": float(np.median(reached)),
            "first": round(float(np.mean([first(curve) for curve in curves])), 1),
            "mean_until": until(curves.mean(0)),
            "regret": curves[:, at].mean(0).round(3).tolist(),
            "regret_median": np.median(curves[:, at], axis=0).round(3).tolist(),
            "regret_band": np.percentile(curves[:, at], (5, 95), axis=0).T.round(3).tolist(),
        }
    return found


def collect(given: argparse.Namespace) -> None:
    """Make one file of a folder of runs, a line for each run.

    A larger table begins with the rows of the smaller: what was played before it grew is of its first rows.
    """
    held = tables(given.curves)
    found: dict[str, Any] = {"form": 1, "budget_trials": TRIALS, "failed": FAILED, "versions": {}}
    lines = []
    for file in sorted(given.folder.glob("*.json")):
        cell = json.loads(file.read_text())
        run, found["versions"] = cell["run"], found["versions"] | cell["versions"]
        table = held[run["table"]].first(run["rows"])
        run["table"] = table.name
        run["summary"] = summary(table, run)
        if given.short:
            del run["traces"]
        lines.append(json.dumps(run))
    head = json.dumps(found, indent=1)[:-2]
    given.output.write_text(f'{head},\n "runs": [\n' + ",\n".join(lines) + "\n]}\n")


def show(given: argparse.Namespace) -> None:
    """Print the table of each number of slots, and the methods' means over the tables that all have played."""
    runs = json.loads(given.file.read_text())["runs"]
    for slots in sorted({run["slots"] for run in runs}):
        chosen = [run for run in runs if run["slots"] == slots]
        chosen.sort(key=lambda run: (run["table"], run["summary"][given.worth]["until"]))
        print(f"\n{slots} slots\n\n| table | method | repeats | epochs until 1 point | ", end="")
        print("regret at 10% | 25% | 50% | 100% |\n" + "|---" * 8 + "|")
        for run in chosen:
            told = run["summary"][given.worth]
            cells = [run["table"], run["label"], run["summary"]["repeats"]]
            error = "" if told["until_error"] is None else f" ± {told['until_error']:.0f}"
            cells += [f"{told['until']:.0f}{error}", *(f"{one:.2f}" for one in told["regret"])]
            print(f"| {' | '.join(map(str, cells))} |")


def print_list(given: argparse.Namespace) -> None:
    for name, peer in PEERS.items():
        print(f"{name:30} {peer.package or 'no package':34} {peer.label}; {peer.settings}")
    for name, reason in FAILED.items():
        print(f"not played: {name}: {reason}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--curves", type=Path, help="a folder with recorded tables (.npz)")
    commands = parser.add_subparsers(required=True)
    one = commands.add_parser("play")
    one.add_argument("--methods", nargs="+", choices=PEERS, required=True)
    one.add_argument("--tables", nargs="+")
    one.add_argument("--slots", nargs="+", type=int, default=[2, 8])
    one.add_argument("--repeats", type=int, default=200)
    one.add_argument("--seconds", type=float, default=120.0, help="CPU of a method on a table")
    one.add_argument("--again", action="store_true", help="also what is in the folder")
    one.add_argument("-o", "--output", type=Path, required=True)
    one.set_defaults(call=play_all)
    commands.add_parser("list").set_defaults(call=print_list)
    two = commands.add_parser("collect")
    two.add_argument("folder", type=Path)
    two.add_argument("--short", action="store_true", help="without the traces")
    two.add_argument("-o", "--output", type=Path, required=True)
    two.set_defaults(call=collect)
    three = commands.add_parser("show")
    three.add_argument("file", type=Path)
    three.add_argument("--worth", choices=("others", "test", "all"), default="others")
    three.set_defaults(call=show)
    given = parser.parse_args()
    given.call(given)


if __name__ == "__main__":
    main()
