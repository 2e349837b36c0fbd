"""What ASHA prunes in a search of few trials of `tpe`, and how often it keeps the best of them.

    python -m tests.benchmarks.frugal.pruned [--tables NAME ...] [--trials 7] [--repeats 40]

Two slots, the rules of `game.py`. Printed are, by first rung, reduction, and whether the papers' configurations come
first: the percent of the epochs that are not run, the share of repeats in which none of the trials that were pruned is
better at the end than what was chosen (by the seed that the search saw), and the regret by both seeds, in points.
"""

import argparse
from dataclasses import replace
from itertools import product

import numpy as np

from tests.benchmarks.frugal.__main__ import CURVES
from tests.benchmarks.frugal.game import play
from tests.benchmarks.frugal.methods import Make, papers_first, search
from tests.benchmarks.frugal.table import Table, recorded, without_baseline


def measured(table: Table, make: Make, trials: int, repeat: int) -> tuple[float, bool, float]:
    """Saved share of the epochs, whether the best was kept, and regret."""
    spec = replace(table.spec, search=table.spec.search.model_copy(update={"seed": repeat}))
    seed, full = repeat % len(table.seen), trials * table.epochs
    run, truth = play(table, make(spec), seed, 2, full, trials), table.truth(seed, "all")
    last, chosen = table.seen[seed][:, -1], run.trace[-1][1]
    return 1 - run.spent / full, bool(last[chosen] >= last[run.rows].max()), float(truth.max() - truth[chosen])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", nargs="+", default=["quickstart"])
    parser.add_argument("--trials", type=int, default=7)
    parser.add_argument("--repeats", type=int, default=40)
    given = parser.parse_args()
    print("| table | first trials | rung | reduction | saved | best kept | regret |\n|---|---|---|---|---|---|---|")
    for name, papers, grace, reduction in product(given.tables, (False, True), (8, 10, 12), (2, 3, 4)):
        table = without_baseline(recorded(CURVES / f"{name}.npz"))
        make = search("tpe", "asha", grace=grace, reduction=reduction)
        runs = [measured(table, papers_first(make) if papers else make, given.trials, n) for n in range(given.repeats)]
        saved, kept, regret = np.mean(runs, axis=0)
        first = "papers" if papers else "drawn"
        print(f"| {name} | {first} | {grace} | {reduction} | {100 * saved:.0f}% | {kept:.2f} | {100 * regret:.2f} |")


if __name__ == "__main__":
    main()
