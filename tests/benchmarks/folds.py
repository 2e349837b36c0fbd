"""What folds are worth: a search on one split, on reshuffled folds, a confirm stage over folds, and a margin.

    STUDY_DATA=... python tests/benchmarks/folds.py record [--sets NAME ...] [--drawn 14]
    python tests/benchmarks/folds.py table [--sets NAME ...]

`record` trains, on one thread, the known configurations of a set and some that are drawn, each whole, on five folds.
Sets are the quickstart's digits, biased as training, with two seeds of their colours and splits: known are the papers'
two configurations, the others are drawn from what `study init` drafts for images, 20 epochs each. And 1,000 rows of
COMPAS and of Adult: known is the plain loss, the others are drawn as in `selection_curves.py`, 12 epochs each. And the
three folders of 900 pictures of `overtuning.py`. And more samples, configurations as of the tables: 3,000 and 20,000
rows of Adult, 3,000 digits of Biased-MNIST at half the size, 10 epochs each. Each runs on all folds with a fresh seed,
and with the search's seed on the first fold and on the one that is its turn; of the folders one seed does both. One
line a trial is added to `folds.jsonl` beside this file, and those that are there are left out, so that a run that was
ended goes on.

`table` prints what each rule chooses on test by two metrics, the second where the log losses of single samples were
kept: not of the digits and of 1,000 rows.
"""

import argparse
import base64
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, reduce
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import overtuning
import selection_curves
import torch
from numpy.typing import NDArray

from study import data
from study.data import Dataset, holdout
from study.data.dataset import Split
from study.data.folds import select_fold
from study.spec import load_study
from study.sweep.joined_folds import bootstrap_strata
from study.training.cell_statistics import CellStatistics, kinds_of_cells
from study.training.trial import Trial

FILE = Path(__file__).with_suffix(".jsonl")
PARTS = overtuning.PARTS
DIGITS = {"digits-0": 0, "digits-1": 1}
SAMPLED = {
    "compas": ("compas", 1_000),
    "adult": ("adult", 1_000),
    "adult-3000": ("adult", 3_000),
    "adult-20000": ("adult", 20_000),
    "mnist-3000": ("mnist", 3_000),
}
"""Samples outside test of a set of `selection_curves.py`."""
SETS = (*DIGITS, *SAMPLED, *overtuning.FOLDERS)
FRESH = 1

Made = Callable[[int], Trial]
"""Makes a configuration's trial with a seed of training."""

# Recording.


def of_digits(name: str, fold: int, count: int) -> Iterator[tuple[str, Mapping[str, Any], Made]]:
    """Source and parameters of each configuration on a fold, and what makes its trial."""
    changes = [f"data.seed={DIGITS[name]}", f"data.folds={PARTS}", "train.epochs=20"]
    space = json.dumps(overtuning.SPACE)
    spec = load_study("quickstart_biased", [*changes, "search.enqueue=papers", f"search.space={space}"])
    dataset = select_fold(data.load(spec.base["data"]), fold)
    given = [("papers", params) for params in spec.search.enqueue]
    for source, params in given + [("search", params) for params in overtuning.drawn(count)]:
        yield source, params, lambda seed, params=params: Trial(spec.trial_config(params, seed), dataset, "cpu")


def of_folder(name: str, fold: int, count: int) -> Iterator[tuple[str, Mapping[str, Any], Made]]:
    """The same of a folder of pictures."""
    [(spec, dataset)] = overtuning.of_splits(name, [fold])
    given = [("papers", params) for params in spec.search.enqueue]
    for source, params in given + [("search", params) for params in overtuning.drawn(count)]:
        yield source, params, lambda seed, params=params: Trial(spec.trial_config(params, seed), dataset, "cpu")


@cache
def sampled(name: str) -> Dataset:
    """So many samples to learn from, and the test split."""
    of, count = SAMPLED[name]
    if of == "mnist":
        large = data.load({"name": "biased_mnist", "rho": 0.98, "seed": 0, "val": "biased"})
        shares = {"train": count / 50_000 * 1.25, "val": 0.01, "test": 0.2}
        splits = {name: selection_curves.small(large.splits[name], share, 0) for name, share in shares.items()}
        whole = Dataset(replace(large.facts, shape=(3, 14, 14)), splits)
    else:
        whole = data.load({"name": of})
    train, val = whole.splits["train"], whole.splits["val"]
    assert train.bias is not None
    assert val.bias is not None
    joined = Split(*(np.concatenate([getattr(train, key), getattr(val, key)]) for key in ("inputs", "target", "bias")))
    chosen = holdout.stratified_split(holdout.cell_of_sample(joined), count / len(joined), 54)[1]
    return replace(whole, splits={"train": holdout.select_samples(joined, chosen), "test": whole.splits["test"]})


