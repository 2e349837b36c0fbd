"""What a margin for the incumbents (`search.margin`) is worth, by the number of drawn trials.

    STUDY_DATA=... python tests/benchmarks/overtuning.py record [--folders NAME ...] [--splits 0 1] [--drawn 30]
    python tests/benchmarks/overtuning.py table

`record` trains, on folders of `draft_space.py` and on one thread, the papers' two configurations and some drawn from
the drafted space, each whole for 20 epochs on one seed. Split k validates on the k-th fifth of the 900 pictures, as
biased as the others; test are the 500 without the bias. One line a trial is added to `overtuning.jsonl` beside this
file, and those that are there are left out, so that a run that was ended goes on. Kept are the cells of the validation
split (class, bias class, samples, right ones, the sums of log loss and Brier score), the metric with its standard
error, and the test accuracy. It also keeps the cells of the splits that `selection_curves.npz` was recorded on.

`table` offers 0, 5, 14 and 30 of the drawn ones (of a smaller pool all) beside the incumbents, 300 draws each, and
prints the test value of what each margin chooses, and in brackets the regret to the best of those that were offered.
Besides the papers' on these folders, it takes recorded curves: those of `debias_all`, six configurations of the papers
and 193 drawn ones on two seeds, judged by an unbiased split; and those of `selection_curves.npz`, whose incumbent is
not good: once the plain loss, and once a drawn configuration. The standard errors of these are made from the recorded
accuracies and the cells: a cell of images is taken to have the accuracy of all conflicting, or all aligned, samples,
one of a table that of all cells.
"""

import argparse
import base64
import json
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import draft_space
import numpy as np
import pandas as pd
import selection_curves
import torch
from numpy.typing import NDArray
from torch.nn import functional

from study import data
from study.data import Dataset
from study.spec import StudySpec, load_study
from study.spec.configuration import are_same_configuration
from study.training.cell_statistics import CellStatistics
from study.training.standard_errors import binomial_error
from study.training.trial import Trial

FILE = Path(__file__).with_suffix(".jsonl")
FOLDERS = ("digits-95", "mnist-95", "digits-98")
METRIC = "val/shrunk_unbiased_accuracy"
OFFERED = (0, 5, 14, 30)
MARGINS = (0.0, 0.5, 1.0, 1.5, 2.0)
DRAWS, PARTS = 300, 5
SPACE = {**draft_space.SPACE, "method.lambda": {"low": 0.5, "high": 1.5}}
"""That of `study init`, for images with bias labels."""

Line = dict[str, Any]

# Recording.


def drafted(place: Path, split: int) -> StudySpec:
    """What `study init` drafts for such a folder whose validation split is the part of this number."""
    table = pd.read_csv(place / "labels.csv")
    learn = table["split"] != "test"
    table.loc[learn, "split"] = np.where(table.index[learn] % PARTS == split, "val", "train")
    table.to_csv(place / "labels.csv", index=False)
    section = {"name": "image_folder", "path": str(place), "target": "class", "split": "split", "bias": "colour"}
    document = {
        "name": "own",
        "data": {**section, "val": "given", "size": 32},
        "model": {"name": "small_conv_net"},
        "method": {"name": "eps_sup_info_nce", "regulariser": "fair_kl"},
        "train": {"epochs": 20, "batch_size": 32, "learning_rate": 0.001},
        "search": {"space": SPACE, "enqueue": "papers", "metric": METRIC},
        "resources": {"cpu": 1},
    }
    file = place / "own.yaml"
    file.write_text(json.dumps(document))
    return load_study(str(file))


def drawn(count: int) -> list[dict[str, float]]:
    """The same configurations for every folder and split."""
    generator = np.random.default_rng(54)

    def value(domain: Mapping[str, Any]) -> float:
        if domain.get("log"):
            return float(np.exp(generator.uniform(np.log(domain["low"]), np.log(domain["high"]))))
        return float(generator.uniform(domain["low"], domain["high"]))

    return [{key: value(domain) for key, domain in SPACE.items()} for _ in range(count)]


def measured(trial: Trial, test: str = "test/accuracy") -> Line:
    """Train it; its line, without what names it. `right`: of each validation sample, as bits in hexadecimal."""
    started = time.perf_counter()
    report = list(trial.train_epochs())[-1]
    scores = trial.evaluate.class_scores("encoder", trial.evaluate.compute_features("val")).float()
    split = trial.dataset.splits["val"]
    assert split.bias is not None
    target = torch.from_numpy(split.target)
    likely = scores.softmax(1)
    lost = functional.cross_entropy(scores, target, reduction="none")
    brier = (likely - functional.one_hot(target, likely.shape[1])).square().sum(1)
    right = (scores.argmax(1) == target).int()
    of_samples = pd.DataFrame({"y": split.target, "s": split.bias, "n": 1, "right": right, "log": lost})
    of_samples = of_samples.assign(brier=brier)
    cells = of_samples.astype(float).groupby(["y", "s"], as_index=False).sum().round(4)
    return {
        "value": report[METRIC],
        "error": report[f"{METRIC}_standard_error"],
        "test": trial.evaluate("test")[test],
        "cells": cells.to_numpy().tolist(),
        "right": np.packbits(right.numpy().astype(bool)).tobytes().hex(),
        "lost": base64.b85encode(lost.numpy().astype("<f2").tobytes()).decode(),
        "seconds": round(time.perf_counter() - started, 1),
    }


