"""What does each selection rule cost on test? Read off recorded curves, in seconds; or trained anew, in a minute.

    python tests/benchmarks/selection_rules.py rules        # regret of every rule on every data set
    python tests/benchmarks/selection_rules.py noise        # what helps against a choice that overfits validation
    python tests/benchmarks/selection_rules.py quickstart   # 28 configurations of the quickstart, trained here

Regret is the test value of the best of all configurations, at the last epoch, minus that of the one that a rule picks,
in points; test is accuracy where the test split is unbiased (digits, Biased-MNIST), the mean over (class, bias) cells
where it is not (COMPAS, Adult). The curves are `selection_curves.npz`, made by `selection_curves.py`, which says what
the data sets are.
"""

import argparse
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.stats import kendalltau
from selection_curves import COLUMNS, FILE, SETS, curves

from study.metrics.selection_rules import SELECTION_RULES

Curves = NDArray[np.float64]
"""(configurations, epochs, columns)."""

UNBIASED = ("unbiased/accuracy", "unbiased/shrunk_unbiased_accuracy")
WINDOW = 3
SEARCHES, TRIALS = 50, 30


def row(*cells: object) -> None:
    """Print a row of a Markdown table."""
    print(f"| {' | '.join(map(str, cells))} |")


def header(*titles: str) -> None:
    """Print the first two."""
    row(*titles)
    print("|---" * len(titles) + "|")


def recorded(name: str) -> dict[tuple[int, int], Curves]:
    """The curves of a data set by split and seed, without the plain loss."""
    with np.load(FILE) as file:
        keys = [key for key in file.files if key.split("-")[0] == name]
        return {(int(key.split("-")[1]), int(key.split("-")[2])): file[key][1:].astype(float) for key in keys}


def test_values(name: str, found: Curves) -> NDArray[np.float64]:
    """What is regretted, (configurations, epochs), -1 for a trial that diverged."""
    column = "test/unbiased_accuracy" if SETS[name].model["name"] == "mlp" else "test/accuracy"
    return np.nan_to_num(found[..., COLUMNS.index(column)], nan=-1.0)


def rule_values(found: Curves, rule: str) -> NDArray[np.float64]:
    """What a rule says of each configuration and epoch; one that misses the rule's limit comes behind all others."""
    name, _, limit = rule.partition(" where ")
    values = np.nan_to_num(found[..., COLUMNS.index(name)], nan=-9.0)
    if limit:
        metric, _, bound = limit.split()
        excess = np.nan_to_num(found[..., COLUMNS.index(f"val/{metric}")], nan=9.0) - float(bound)
        values = np.where(excess > 0, -1 - excess, values)
    return values


def smoothed(values: NDArray[np.float64], window: int = WINDOW) -> NDArray[np.float64]:
    """The mean over the last `window` epochs of each; -inf before there are so many."""
    means = np.full_like(values, -np.inf)
    for epoch in range(window - 1, values.shape[1]):
        means[:, epoch] = values[:, epoch - window + 1 : epoch + 1].mean(1)
    return means


def names() -> Iterator[tuple[str, str]]:
    """Every rule on biased validation with what it needs, and two on unbiased validation."""
    for rule in SELECTION_RULES:
        yield f"val/{rule.name}", rule.required_labels
    for name in UNBIASED:
        yield name, "unbiased validation"


def judged(name: str, found: Curves, rule: str) -> list[float]:
    """Regret at the last epoch, with the best smoothed epoch, Kendall's tau with test, and the share that ties."""
    test, values = test_values(name, found), rule_values(found, rule)
    if (values == -9.0).all():
        return [np.nan] * 4
    best, last = test[:, -1].max(), values[:, -1]
    configuration, epoch = np.unravel_index(smoothed(values).argmax(), values.shape)
    tau = kendalltau(last, test[:, -1]).statistic
    ties = np.unique(last, return_counts=True)[1].max() / len(last)
    return [100 * (best - test[last.argmax(), -1]), 100 * (best - test[configuration, epoch]), tau, ties]


def print_rules(chosen: Sequence[str]) -> None:
    """The table of regrets: mean over splits of each data set, and over data sets."""
    by_set = {name: [found for (split, seed), found in recorded(name).items() if split == seed] for name in chosen}
    shown = {name: f"{name} ({len(splits)} splits)" for name, splits in by_set.items()}
    print("regret in points, last epoch | best epoch (window 3); tau with test; largest share of trials that tie\n")
    header("needs", "rule", *shown.values(), "mean")
    for rule, needs in names():
        cells, means = [], []
        for name, splits in by_set.items():
            last, epoch, tau, ties = np.mean([judged(name, found, rule) for found in splits], axis=0)
            cells.append("-" if np.isnan(last) else f"{last:.1f} \\| {epoch:.1f}; {tau:.2f}; {ties:.2f}")
            means.append((last, epoch))
        last, epoch = np.mean(means, axis=0)
        mean = "-" if np.isnan(last) else f"{last:.1f} \\| {epoch:.1f}"
        row(needs, rule.removeprefix("val/"), *cells, mean)
    for name, splits in by_set.items():
        tests = [test_values(name, found)[:, -1] for found in splits]
        best, median = (100 * np.mean([of(test) for test in tests]) for of in (np.max, np.median))
        print(f"\n{name}: test of the best configuration {best:.1f}, of the median one {median:.1f}", end="")
    print()


