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
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import overtuning
import selection_curves
import torch

from study import data
from study.data import Dataset, holdout
from study.data.dataset import Split
from study.data.folds import of_fold
from study.spec import load_study
from study.training import Trial

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
    assert train.bias is not None and val.bias is not None
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("record", "table"))
    parser.add_argument("--file", type=Path, default=FILE)
    parser.add_argument("--sets", nargs="+", choices=(*DIGITS, *TABLES), default=(*DIGITS, *TABLES))
    parser.add_argument("--drawn", type=int, default=14)
    given = parser.parse_args()
    record(given.file, given.sets, given.drawn)


if __name__ == "__main__":
    main()