def of_sampled(name: str, fold: int, count: int) -> Iterator[tuple[str, Mapping[str, Any], Made]]:
    """The same of some samples of a larger set; the first configuration is the plain loss."""
    whole, of = sampled(name), selection_curves.SETS[SAMPLED[name][0]]
    learn = whole.splits["train"]
    held = holdout.assign_folds(holdout.cell_of_sample(learn), PARTS, 54) == fold
    parts = {"train": holdout.select_samples(learn, ~held), "val": holdout.select_samples(learn, held)}
    dataset = Dataset(whole.facts, {**parts, "test": whole.splits["test"]})
    for place, params in enumerate(selection_curves.configurations()[: 1 + count]):
        made = lambda seed, params=params: selection_curves.trial(of, dataset, params, seed)  # noqa: E731
        yield "search" if place else "papers", params, made


def of(name: str) -> Callable[[str, int, int], Iterator[tuple[str, Mapping[str, Any], Made]]]:
    """What yields the configurations of a set."""
    return of_sampled if name in SAMPLED else of_folder if name in overtuning.FOLDERS else of_digits


def tested(name: str) -> str:
    """The metric of a set's test split."""
    is_table = name in SAMPLED and SAMPLED[name][0] != "mnist"
    return "test/unbiased_accuracy" if is_table else "test/accuracy"


def record(file: Path, names: Sequence[str], count: int) -> None:
    """Train what is not there yet."""
    torch.set_num_threads(1)
    have = {(line["of"], line["split"], line["place"], line["seed"]) for line in overtuning.lines(file)}
    for name, fold in product(names, range(PARTS)):
        for place, (source, params, make) in enumerate(of(name)(name, fold, count)):
            for seed in seeds(name, fold, place):
                if (name, fold, place, seed) not in have:
                    named = {"of": name, "split": fold, "place": place, "seed": seed, "source": source}
                    line = overtuning.measured(make(seed), tested(name))
                    del line["cells"]  # what is said of each sample is kept
                    overtuning.add(file, named | {"params": dict(params)} | line)


def seeds(name: str, fold: int, place: int) -> tuple[int, ...]:
    """On which a configuration runs on a fold."""
    if name in overtuning.FOLDERS:
        return (0,)
    return (FRESH, 0) if fold in (0, place % PARTS) else (FRESH,)


# What each rule chooses.

RULES = (
    "one split",
    "one split, 3 confirmed there",
    "a fold each",
    "a fold each, 3 confirmed on all",
    "all folds each",
)
CONFIRMED = RULES[3]
"""What `study init` drafts for so few samples with bias labels."""
MARGINS = (0.0, 0.5, 1.0, 1.5)
OFFERED = (0, 5, 14, 30)
TOP, DRAWS, RESAMPLED, ORDERS = 3, 200, 200, 20
SHARE, LOSS = "shrunk_unbiased_accuracy", "shrunk_unbiased_log_loss"