def noise_picks(
    values: NDArray[np.float64], split: int, generator: np.random.Generator
) -> Iterator[tuple[str, int | np.intp]]:
    """The pick of each remedy in one search: (splits or seeds, configurations) of what the rule says."""
    others = [place for place in range(len(values)) if place != split]
    count = values.shape[1]
    order = np.argsort(-values[split], kind="stable")
    yield "the best of one split", order[0]
    yield (
        "validation redrawn for each trial",
        values[generator.integers(len(values), size=count), np.arange(count)].argmax(),
    )
    yield "mean of all splits (as many times the cost)", values.mean(0).argmax()
    yield "mean of all splits, so much fewer trials", values[:, : max(1, count // len(values))].mean(0).argmax()
    for top in (3, 5):
        fresh = values[generator.permutation(others)[:3]][:, order[:top]]
        yield f"top {top}, mean of 3 fresh", order[fresh.mean(0).argmax()]
        yield f"top {top}, mean of 3 fresh - sd", order[(fresh.mean(0) - fresh.std(0, ddof=1)).argmax()]
        yield f"top {top}, mean of 3 fresh - sd/2", order[(fresh.mean(0) - fresh.std(0, ddof=1) / 2).argmax()]


def print_noise(chosen: Sequence[str], rules: Sequence[str], searches: int) -> None:
    """Mean regret over simulated random searches of 30 of the 100 configurations, with its standard error.

    What is regretted is a configuration's mean over the splits (or seeds), at the last epoch.
    """
    header("data", "repeats are", "rule", "remedy", "regret", "standard error")
    for name in chosen:
        whole = recorded(name)
        kinds = {
            "splits": [found for (split, seed), found in whole.items() if split == seed],
            "seeds of one split": [found for (split, _), found in whole.items() if split == 0],
        }
        for kind, found in kinds.items():
            if len(found) < 4:
                continue
            test = np.mean([test_values(name, each)[:, -1] for each in found], axis=0)
            for rule in rules:
                values = np.array([rule_values(each, rule)[:, -1] for each in found])
                generator = np.random.default_rng(0)
                regrets: dict[str, list[float]] = {}
                for search in range(searches):
                    drawn = generator.permutation(len(test))[:TRIALS]
                    for remedy, pick in noise_picks(values[:, drawn], search % len(found), generator):
                        regrets.setdefault(remedy, []).append(100 * (test[drawn].max() - test[drawn][pick]))
                for remedy, each in regrets.items():
                    error = np.std(each, ddof=1) / np.sqrt(len(each))
                    row(name, kind, rule.removeprefix("val/"), remedy, f"{np.mean(each):.2f}", f"{error:.2f}")


def print_quickstart(count: int = 28) -> None:
    """The same models judged by each rule: configurations of the quickstart's space, one seed."""
    generator = np.random.default_rng(0)
    tried: list[Mapping[str, float]] = [
        {
            "alpha": float(np.exp(generator.uniform(np.log(0.001), 0))),
            "lambda": float(generator.uniform(0, 2)),
            "epsilon": float(generator.choice([0.0, 0.1, 0.25, 0.5])),
            "temperature": 0.1,
            "learning_rate": 0.001,
        }
        for _ in range(count)
    ]
    plain = {"alpha": 1.0, "lambda": 0.0, "epsilon": 0.0, "temperature": 0.1, "learning_rate": 0.001}
    found = curves(SETS["digits"], 0, 0, [plain, *tried]).astype(float)
    test = 100 * test_values("digits", found)[:, -1]
    baseline, test, found = test[0], test[1:], found[1:]
    print(f"{count} configurations, last epoch: best test {test.max():.1f}, median {np.median(test):.1f}, ", end="")
    print(f"baseline {baseline:.1f}\n")
    header("needs", "chosen by", "test", "Kendall's tau with test", "tie at the top")
    for rule, needs in names():
        values = rule_values(found, rule)[:, -1]
        tau = kendalltau(values, test).statistic
        agreement = "none" if np.isnan(tau) else f"{tau:.2f}"
        tied = int((values == values.max()).sum())
        row(needs, rule.removeprefix("val/"), f"{test[values.argmax()]:.1f}", agreement, tied)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("rules", "noise", "quickstart"))
    parser.add_argument("--sets", nargs="+", choices=SETS)
    parser.add_argument("--rules", nargs="+", default=["val/accuracy", "val/shrunk_unbiased_accuracy"])
    parser.add_argument("--searches", type=int, default=SEARCHES)
    given = parser.parse_args()
    if given.what == "rules":
        print_rules(given.sets or ["digits", "mnist", "compas"])
    elif given.what == "noise":
        print_noise(given.sets or ["digits", "compas", "adult"], given.rules, given.searches)
    else:
        print_quickstart()


if __name__ == "__main__":
    main()
