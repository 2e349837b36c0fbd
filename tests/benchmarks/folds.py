"""What folds are worth: a search on one split, on reshuffled folds, a confirm stage over folds, and a margin.

    STUDY_DATA=... python tests/benchmarks/folds.py record [--sets NAME ...] [--drawn 14]
    python tests/benchmarks/folds.py table

`record` trains, on one thread, the known configurations of a set and some that are drawn, each whole, on five folds.
Sets are the quickstart's digits, biased as training, with two seeds of their colours and splits: known are the papers'
two configurations, the others are drawn from what `study init` drafts for images, 20 epochs each. And 1,000 rows of
COMPAS and of Adult: known is the plain loss, the others are drawn as in `selection_curves.py`, 12 epochs each. Each
runs on all folds with a fresh seed, and with the search's seed on the first fold and on the one that is its turn. One
line a trial is added to `folds.jsonl` beside this file, and those that are there are left out, so that a run that was
ended goes on.
"""

import argparse
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
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
from study.data.folds import of_fold
from study.spec import load_study
from study.training import Trial
from study.training.counts import Cells, kinds

FILE = Path(__file__).with_suffix(".jsonl")
PARTS, ROWS = overtuning.PARTS, 1000
DIGITS, TABLES = {"digits-0": 0, "digits-1": 1}, ("compas", "adult")
FRESH = 1

Made = Callable[[int], Trial]
"""Makes a configuration's trial with a seed of training."""

# Recording.


def of_digits(name: str, fold: int, count: int) -> Iterator[tuple[str, Mapping[str, Any], Made]]:
    """Source and parameters of each configuration on a fold, and what makes its trial."""
    changes = [f"data.seed={DIGITS[name]}", f"data.folds={PARTS}", "train.epochs=20"]
    space = json.dumps(overtuning.SPACE)
    spec = load_study("quickstart_biased", [*changes, "search.enqueue=papers", f"search.space={space}"])
    dataset = of_fold(data.load(spec.base["data"]), fold)
    given = [("papers", params) for params in spec.search.enqueue]
    for source, params in given + [("search", params) for params in overtuning.drawn(count)]:
        yield source, params, lambda seed, params=params: Trial(spec.trial_config(params, seed), dataset, "cpu")


def rows(name: str) -> Dataset:
    """1,000 rows of a table to learn from, and its test split."""
    whole = data.load({"name": name})
    train, val = whole.splits["train"], whole.splits["val"]
    assert train.bias is not None
    assert val.bias is not None
    joined = Split(*(np.concatenate([getattr(train, key), getattr(val, key)]) for key in ("inputs", "target", "bias")))
    chosen = holdout.stratified(holdout.cells(joined), ROWS / len(joined), 54)[1]
    return replace(whole, splits={"train": holdout.take(joined, chosen), "test": whole.splits["test"]})


def of_table(name: str, fold: int, count: int) -> Iterator[tuple[str, Mapping[str, Any], Made]]:
    """The same of a table's rows; the first configuration is the plain loss."""
    whole, of = rows(name), selection_curves.SETS[name]
    learn = whole.splits["train"]
    held = holdout.folds(holdout.cells(learn), PARTS, 54) == fold
    parts = {"train": holdout.take(learn, ~held), "val": holdout.take(learn, held)}
    dataset = Dataset(whole.facts, {**parts, "test": whole.splits["test"]})
    for place, params in enumerate(selection_curves.configurations()[: 1 + count]):
        made = lambda seed, params=params: selection_curves.trial(of, dataset, params, seed)  # noqa: E731
        yield "search" if place else "papers", params, made


def record(file: Path, names: Sequence[str], count: int) -> None:
    """Train what is not there yet."""
    torch.set_num_threads(1)
    have = {(line["of"], line["split"], line["place"], line["seed"]) for line in overtuning.lines(file)}
    for name, fold in product(names, range(PARTS)):
        found = of_table(name, fold, count) if name in TABLES else of_digits(name, fold, count)
        for place, (source, params, make) in enumerate(found):
            for seed in (FRESH, 0) if fold in (0, place % PARTS) else (FRESH,):
                if (name, fold, place, seed) not in have:
                    named = {"of": name, "split": fold, "place": place, "seed": seed, "source": source}
                    test = "test/unbiased_accuracy" if name in TABLES else "test/accuracy"
                    line = overtuning.measured(make(seed), test)
                    overtuning.add(file, named | {"params": dict(params)} | line)


# What each rule chooses.

RULES = (
    "one split",
    "one split, 3 confirmed there",
    "a fold each",
    "a fold each, 3 confirmed on all",
    "all folds each",
)
MARGINS = (0.0, 0.5, 1.0, 1.5)
TOP, BOOTSTRAP = 3, 200


