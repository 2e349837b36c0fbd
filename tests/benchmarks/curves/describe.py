"""What recorded curves look like: how early an order can be trusted, what a seed changes, what a winner is worth.

    python tests/benchmarks/curves/describe.py [NAME or FILE.npz ...]

Three tables in Markdown, of the study's metric on validation, each seed once the search's and once the fresh one:

* Order: the rank correlation of the values at an epoch on one seed with the last ones on another, at the first epochs,
  at quarters of the full length, and at the end; the epoch from which on the order can be trusted, with its interval
  (`early_order`), beside the study file's `grace`; and the number whose rank correlation
  with the value changes most between `grace` and the end.
* Seeds: the correlation of two seeds at the end, and standard deviations in points: of the seeds' means (a shift that
  all configurations share), of the configurations' means, and of what is left.
* Winners: the best configuration of one seed, there, on the fresh seed, and on the fresh seed's test split, beside the
  best and the mean of the fresh seed; and how many points the fresh seed's value loses if only the best 1/`reduction`
  at an epoch are trained on, at the file's `grace` and at the advised one.
"""

import argparse
from collections.abc import Iterator, Sequence
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from early_order import LEVEL, EarlyOrder, early_order
from numpy.typing import NDArray
from scipy.stats import spearmanr
from tables import Table, recorded

Floats = NDArray[np.float64]


def whole(table: Table) -> tuple[Floats, Floats]:
    """Validation and test curves of the configurations that no seed saw diverge, larger is better."""
    name = table.metrics[0]
    val, test = table.of(name), table.of(f"test/{name.partition('/')[2]}")
    there = np.isfinite(val[..., -1]).all(0)
    return val[:, there], test[:, there]


def moments(epochs: int) -> list[int]:
    """Epochs of the table of orders: the first ones, quarters, the last."""
    return sorted({1, 2, 4, epochs // 4, epochs // 2, 3 * epochs // 4, epochs})


def turning(table: Table, epoch: int) -> str:
    """The number, of those that most configurations have, whose rank correlation with the value changes most between an
    epoch and the end."""
    values, found = table.of(table.metrics[0]).mean(0), {}
    for key in sorted({key for params in table.rows for key in params}):
        has = np.array([isinstance(params.get(key), float) for params in table.rows]) & np.isfinite(values[:, -1])
        if has.mean() > 0.5:
            knob = [table.rows[place][key] for place in np.flatnonzero(has)]
            found[key] = tuple(spearmanr(knob, values[has, at - 1]).statistic for at in (epoch, values.shape[1]))
    if not found:
        return ""
    key = max(found, key=lambda key: abs(found[key][1] - found[key][0]))
    return f"{key.partition('.')[2]}: {found[key][0]:+.2f} to {found[key][1]:+.2f}"


def order_row(found: EarlyOrder, early_stopping: dict[str, Any]) -> list[str]:
    of = moments(len(found.correlations))
    by_epoch = ", ".join(f"{epoch}: {found.correlations[epoch - 1]:+.2f}" for epoch in of)
    advised = "none" if found.epoch is None else f"{found.epoch} ({found.earliest} to {found.latest or 'never'})"
    return [f"{found.configurations}", by_epoch, advised, str(early_stopping.get("grace", "none"))]


def seeds_row(val: Floats) -> list[str]:
    """The correlation, then the two-way layout's standard deviations, in points."""
    last = 100 * val[..., -1]
    seeds, count = last.shape
    mean = np.mean([np.corrcoef(last[one], last[other])[0, 1] for one, other in permutations(range(seeds), 2)])
    of_seeds, of_configurations = last.mean(1, keepdims=True), last.mean(0, keepdims=True)
    rest = last - of_seeds - of_configurations + last.mean()
    left = np.sqrt((rest**2).sum() / ((seeds - 1) * (count - 1)))
    return [f"{mean:+.2f}", *(f"{value:.1f}" for value in (of_seeds.std(ddof=1), of_configurations.std(ddof=1), left))]


def lost(val: Floats, epoch: int, reduction: float) -> float:
    """What the winner is worth less on the fresh seed, in points, where only the best 1/`reduction` at an epoch go on;
    the mean over pairs of seeds."""
    found = []
    for one, other in permutations(range(len(val)), 2):
        cut = np.percentile(val[one, :, epoch - 1], 100 - 100 / reduction)
        ends = np.where(val[one, :, epoch - 1] >= cut, val[one, :, -1], -np.inf)
        found.append(val[other, val[one, :, -1].argmax(), -1] - val[other, ends.argmax(), -1])
    return 100 * float(np.mean(found))


def winners_row(val: Floats, test: Floats, found: EarlyOrder, early_stopping: dict[str, Any]) -> list[str]:
    rows = []
    for one, other in permutations(range(len(val)), 2):
        best = val[one, :, -1].argmax()
        fresh = val[other, :, -1]
        rows.append((val[one, best, -1], fresh[best], fresh.max(), fresh.mean(), test[other, best, -1]))
    grace, reduction = early_stopping.get("grace", 1), early_stopping.get("reduction", 3)
    at = [f"{lost(val, epoch, reduction):.1f}" if epoch else "" for epoch in (grace, found.epoch)]
    return [*(f"{100 * value:.1f}" for value in np.mean(rows, axis=0)), *at]


def printed(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(heads)} |"
    yield f"|{'---|' * len(heads)}"
    yield from (f"| {' | '.join(row)} |" for row in rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", nargs="*", default=list(recorded()), help=", ".join(recorded()))
    parser.add_argument("--level", type=float, default=LEVEL, help="of the advice, see `early_order`")
    given = parser.parse_args()
    orders, seeds, winners = [], [], []
    for name in given.tables:
        table = Table.load(recorded().get(name, Path(name)))
        rule = yaml.safe_load(table.study)["search"]["early_stopping"]
        val, test = whole(table)
        found = early_order(val, given.level)
        if found is None:
            continue
        title = Path(name).stem
        orders.append([title, *order_row(found, rule), turning(table, rule.get("grace", 1))])
        seeds.append([title, *seeds_row(val)])
        winners.append([title, *winners_row(val, test, found, rule)])
    told = [
        "table",
        "configurations",
        "rank correlation with the end, by epoch",
        "trusted from epoch",
        "grace in the file",
        "number that turns most",
    ]
    print(*printed(told, orders), "", sep="\n")
    print(
        *printed(["table", "correlation of two seeds", "sd of seeds", "sd of configurations", "sd left"], seeds),
        sep="\n",
    )
    values = [
        "winner, its seed",
        "fresh seed",
        "best of the fresh seed",
        "mean of the fresh seed",
        "winner's test, fresh",
    ]
    print("", *printed(["table", *values, "lost at the file's grace", "lost as advised"], winners), sep="\n")


if __name__ == "__main__":
    main()
