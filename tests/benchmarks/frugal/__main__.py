"""All searches on all recorded tables.

    python -m tests.benchmarks.frugal OUT [--tables FILE.npz ...] [--methods NAME ...] [--repeats 100] [--slots 2 8]
        [--peers PEERS.json]

Plays every method on every table (`game.py` has the rules), writes what was chosen when to OUT/traces.json, and from it
OUT/frugal.md. What is in OUT/traces.json is not played again, so that a call goes on where another
was cut off, and adds tables or methods. `--peers` adds what other packages chose (`tests/benchmarks/peers`). Without
`--tables` those of tests/benchmarks/curves. One repeat takes 0.05 to 2 seconds of a core.
"""

import argparse
import json
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

from tests.benchmarks.frugal.game import play
from tests.benchmarks.frugal.methods import METHODS, TRIALS, Replayed
from tests.benchmarks.frugal.show import tables_text
from tests.benchmarks.frugal.table import Table, recorded, without_baseline

CHUNK = 2
"""Repeats of all methods before their next ones."""

CURVES = Path(__file__).parents[1] / "curves"


def played(table: Table, method: str, slots: int, repeat: int) -> dict[str, Any]:
    """The trace of one search without end, and what searches of `TRIALS` trials spent and chose."""
    make = METHODS[method]
    spec = replace(table.spec, search=table.spec.search.model_copy(update={"seed": repeat}))
    seed = repeat % len(table.seen)
    search = make(spec)
    endless, ending = play(table, search, seed, slots, table.budget), {}
    known = [table.params[row] for row in endless.rows]
    for trials in TRIALS:
        study = Replayed(search.spec, known) if trials <= len(known) else make(spec)
        run = play(table, study, seed, slots, trials * table.epochs, trials)
        ending[str(trials)] = [run.spent, run.trace[-1][1]]
    return {"trace": endless.trace, "studies": ending}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--tables", type=Path, nargs="+", default=sorted(CURVES.glob("*.npz")))
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--repeats", type=int, default=100)
    parser.add_argument("--slots", type=int, nargs="+", default=[2, 8])
    parser.add_argument("--peers", type=Path)
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    file = given.out / "traces.json"
    known: dict[str, list[dict[str, Any]]] = json.loads(file.read_text()) if file.exists() else {}
    tables = {path.stem: without_baseline(recorded(path)) for path in given.tables}
    for until in range(CHUNK, given.repeats + CHUNK, CHUNK):
        for slots, method, (name, table) in product(given.slots, given.methods, tables.items()):
            runs = known.setdefault(f"{name}|{method}|{slots}", [])
            runs += [played(table, method, slots, repeat) for repeat in range(len(runs), min(until, given.repeats))]
        file.write_text(json.dumps(known))
        print(f"{min(until, given.repeats)} repeats", flush=True)
    peers = json.loads(given.peers.read_text())["runs"] if given.peers else []
    for run in peers:
        if run["table"] in tables:
            name = f"{run['table']}|{run.get('label', run['method'])}|{run['slots']}"
            known[name] = [{"trace": trace, "studies": {}} for trace in run["traces"]]
    text = tables_text(tables, known)
    (given.out / "frugal.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
