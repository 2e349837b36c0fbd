"""Every interval, claim and sentence that the software prints, against simulated studies whose truth is known.

    python tests/benchmarks/statements.py [--only NAME ...] [--draws N] [--json FILE]

Each module of `simulations` draws studies with a known truth, asks the software's own functions what they say of them,
and counts how often that is right. The tables are in results/statistics.md. `--draws` is the number of
simulated studies a row (default 2,000); a module may take fewer where one is slow, and says so in its rows. Ends with
status 1 if a promise is not kept.
"""

import argparse
import importlib
import json
import pkgutil
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import simulations
from simulations.row import Row

NAMES = sorted(module.name for module in pkgutil.iter_modules(simulations.__path__) if module.name != "row")
HEADER = "| statement | where | simulated truth | promised | found | simulations |"


def rows(names: list[str], draws: int) -> Iterator[Row]:
    """The rows of these modules, in order."""
    for name in names:
        yield from importlib.import_module(f"simulations.{name}").rows(draws)


def printed(row: Row) -> str:
    """A row in Markdown."""
    found = f"{100 * row.found:.1f}%" if row.draws else f"{row.found:.3g}"
    kept = "" if row.holds else " **not kept**"
    cells = (row.statement, row.where, row.truth, row.nominal, found + kept, f"{row.draws:,}" if row.draws else "-")
    return f"| {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=NAMES, default=NAMES)
    parser.add_argument("--draws", type=int, default=2000)
    parser.add_argument("--json", type=Path)
    chosen = parser.parse_args()
    print(f"{HEADER}\n|---|---|---|---|---|---|")
    found = []
    for row in rows(chosen.only, chosen.draws):
        print(printed(row), flush=True)
        found.append(row)
    if chosen.json:
        chosen.json.write_text("".join(f"{json.dumps(asdict(row))}\n" for row in found))
    sys.exit(0 if all(row.holds for row in found) else 1)


if __name__ == "__main__":
    main()