def of_splits(folder: str, splits: Sequence[int]) -> Iterator[tuple[StudySpec, Dataset]]:
    """A folder as each of its splits has it."""
    for split in splits:
        with tempfile.TemporaryDirectory() as scratch:
            spec = drafted(draft_space.write(folder, Path(scratch) / "pictures"), split)
            yield spec, data.load(dict(spec.base["data"]))


def record(file: Path, folders: Sequence[str], splits: Sequence[int], count: int) -> None:
    """Train what is not there yet, each configuration on all splits of all folders before the next one."""
    torch.set_num_threads(1)
    have = {(line["of"], line["split"], line["place"]) for line in lines(file)}
    there = {
        (folder, split): of for folder in folders for split, of in zip(splits, of_splits(folder, splits), strict=True)
    }
    papers = next(spec for spec, _ in there.values()).search.enqueue
    given = [*(("papers", params) for params in papers), *(("search", params) for params in drawn(count))]
    for (number, (source, params)), at in product(enumerate(given), there):
        if (*at, number) not in have:
            spec, dataset = there[at]
            named = {"of": at[0], "split": at[1], "place": number, "source": source, "params": dict(params)}
            add(file, named | measured(Trial(spec.trial_config(params, 0), dataset, "cpu")))
    for name, of in selection_curves.SETS.items():
        for split in range(4 if name == "adult" else 5):
            if (name, split, 0) not in have:
                held = of.splits(split).splits["val"]
                counts = pd.DataFrame({"y": held.target, "s": held.bias, "n": 1}).groupby(["y", "s"]).n.sum()
                cells = [[*map(int, at), int(samples)] for at, samples in counts.items()]
                add(file, {"of": name, "split": split, "place": 0, "source": "curves", "cells": cells})


def add(file: Path, line: Line) -> None:
    """Keep a line."""
    with file.open("a") as out:
        out.write(json.dumps(line) + "\n")
    print(line["of"], line["split"], line["place"], line.get("seconds", ""), flush=True)


def lines(file: Path) -> list[Line]:
    """What is kept."""
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


# What each margin chooses.


@dataclass(frozen=True)
class Pool:
    """The configurations of one split, each array (N,).

    Attributes:
        value, error: the metric on the validation split and its standard error.
        test: what is wanted.
        incumbents: the places of those that are there already.
    """

    of: str
    value: NDArray[np.float64]
    error: NDArray[np.float64]
    test: NDArray[np.float64]
    incumbents: Sequence[int]

    def chosen(self, drawn: NDArray[np.int64], margin: float) -> float:
        """The test value of what is chosen of incumbents and some drawn ones (K,): as `Results.incumbent_standing`."""
        incumbent = max(self.incumbents, key=lambda place: float(self.value[place]))
        gain = self.value[drawn] - self.value[incumbent]
        clears = (gain > 0) & (gain > margin * np.hypot(self.error[drawn], self.error[incumbent]))
        return float(self.test[drawn[np.where(clears, gain, 0).argmax()]] if clears.any() else self.test[incumbent])

    def mean(self, offered: int, margin: float) -> tuple[float, float]:
        """The mean test value of what is chosen, and the mean regret to the best of all offered, in points."""
        others = np.setdiff1d(np.arange(len(self.value)), self.incumbents)
        generator = np.random.default_rng(0)
        draws = [generator.permutation(others)[:offered] for _ in range(DRAWS if offered else 1)]
        found = np.array([self.chosen(draw, margin) for draw in draws])
        best = np.array([self.test[[*self.incumbents, *draw]].max() for draw in draws])
        return 100 * float(found.mean()), 100 * float((best - found).mean())


def pools(kept: Sequence[Line]) -> dict[str, list[Pool]]:
    """The pools by kind of incumbents: of each kind those of every data set and split."""
    by_split: dict[tuple[str, int], list[Line]] = {}
    for line in kept:
        by_split.setdefault((line["of"], line["split"]), []).append(line)
    found: dict[str, list[Pool]] = {PAPERS: [], "the plain loss": [], "a drawn one": []}
    for (of, split), rows in by_split.items():
        if rows[0]["source"] == "curves":
            for kind, pool in recorded(of, split, rows[0]["cells"]):
                found[kind].append(pool)
        else:
            columns = (np.array([row[key] for row in rows]) for key in ("value", "error", "test"))
            papers = [place for place, row in enumerate(rows) if row["source"] == "papers"]
            found[PAPERS].append(Pool(of, *columns, papers))
    found[PAPERS] += debias_all()
    return found


PAPERS = "the papers'"


