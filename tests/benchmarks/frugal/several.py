"""Searches of two metrics, accuracy and equalized odds, on the recorded tables: how soon the trade-off is found.

    python -m tests.benchmarks.frugal.several [--tables FILE.npz ...] [--repeats 20]

The rules are those of `game.py`: two slots, a proposal becomes the nearest configuration that was not begun, a budget
of 24 full runs. A search sees one seed. At a part of the budget it has found the trade-off of its complete trials,
those than which no other is better; its worth is the area (hypervolume) that these have by the mean over both seeds, as
a part of that of the whole table's own trade-off. The area begins at the table's worst accuracy and worst gap. Printed
is the mean over repeats of what is missing, in percent, and the mean rank over the tables.
"""

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from scipy.stats import rankdata

from study.spec import StudySpec
from study.spec.load import spec_of_resolved
from study.spec.objective import TrialScore
from study.spec.yaml_document import parse_study_yaml
from tests.benchmarks.frugal.__main__ import CURVES
from tests.benchmarks.frugal.game import following
from tests.benchmarks.frugal.methods import Production, search
from tests.benchmarks.frugal.table import Array, Table, recorded, without_baseline

SHARES = (0.1, 0.25, 0.5, 1.0)
METRICS = ("val/accuracy", "val/equalized_odds")
SIGNS = np.array([1.0, -1.0])
METHODS = {"random": search("random"), "tpe": search("tpe")}


def both(path: Path) -> tuple[Table, Array]:
    """A table whose study searches for both metrics, and their gains: (seeds, configurations, epochs, 2)."""
    table = without_baseline(recorded(path))
    with np.load(path) as file:
        names = [str(name) for name in file["metrics"]]
        values = file["values"].astype(float)[..., [names.index(name) for name in METRICS]]
    search_ = table.spec.search.model_copy(update={"metric": list(METRICS), "trials": 24, "sampler": "random"})
    document = parse_study_yaml(replace(table.spec, search=search_).to_yaml(), str(path))
    return replace(table, spec=spec_of_resolved(document)), np.nan_to_num(SIGNS * values, nan=-1.0)


def area(gains: Array, worst: Array) -> float:
    """That is dominated by these, from the worst on."""
    found, least = 0.0, worst[1]
    for accuracy, gap in gains[np.lexsort((gains[:, 1], gains[:, 0]))[::-1]]:
        if gap > least:
            found, least = found + max(0.0, accuracy - worst[0]) * (gap - least), gap
    return found


def front(gains: Array) -> list[int]:
    """Those than which no other is better."""
    better = (gains[:, None] >= gains[None]).all(2) & (gains[:, None] > gains[None]).any(2)
    return [int(place) for place in np.flatnonzero(~better.any(0))]


def play(table: Table, method: Production, gains: Array, budget: int) -> list[tuple[int, int]]:
    """Which configurations ran in full, each with the epochs spent by then."""
    begun, rows, epochs = np.zeros(len(gains), dtype=bool), list[int](), list[int]()
    busy: list[int | None] = [None, None]
    full, spent = list[tuple[int, int]](), 0
    while spent < budget:
        for slot, trial in enumerate(busy):
            busy[slot] = following(table, method, rows, begun, epochs, len(gains)) if trial is None else trial
        if all(trial is None for trial in busy):
            break
        for slot, trial in enumerate(busy):
            if trial is None or spent == budget:
                continue
            epochs[trial] += 1
            spent += 1
            gain = gains[rows[trial], epochs[trial] - 1]
            if epochs[trial] == table.epochs:
                full.append((spent, rows[trial]))
            score = TrialScore(tuple((SIGNS * gain).tolist()), tuple(gain.tolist()))
            if method.hear(trial, epochs[trial], score) != "on":
                busy[slot] = None
    return full


def missing(full: Sequence[tuple[int, int]], seen: Array, truth: Array, at: int) -> float:
    """Percent of the table's area that the trade-off of what ran in full by then lacks."""
    worst = truth.min(0)
    rows = [row for spent, row in full if spent <= at]
    own = area(truth[[rows[place] for place in front(seen[rows])]], worst) if rows else 0.0
    return 100 * (1 - own / area(truth, worst))


def begun(spec: StudySpec, repeat: int) -> StudySpec:
    return replace(spec, search=spec.search.model_copy(update={"seed": repeat}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=Path, nargs="+", default=sorted(CURVES.glob("*.npz")))
    parser.add_argument("--repeats", type=int, default=20)
    given = parser.parse_args()
    results = np.zeros((len(given.tables), len(METHODS), len(SHARES)))
    for place, path in enumerate(given.tables):
        table, gains = both(path)
        truth = gains[:, :, -1].mean(0)
        for row, make in enumerate(METHODS.values()):
            for repeat in range(given.repeats):
                seen = gains[repeat % len(gains)]
                full = play(table, make(begun(table.spec, repeat)), seen, table.budget)
                lacks = [missing(full, seen[:, -1], truth, int(share * table.budget)) for share in SHARES]
                results[place, row] += np.array(lacks) / given.repeats
        cells = ", ".join(f"{name} {results[place, row, 2]:.1f}" for row, name in enumerate(METHODS))
        print(f"{table.name}, half of the budget: {cells}", flush=True)
    ranks = np.array([[rankdata(results[place, :, at]) for at in range(len(SHARES))] for place in range(len(results))])
    print("\n| method | 10% | 25% | 50% | 100% | rank 10% | rank 25% | rank 50% | rank 100% |")
    print("|---|" + "---|" * 8)
    for row, name in enumerate(METHODS):
        figures = [f"{value:.1f}" for value in (*results.mean(0)[row], *ranks.mean(0)[:, row])]
        print(f"| {name} | {' | '.join(figures)} |")


if __name__ == "__main__":
    main()