@dataclass(frozen=True)
class Pool:
    """The configurations of a set, each array (N, ...); of a log loss the values are less than 0.

    Attributes:
        split, again: value and standard error on the first fold, with the search's seed and with the fresh one, (N, 2).
        turn: value and standard error on the fold of its turn, (N, 2).
        joined: the metric of the samples of all folds together.
        draws: the same of samples drawn anew, the same ones for all, (N, B).
        test: of the networks of each fold, (N, folds).
        known: how many of the first are known, the incumbents.
    """

    split: NDArray[np.float64]
    again: NDArray[np.float64]
    turn: NDArray[np.float64]
    joined: NDArray[np.float64]
    draws: NDArray[np.float64]
    test: NDArray[np.float64]
    known: int

    @property
    def drawn(self) -> NDArray[np.int64]:
        """The places of the others."""
        return np.arange(self.known, len(self.test))

    def counts(self) -> list[int]:
        """How many of them are offered; of a small pool all instead of 30, or of 14."""
        return [count for count in OFFERED if count < len(self.drawn)] + [min(len(self.drawn), OFFERED[-1])]

    def chosen(self, rule: str, offered: NDArray[np.int64], margin: float) -> int:
        """The place of what a rule chooses of the known and the offered ones: as `Results.incumbent_standing`."""
        known = np.arange(self.known)
        first = (self.turn if "fold" in rule else self.split)[:, 0]
        kept = offered
        if TOP_WORD in rule:
            kept = offered[np.argsort(-first[offered], kind="stable")[:TOP]]
        if "all" in rule:
            value, error = self.joined, None
        else:
            by = self.again if TOP_WORD in rule else self.turn if "fold" in rule else self.split
            value, error = by[:, 0], by[:, 1]
        incumbent = int(known[value[known].argmax()])
        best, gained = incumbent, 0.0
        for place in kept:
            gain = float(value[place] - value[incumbent])
            if error is None:
                spread = float((self.draws[place] - self.draws[incumbent]).std(ddof=1))
            else:
                spread = float(np.hypot(error[place], error[incumbent]))
            if gain > max(gained, margin * spread):
                best, gained = int(place), gain
        return best

    def regret(self, rule: str, count: int, margin: float) -> tuple[float, float]:
        """The mean test value of what is chosen, and the mean regret to the best of all offered, in points."""
        test, generator = self.test.mean(1), np.random.default_rng(0)
        several = ORDERS * 5 if 0 < count < len(self.drawn) else 1
        offered = [generator.permutation(self.drawn)[:count] for _ in range(several)]
        found = np.array([test[self.chosen(rule, draw, margin)] for draw in offered])
        best = np.array([test[[*range(self.known), *draw]].max() for draw in offered])
        return 100 * float(found.mean()), 100 * float((best - found).mean())

    def gains(self, rule: str, margin: float) -> list[tuple[float, float, float]]:
        """By how much what is chosen changes on test from each number that is offered to the next, in points, with its
        95% interval: the drawn configurations, and the folds whose networks are tested, are drawn anew."""
        generator, counts = np.random.default_rng(0), self.counts()

        def changes(pool: NDArray[np.int64], folds: NDArray[np.int64]) -> NDArray[np.float64]:
            test, found = self.test[:, folds].mean(1), []
            for _ in range(ORDERS):
                order = generator.permutation(pool)
                found.append([test[self.chosen(rule, order[:count], margin)] for count in counts])
            return 100 * np.diff(np.mean(found, 0))

        folds = np.arange(self.test.shape[1])
        seen = np.mean([changes(self.drawn, folds) for _ in range(10)], 0)
        anew = [
            changes(generator.choice(self.drawn, len(self.drawn)), generator.choice(folds, len(folds)))
            for _ in range(RESAMPLED)
        ]
        low, high = np.quantile(anew, (0.025, 0.975), axis=0)
        return [(float(at), float(left), float(right)) for at, left, right in zip(seen, low, high, strict=True)]


TOP_WORD = "confirmed"