def debias_all() -> Iterator[Pool]:
    """The curves of that study at the last epoch, by seed."""
    kept = np.load(FILE.parent / "curves" / "debias_all.npz")
    params = [json.loads(text) for text in kept["params"]]
    given = load_study("debias_all").search.enqueue
    incumbents = [place for place, each in enumerate(params) if any(are_same_configuration(each, one) for one in given)]
    names = list(kept["metrics"])
    for values in kept["values"][:, 1:, -1].astype(float):  # without the baseline
        value, test = (values[:, names.index(f"{split}/accuracy")] for split in ("val", "test"))
        samples = torch.full((len(value),), 360.0)
        error = binomial_error(torch.from_numpy(value) * samples, samples).numpy()
        yield Pool("debias_all, unbiased", value, error, test, [place - 1 for place in incumbents])


def recorded(of: str, split: int, cells: Sequence[Sequence[int]]) -> Iterator[tuple[str, Pool]]:
    """The recorded curves of a split at the last epoch: with the plain loss as the incumbent, and, twenty times, with
    one that was drawn."""
    curves = np.load(selection_curves.FILE)[f"{of}-{split}-{split}"][:, -1].astype(float)
    curves = curves[~np.isnan(curves[:, 0])]
    columns = dict(zip(selection_curves.COLUMNS, curves.T, strict=True))
    size = 1 + max(max(y, s) for y, s, _ in cells)
    samples = torch.zeros(1 + max(y for y, _, _ in cells), 1 + max(s for _, s, _ in cells), dtype=torch.float64)
    for y, s, count in cells:
        samples[y, s] = count
    aligned = torch.eye(size, dtype=torch.float64) if samples.shape[0] == samples.shape[1] == 10 else None
    conflicting, accuracy = columns["val/conflicting_accuracy"], columns["val/accuracy"]
    errors = []
    for place in range(len(curves)):
        if aligned is None:
            share = torch.full_like(samples, columns["val/unbiased_accuracy"][place])
        else:
            total, against = float(samples.sum()), float((samples * (1 - aligned)).sum())
            own = (accuracy[place] * total - conflicting[place] * against) / (total - against)
            share = aligned * min(own, 1.0) + (1 - aligned) * conflicting[place]
        errors.append(float(CellStatistics(samples * share, samples).variance_of_shrunk_mean.sqrt()))
    value = columns["val/shrunk_unbiased_accuracy"]
    test = columns["test/accuracy" if aligned is not None else "test/unbiased_accuracy"]
    whole = Pool(of, value, np.array(errors), test, [0])
    yield "the plain loss", whole
    drawn = [replace(whole, incumbents=[place]) for place in np.random.default_rng(split).permutation(len(value))[:5]]
    yield from (("a drawn one", pool) for pool in drawn)


Regrets = dict[tuple[str, float], float]
"""By data set and margin, the mean over splits and numbers of drawn trials above 0."""


def table(kept: Sequence[Line]) -> None:
    """Print what each margin chooses, and the margin that is best when each data set is left out in turn."""
    regrets: Regrets = {}
    for kind, of_kind in pools(kept).items():
        names = list(dict.fromkeys(pool.of for pool in of_kind))
        print(f"\nThe incumbents are {kind}:\n")
        print(f"| | margin | {' | '.join(f'{count} drawn' for count in OFFERED)} |\n|{'---|' * (2 + len(OFFERED))}")
        for name in names:
            pool_of = [pool for pool in of_kind if pool.of == name]
            for margin in MARGINS:
                found = np.array([[pool.mean(count, margin) for count in OFFERED] for pool in pool_of]).mean(0)
                shown = " | ".join(f"{test:.1f} ({regret:.1f})" for test, regret in found)
                print(f"| {name} | {margin:g} | {shown} |", flush=True)
                regrets[f"{kind}, {name}", margin] = float(found[1:, 1].mean())
    for kind in dict.fromkeys(name.split(", ")[0] for name, _ in regrets):
        print(f"\nMean regret, the incumbents being {kind}, when one data set is left out:\n")
        names = list(dict.fromkeys(name for name, _ in regrets if name.startswith(kind)))
        for left_out in [*names, None]:
            others = [name for name in names if name != left_out]
            means = {margin: float(np.mean([regrets[name, margin] for name in others])) for margin in MARGINS}
            best = min(MARGINS, key=lambda margin: means[margin])
            told = ", ".join(f"{margin:g}: {mean:.2f}" for margin, mean in means.items())
            name = (left_out or ", nothing").split(", ", 1)[1]
            own = (
                f"; there {regrets[left_out, best]:.2f}, without a margin {regrets[left_out, 0.0]:.2f}"
                if left_out
                else ""
            )
            print(f"- {name}: {told}; best {best:g}{own}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("record", "table"))
    parser.add_argument("--file", type=Path, default=FILE)
    parser.add_argument("--folders", nargs="+", choices=draft_space.FOLDERS, default=FOLDERS)
    parser.add_argument("--splits", type=int, nargs="+", default=(0, 1))
    parser.add_argument("--drawn", type=int, default=20)
    given = parser.parse_args()
    if given.what == "record":
        record(given.file, given.folders, given.splits, given.drawn)
    else:
        table(lines(given.file))


if __name__ == "__main__":
    main()
