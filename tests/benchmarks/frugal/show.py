"""What the traces of searches come to: ratios to early ASHA, regret and ranks."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.stats import rankdata

from tests.benchmarks.frugal.game import Run, for_good, regret
from tests.benchmarks.frugal.methods import EARLY, METHODS, TRIALS
from tests.benchmarks.frugal.table import Array, Table

SHARES = (0.1, 0.25, 0.5, 1.0)
Known = Mapping[str, Sequence[Mapping[str, Any]]]


def found(table: Table, runs: Sequence[Mapping[str, Any]], by: str) -> dict[str, Array]:
    """Of each repeat: epochs until within a point of the best for good, regret in points at each share of the budget;
    and of studies of `TRIALS` trials, (repeats, trials), their epochs and their regret, nan where none was played."""
    traces = [Run([tuple(step) for step in run["trace"]]) for run in runs]
    truths = [table.truth(repeat % len(table.seen), by) for repeat in range(len(runs))]
    ends = np.array([[run["studies"].get(str(count), (np.nan, -1)) for count in TRIALS] for run in runs])
    return {
        "until": np.array([for_good(run, truth, table.budget) for run, truth in zip(traces, truths, strict=True)]),
        "regret": 100
        * np.array(
            [
                [regret(run, t, int(share * table.budget)) for share in SHARES]
                for run, t in zip(traces, truths, strict=True)
            ]
        ),
        "epochs": ends[..., 0],
        "at end": 100
        * np.array([truth.max() - truth[rows.astype(int)] for rows, truth in zip(ends[..., 1], truths, strict=True)]),
    }


def tables_text(tables: Mapping[str, Table], known: Known) -> str:
    """Markdown: for each number of slots and each truth, all methods."""
    parts = []
    for slots in sorted({int(name.split("|")[2]) for name in known}):
        for by, words in (("all", "the mean over all seeds"), ("test", "test, on seeds that the search did not see")):
            parts.append(_text(tables, known, slots, by, words))
    return "\n\n".join(parts) + "\n"


def _methods(tables: Mapping[str, Table], known: Known, slots: int) -> list[str]:
    names = list(dict.fromkeys(name.split("|")[1] for name in known))
    names.sort(key=lambda name: list(METHODS).index(name) if name in METHODS else len(METHODS))
    return [name for name in names if any(f"{table}|{name}|{slots}" in known for table in tables)]


def titled(method: str) -> str:
    """A method's name for a page: what a study file says in the type of code."""
    if method not in METHODS:
        return method
    plain = method.removeprefix("papers, ").removeprefix("fading prior, ")
    sampler, _, rule = plain.partition(" + ")
    name, _, at = rule.partition(" ")
    words = f"`{sampler}`" + (f", `{name}`{' ' * bool(at)}{at}" if rule else "")
    return (
        words
        + (", papers first" if method.startswith("papers") else "")
        + (", fading prior" if method.startswith("fading") else "")
    )


def _interval(until: Mapping[str, Array], early: Mapping[str, Array]) -> str:
    """Where 95% of bootstrapped means of the ratios lie: repeats are drawn again, the same of both searches where both
    have as many."""
    chance, found = np.random.default_rng(0), []
    for _ in range(1000):
        ratios = []
        for table, epochs in until.items():
            count, of_early = len(epochs), len(early[table])
            drawn = chance.integers(0, count, count)
            beside = drawn if count == of_early else chance.integers(0, of_early, of_early)
            ratios.append(epochs[drawn].mean() / early[table][beside].mean())
        found.append(np.mean(ratios))
    low, high = np.percentile(found, [2.5, 97.5])
    return f"{low:.2f} to {high:.2f}"


def _text(tables: Mapping[str, Table], known: Known, slots: int, by: str, words: str) -> str:
    methods = _methods(tables, known, slots)
    results = {
        (table, method): found(tables[table], known[key], by)
        for table in tables
        for method in methods
        if known.get(key := f"{table}|{method}|{slots}")
    }
    lines = [
        f"{slots} trials at once, worth by {words}. Epochs until within one point for good, as a part of those of "
        f"{titled(EARLY)}; 95% by a bootstrap over repeats:",
        "",
    ]
    lines += [f"| method | {' | '.join(tables)} | mean | 95% | most |", "|---|" + "---|" * (len(tables) + 3)]
    each = {table: results[table, EARLY]["until"] for table in tables if (table, EARLY) in results}
    early = {table: epochs.mean() for table, epochs in each.items()}
    for method in methods:
        ratios = {
            table: results[table, method]["until"].mean() / early[table]
            for table in early
            if (table, method) in results
        }
        cells = [f"{ratios[table]:.2f}" if table in ratios else "" for table in tables]
        full = len(ratios) == len(tables)
        ends = ["", "", ""]
        if full:
            of_method = {table: results[table, method]["until"] for table in tables}
            ends = [f"{np.mean(list(ratios.values())):.2f}", _interval(of_method, each), f"{max(ratios.values()):.2f}"]
        lines.append(f"| {titled(method)} | {' | '.join([*cells, *ends])} |")
    epochs = [f"{early[table]:.0f}" if table in early else "" for table in tables]
    budgets = [str(table.budget) for table in tables.values()]
    lines += [
        f"| epochs of {titled(EARLY)} | {' | '.join(epochs)} | | | |",
        f"| full budget | {' | '.join(budgets)} | | | |",
        "",
    ]
    lines += ["Regret in points, mean over tables, and mean rank, at a part of the budget:", ""]
    heads = [f"{100 * share:.0f}%" for share in SHARES]
    lines += [
        f"| method | {' | '.join(heads)} | {' | '.join(f'rank {head}' for head in heads)} |",
        "|---|" + "---|" * 8,
    ]
    everywhere = [method for method in methods if all((table, method) in results for table in tables)]
    regrets = np.array([[results[table, method]["regret"].mean(0) for method in everywhere] for table in tables])
    ranks = rankdata(regrets, axis=1)
    for place, method in enumerate(everywhere):
        cells = [f"{value:.2f}" for value in regrets[:, place].mean(0)]
        cells += [f"{value:.1f}" for value in ranks[:, place].mean(0)]
        lines.append(f"| {titled(method)} | {' | '.join(cells)} |")
    lines += ["", *_of_trials(tables, results, [method for method in everywhere if method in METHODS])]
    return "\n".join(lines)


def _of_trials(
    tables: Mapping[str, Table], results: Mapping[tuple[str, str], dict[str, Array]], methods: Sequence[str]
) -> list[str]:
    """Studies of a number of trials beside the one of `EARLY` with the most."""
    if EARLY not in methods:
        return []
    lines = [
        f"Studies of so many trials, beside {titled(EARLY)} with {TRIALS[-1]}: their part of its epochs, and the "
        "points by which their regret is more, mean over tables and the most of a table:",
        "",
        "| method | trials | epochs | most | regret | most |",
        "|---|---|---|---|---|---|",
    ]
    for method in methods:
        for place, count in enumerate(TRIALS):
            of, than = ([results[table, name] for table in tables] for name in (method, EARLY))
            pairs = list(zip(of, than, strict=True))
            part = [a["epochs"][:, place].mean() / b["epochs"][:, -1].mean() for a, b in pairs]
            more = [a["at end"][:, place].mean() - b["at end"][:, -1].mean() for a, b in pairs]
            cells = f"{np.mean(part):.2f} | {max(part):.2f} | {np.mean(more):+.2f} | {max(more):+.2f}"
            lines.append(f"| {titled(method)} | {count} | {cells} |")
    return lines