@dataclass(frozen=True)
class Samples:
    """The samples outside test of a set.

    Attributes:
        cell: of each, class * groups + group, (N,).
        numbers: the fold of each, (N,).
        alike: the cells that are alike, as `CellStatistics.kind_of_cell`, (kinds, classes, groups).
    """

    cell: NDArray[np.int64]
    numbers: NDArray[np.int64]
    alike: torch.Tensor

    @classmethod
    @cache
    def of(cls, name: str) -> "Samples":
        """Those of a set, in the order in which each fold has them."""
        if name in overtuning.FOLDERS:
            of_folds = [dataset for _, dataset in overtuning.of_splits(name, range(PARTS))]
            parts = [dataset.splits["val"] for dataset in of_folds]
            learn, facts = reduce(holdout.concatenate_samples, parts), of_folds[0].facts
            numbers = np.repeat(np.arange(PARTS), [len(part) for part in parts])
        elif name in SAMPLED:
            whole = sampled(name)
            learn, facts = whole.splits["train"], whole.facts
            numbers = holdout.assign_folds(holdout.cell_of_sample(learn), PARTS, 54)
        else:
            document = {"name": "biased_digits", "rho": 0.95, "val": "biased", "seed": DIGITS[name], "folds": PARTS}
            whole = data.load(document)
            assert whole.folds is not None
            learn, numbers, facts = whole.folds.non_test_samples, whole.folds.fold_of_sample, whole.facts
        assert learn.bias is not None
        return cls(
            learn.target * (facts.bias_classes or 1) + learn.bias, numbers, kinds_of_cells(facts, torch.device("cpu"))
        )

    def cells(self, values: NDArray[np.float64], weights: NDArray[np.float64], is_loss: bool) -> CellStatistics:
        """The cells of samples that weigh so much, both (N,)."""
        count = self.alike[0].numel()
        sums, squares, samples = (
            torch.from_numpy(np.bincount(self.cell, weights * of, count)).view(self.alike.shape[1:])
            for of in (values, values**2, np.ones(len(values)))
        )
        return CellStatistics(sums, samples, self.alike, squares if is_loss else None)

    def worths(self, values: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """The mean of the shrunk cells of samples (N,), for each of B lists of weights (B, N): (B,)."""
        one_hot = np.eye(self.alike[0].numel())[self.cell]
        sums, counts = (
            torch.from_numpy(of @ one_hot).view(-1, *self.alike.shape[1:]) for of in (weights * values, weights)
        )
        return torch.vmap(lambda sums, counts: CellStatistics(sums, counts, self.alike).shrunk_values.mean())(
            sums, counts
        ).numpy()

    def draws(self) -> list[NDArray[np.float64]]:
        """How often each sample is drawn, as `study.sweep.joined_folds` does, (N,) each."""
        generator, kind = np.random.default_rng(0), self.alike.flatten(1).argmax(0).numpy()
        among = bootstrap_strata(self.cell, kind[self.cell])
        strata = [np.flatnonzero(among == stratum) for stratum in np.unique(among)]
        found = [
            np.concatenate([one[generator.integers(0, len(one), len(one))] for one in strata]) for _ in range(DRAWS)
        ]
        return [np.bincount(rows, minlength=len(self.cell)).astype(float) for rows in found]


def judged(line: overtuning.Line, count: int, metric: str) -> NDArray[np.float64]:
    """What a run says of the samples of its fold: whether it is right, or the log loss, (count,)."""
    if metric == LOSS:
        return np.frombuffer(base64.b85decode(line["lost"]), "<f2").astype(float)
    return np.unpackbits(np.frombuffer(bytes.fromhex(line["right"]), np.uint8))[:count].astype(float)


def pool(name: str, kept: Sequence[overtuning.Line], metric: str) -> Pool:
    """The configurations of a set that ran on every fold; of a folder one seed both searches and judges."""
    by = {(line["place"], line["split"], line["seed"]): line for line in kept if line["of"] == name}
    judge = 0 if name in overtuning.FOLDERS else FRESH
    places = [at for at in sorted({place for place, _, _ in by}) if all((at, k, judge) in by for k in range(PARTS))]
    samples, sign, is_loss = Samples.of(name), -1.0 if metric == LOSS else 1.0, metric == LOSS
    folds = [samples.numbers == fold for fold in range(PARTS)]

    def on(place: int, fold: int, seed: int) -> NDArray[np.float64]:
        found = np.zeros(len(samples.cell))
        found[folds[fold]] = judged(by[place, fold, seed], int(folds[fold].sum()), metric)
        return found

    def pairs(fold: Callable[[int], int], seed: int) -> NDArray[np.float64]:
        found = []
        for place in places:
            cells = samples.cells(on(place, fold(place), seed), folds[fold(place)].astype(float), is_loss)
            found.append([sign * float(cells.shrunk_values.mean()), float(cells.variance_of_shrunk_mean.sqrt())])
        return np.array(found)

    whole = [np.sum([on(place, fold, judge) for fold in range(PARTS)], 0) for place in places]
    weights = np.array([np.ones(len(samples.cell)), *samples.draws()])
    values = np.array([sign * samples.worths(of, weights) for of in whole])
    tests = np.array(
        [
            [
                np.mean([by[at]["test"] for at in ((place, fold, 0), (place, fold, FRESH)) if at in by])
                for fold in range(PARTS)
            ]
            for place in places
        ]
    )
    known = sum(by[place, 0, judge]["source"] == "papers" for place in places)
    first, turn = (lambda place: 0), (lambda place: place % PARTS)
    runs = pairs(first, 0), pairs(first, judge), pairs(turn, 0)
    return Pool(*runs, values[:, 0], values[:, 1:], tests, known)


def table(kept: Sequence[overtuning.Line]) -> None:
    """Print what each rule and margin chooses, by metric, set and number of drawn trials."""
    sets = list(dict.fromkeys(line["of"] for line in kept))
    for metric in (SHARE, LOSS):
        having = [
            name for name in sets if metric == SHARE or all("lost" in line for line in kept if line["of"] == name)
        ]
        printed(metric, {name: pool(name, kept, metric) for name in having})


def printed(metric: str, pools: Mapping[str, Pool]) -> None:
    """Print the tables of one metric."""
    print(f"\n## By val/{metric}\n\nRank correlation of the value with test:\n")
    print("| | known and drawn | one split | a fold each | all folds together |\n|---|---|---|---|---|")
    for name, of in pools.items():
        ranks = [spearman(value, of.test.mean(1)) for value in (of.split[:, 0], of.turn[:, 0], of.joined)]
        print(f"| {name} | {of.known} and {len(of.drawn)} | {' | '.join(f'{rank:.2f}' for rank in ranks)} |")
    regrets: dict[tuple[str, str, float], float] = {}
    for margin in MARGINS:
        head = " | ".join(f"{name}: {count}" for name, of in pools.items() for count in of.counts())
        print(f"\n### Margin {margin:g}\n\n| | {head} | mean regret |")
        print("|---" * (2 + sum(len(of.counts()) for of in pools.values())) + "|")
        for rule in RULES:
            shown = []
            for name, of in pools.items():
                found = [of.regret(rule, count, margin) for count in of.counts()]
                shown += [f"{test:.1f} ({regret:.1f})" for test, regret in found]
                regrets[name, rule, margin] = float(np.mean([regret for _, regret in found[1:]]))
            mean = np.mean([regrets[name, rule, margin] for name in pools])
            print(f"| {rule} | {' | '.join(shown)} | {mean:.2f} |", flush=True)
    print(f"\n### The margin, a fold each and {TOP} confirmed on all: mean regret over the numbers of drawn ones\n")
    print(f"| | {' | '.join(f'{margin:g}' for margin in MARGINS)} | best on the other sets |")
    print(f"|---{'|---' * (1 + len(MARGINS))}|")
    for name in pools:
        means = {
            margin: np.mean([regrets[other, CONFIRMED, margin] for other in pools if other != name])
            for margin in MARGINS
        }
        least = min(means.values())
        best = " or ".join(f"{margin:g}" for margin, mean in means.items() if np.isclose(mean, least, atol=0.005))
        print(f"| {name} | {' | '.join(f'{regrets[name, CONFIRMED, margin]:.2f}' for margin in MARGINS)} | {best} |")
    print("\n### What more trials change, in points on test (95% interval)\n")
    widest = max((of.counts() for of in pools.values()), key=len)
    steps = [f"from {one} to {other}" for one, other in zip(widest, [*widest[1:-1], "the last"], strict=False)]
    print(f"| | rule | margin | {' | '.join(steps)} |\n|---|---|---{'|---' * len(steps)}|")
    for name, of in pools.items():
        for rule, margin in ((RULES[0], 0.0), *((CONFIRMED, margin) for margin in MARGINS[:3])):
            found = [f"{gain:+.1f} ({low:+.1f} to {high:+.1f})" for gain, low, high in of.gains(rule, margin)]
            found += [""] * (len(steps) - len(found))
            print(
                f"| {name}: {', '.join(map(str, of.counts()))} | {rule} | {margin:g} | {' | '.join(found)} |",
                flush=True,
            )


def spearman(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    """The correlation of ranks."""
    return float(np.corrcoef(*(np.argsort(np.argsort(each)) for each in (one, other)))[0, 1])


def main() -> None:
    torch.set_num_threads(1)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("record", "table"))
    parser.add_argument("--file", type=Path, default=FILE)
    parser.add_argument("--sets", nargs="+", choices=SETS, default=SETS)
    parser.add_argument("--drawn", type=int, default=14)
    given = parser.parse_args()
    if given.what == "record":
        record(given.file, given.sets, given.drawn)
    else:
        table([line for line in overtuning.lines(given.file) if line["of"] in given.sets])


if __name__ == "__main__":
    main()
