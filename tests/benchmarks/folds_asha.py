"""Does ASHA pay where each configuration has a fold of its own?

    STUDY_DATA=... python tests/benchmarks/folds_asha.py record [--sets NAME ...] [--drawn 30]
    python tests/benchmarks/folds_asha.py table [--searches 300]

`record` trains the known configurations of sets of `folds.py` and some that are drawn on all five folds, on one thread,
and adds what each epoch reports to `folds_asha.jsonl` beside this file, one line a trial; those that are there are left
out. `table` reads searches off it: each is offered some of the drawn ones in an order of its own, each of which runs on
the next fold in turn; the best three and the known ones run on all folds, where the mean value chooses. ASHA is the
study's own, told one trial after the other, as `study init` drafts it: reduction 3, trials compared after half of their
epochs. Printed are how often the best of those offered by the mean value over folds was not ended, the share of epochs,
and the accuracies on test of what three searches choose, in percent, with the mean regret to the best of those offered:
of all, with ASHA, and of the first 70% without it, which take as many epochs.
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import folds
import numpy as np
import overtuning
import torch
from numpy.typing import NDArray

from study.spec import load_study
from study.spec.objective import TrialScore
from study.sweep.early_stopping import EarlyStopping

FILE = Path(__file__).with_suffix(".jsonl")
SETS = ("digits-0", "mnist-3000", "adult-3000", "compas")
METRICS = (folds.SHARE, folds.LOSS)
TOP, SHARE = folds.TOP, 0.7


def record(file: Path, names: Sequence[str], count: int) -> None:
    """Train what is not there yet."""
    have = {(line["of"], line["split"], line["place"]) for line in overtuning.lines(file)}
    for name, fold in product(names, range(folds.PARTS)):
        for place, (source, _, make) in enumerate(folds.of(name)(name, fold, count)):
            if (name, fold, place) in have:
                continue
            trial = make(0)
            reports = list(trial.train_epochs())
            line = {"of": name, "split": fold, "place": place, "source": source}
            line |= {metric: [round(report[f"val/{metric}"], 4) for report in reports] for metric in METRICS}
            overtuning.add(file, line | {"test": trial.evaluate("test")[folds.tested(name)]})


@dataclass(frozen=True)
class Curves:
    """What each epoch of the configurations of a set reports, by one metric.

    Attributes:
        values: larger is better, (folds, N, epochs).
        test: accuracy of each at its end, the mean over folds, in percent, (N,).
        known: how many of the first are known.
    """

    values: NDArray[np.float64]
    test: NDArray[np.float64]
    known: int

    @classmethod
    def of(cls, name: str, metric: str, kept: Sequence[overtuning.Line]) -> "Curves":
        """Make one of the lines of a set."""
        by_fold = [
            sorted((line for line in kept if (line["of"], line["split"]) == (name, fold)), key=lambda one: one["place"])
            for fold in range(folds.PARTS)
        ]
        count = min(map(len, by_fold))
        sign = -1.0 if metric == folds.LOSS else 1.0
        values = np.array([[line[metric] for line in of_fold[:count]] for of_fold in by_fold])
        tests = np.array([[line["test"] for line in of_fold[:count]] for of_fold in by_fold])
        known = sum(line["source"] == "papers" for line in by_fold[0])
        return cls(sign * values, 100 * tests.mean(0), known)

    def search(self, offered: NDArray[np.int64], turn: NDArray[np.int64], stops: bool) -> tuple[float, bool, float]:
        """Return the test accuracy of what one search chooses, whether its best ran to the end, the share of epochs.

        Args:
            offered: the drawn configurations, in the order in which they begin.
            turn: the fold on which each of them runs.
        """
        epochs = self.values.shape[2]
        rule = EarlyStopping(load_study("quickstart", [f"train.epochs={epochs}", "search.early_stopping=asha"]))
        ran = np.full(len(offered), epochs)
        for place, (one, fold) in enumerate(zip(offered, turn, strict=True)):
            for epoch in range(1, epochs if stops else 1):
                value = (float(self.values[fold, one, epoch - 1]),)
                if rule.should_prune(place, epoch, TrialScore(value, value)):
                    ran[place] = epoch
                    break
        last, joined = self.values[turn, offered, -1], self.values[:, :, -1].mean(0)
        top = offered[np.argsort(np.where(ran == epochs, -last, np.inf), kind="stable")[:TOP]]
        offers = np.concatenate([np.arange(self.known), top])
        chosen = offers[joined[offers].argmax()]
        return self.test[chosen], bool(ran[joined[offered].argmax()] == epochs), float(ran.mean() / epochs)


def table(kept: Sequence[overtuning.Line], searches: int) -> None:
    """Print what searches choose, by metric, set and number of drawn ones."""
    print("| metric | set | drawn | best is kept | epochs | all | with ASHA | 70% | 70% less ASHA (95% interval) |")
    print("|---" * 9 + "|")
    for metric, name in product(METRICS, dict.fromkeys(line["of"] for line in kept)):
        curves = Curves.of(name, metric, kept)
        drawn = np.arange(curves.known, len(curves.test))
        for count in (14, len(drawn)):
            generator, found, regrets = np.random.default_rng(0), [], []
            for search in range(searches):
                offered = generator.permutation(drawn)[:count]
                turn, fewer = (np.arange(count) + search) % folds.PARTS, round(SHARE * count)
                whole, early = (curves.search(offered, turn, stops) for stops in (False, True))
                found.append([whole, early, curves.search(offered[:fewer], turn[:fewer], False)])
                regrets.append(curves.test[[*range(curves.known), *offered]].max())
            of_all = np.array(found)
            tests, (_, kept_best, epochs) = of_all[:, :, 0], of_all[:, 1].mean(0)
            lost = np.mean(np.array(regrets)[:, None] - tests, 0)
            gains = tests[:, 2] - tests[:, 1]
            error = 1.96 * gains.std(ddof=1) / np.sqrt(searches)
            shown = " | ".join(f"{test:.1f} ({less:.1f})" for test, less in zip(tests.mean(0), lost, strict=True))
            known = f"{name} | {count} of {len(drawn)} | {kept_best:.0%} | {epochs:.0%}"
            print(f"| {metric} | {known} | {shown} | {gains.mean():+.2f} ± {error:.2f} |")


def main() -> None:
    torch.set_num_threads(1)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("record", "table"))
    parser.add_argument("--file", type=Path, default=FILE)
    parser.add_argument("--sets", nargs="+", choices=folds.SETS, default=SETS)
    parser.add_argument("--drawn", type=int, default=30)
    parser.add_argument("--searches", type=int, default=300)
    given = parser.parse_args()
    if given.what == "record":
        record(given.file, given.sets, given.drawn)
    else:
        table(overtuning.lines(given.file), given.searches)


if __name__ == "__main__":
    main()