@dataclass(frozen=True)
class Pool:
    """The configurations of a set, each array (N, ...).

    Attributes:
        split, again: value and standard error on the first fold, with the search's seed and with the fresh one, (N, 2).
        turn: value and standard error on the fold of its turn, (N, 2).
        joined: the metric of the samples of all folds together.
        draws: the same of samples drawn anew, the same ones for all, (N, B).
        test: the mean over all runs.
        known: how many of the first are known, the incumbents.
    """

    split: NDArray[np.float64]
    again: NDArray[np.float64]
    turn: NDArray[np.float64]
    joined: NDArray[np.float64]
    draws: NDArray[np.float64]
    test: NDArray[np.float64]
    known: int

    def chosen(self, rule: str, offered: NDArray[np.int64], margin: float) -> int:
        """The place of what a rule chooses of the known and the offered ones: as `Results.standing`."""
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
        others, generator = np.arange(self.known, len(self.test)), np.random.default_rng(0)
        draws = [
            generator.permutation(others)[:count] for _ in range(overtuning.DRAWS if 0 < count < len(others) else 1)
        ]
        found = np.array([self.test[self.chosen(rule, draw, margin)] for draw in draws])
        best = np.array([self.test[[*range(self.known), *draw]].max() for draw in draws])
        return 100 * float(found.mean()), 100 * float((best - found).mean())


TOP_WORD = "confirmed"


def pool(name: str, kept: Sequence[overtuning.Line]) -> Pool:
    """The runs of a set, whose samples are asked of the data for the draws."""
    by = {(line["place"], line["split"], line["seed"]): line for line in kept if line["of"] == name}
    places = sorted({place for place, _, _ in by})
    if name in TABLES:
        whole = rows(name)
        learn = whole.splits["train"]
        numbers = holdout.folds(holdout.cells(learn), PARTS, 54)
    else:
        whole = data.load({"name": "biased_digits", "rho": 0.95, "val": "biased", "seed": DIGITS[name], "folds": PARTS})
        assert whole.folds is not None
        learn, numbers = whole.folds.learn, whole.folds.numbers
    right = np.zeros((len(places), len(learn)))
    for place, fold in product(places, range(PARTS)):
        held = numbers == fold
        bits = np.unpackbits(np.frombuffer(bytes.fromhex(by[place, fold, FRESH]["right"]), np.uint8))
        right[place, held] = bits[: held.sum()]
    classes, groups = whole.facts.classes, whole.facts.bias_classes or 1
    cell = learn.target * groups + learn.bias
    one_hot = np.eye(classes * groups)[cell]
    samples = torch.from_numpy(one_hot.sum(0).reshape(classes, groups))
    alike = kinds(whole.facts, torch.device("cpu"))

    def values(weights: NDArray[np.float64]) -> list[float]:
        counts = (right * weights) @ one_hot
        return [
            float(Cells(torch.from_numpy(of.reshape(classes, groups)), samples, alike).shrunk.mean()) for of in counts
        ]

    generator = np.random.default_rng(0)
    draws = []
    for _ in range(BOOTSTRAP):
        weights = np.zeros(len(learn))
        for one in np.unique(cell):
            members = np.flatnonzero(cell == one)
            weights[members] = generator.multinomial(len(members), np.full(len(members), 1 / len(members)))
        draws.append(values(weights))

    def pairs(fold: Callable[[int], int], seed: int) -> NDArray[np.float64]:
        return np.array([[by[place, fold(place), seed][key] for key in ("value", "error")] for place in places])

    tests = [np.mean([line["test"] for (at, _, _), line in by.items() if at == place]) for place in places]
    known = sum(by[place, 0, 0]["source"] == "papers" for place in places)
    first, turn = (lambda place: 0), (lambda place: place % PARTS)
    of_runs = pairs(first, 0), pairs(first, FRESH), pairs(turn, 0)
    return Pool(*of_runs, np.array(values(np.ones(len(learn)))), np.array(draws).T, np.array(tests), known)


def table(kept: Sequence[overtuning.Line]) -> None:
    """Print what each rule and margin chooses, by set and number of drawn trials."""
    names = list(dict.fromkeys(line["of"] for line in kept))
    pools = {name: pool(name, kept) for name in names}
    for name, of in pools.items():
        ranks = [spearman(value, of.test) for value in (of.split[:, 0], of.turn[:, 0], of.joined)]
        told = ", ".join(
            f"{where} {rank:.2f}" for where, rank in zip(("one split", "a fold each", "all"), ranks, strict=True)
        )
        print(f"{name}: {len(of.test)} configurations, {of.known} known; rank correlation with test: {told}")
    counts = (0, 5, 14)
    for margin in MARGINS:
        head = " | ".join(f"{name}: {count}" for name in names for count in counts)
        print(f"\nMargin {margin:g}\n\n| | {head} | mean regret |")
        print("|---" * (2 + len(names) * len(counts)) + "|")
        for rule in RULES:
            found = [of.regret(rule, count, margin) for of in pools.values() for count in counts]
            shown = " | ".join(f"{test:.1f} ({regret:.1f})" for test, regret in found)
            searched = [regret for place, (_, regret) in enumerate(found) if place % len(counts)]
            print(f"| {rule} | {shown} | {np.mean(searched):.2f} |", flush=True)


def spearman(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    """The correlation of ranks."""
    return float(np.corrcoef(*(np.argsort(np.argsort(each)) for each in (one, other)))[0, 1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("record", "table"))
    parser.add_argument("--file", type=Path, default=FILE)
    parser.add_argument("--sets", nargs="+", choices=(*DIGITS, *TABLES), default=(*DIGITS, *TABLES))
    parser.add_argument("--drawn", type=int, default=14)
    given = parser.parse_args()
    if given.what == "record":
        record(given.file, given.sets, given.drawn)
    else:
        table(overtuning.lines(given.file))


if __name__ == "__main__":
    main()
