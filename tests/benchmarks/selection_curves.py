"""Records what selection rules see of 101 configurations, epoch by epoch, and what the configurations are worth.

    python tests/benchmarks/selection_curves.py digits [--splits 0 1 2 3 4] [--seed 100]

One configuration is the plain loss; the others are drawn once from alpha, lambda, epsilon, temperature and learning
rate, the same for all splits. Each is trained on one thread with eps-SupInfoNCE and FairKL. Every epoch is judged by
all rules of `study.metrics.selection_rules` on a validation split as biased as training (`val`), on one that is not
(`unbiased`), and on test. The curves of a split are added to `selection_curves.npz` beside this file, half precision.

* digits: the quickstart's digits, rho 0.95, 20 epochs. Validation 359 digits, of which 20 conflict.
* mnist: Biased-MNIST at 14 x 14 pixels, rho 0.98, 2,400 digits, small_conv_net of width 8, 10 epochs. Validation 900.
* compas: COMPAS, race, 12 epochs. adult: 15% of Adult, sex, 12 epochs. Their unbiased validation is as many of each
  (class, bias) cell as the smallest has.

The split says which samples are where (for digits and Biased-MNIST also the colours), the seed is that of training; by
default it is the split's number. One split takes 2 to 4 minutes on an idle core; the files of MNIST, COMPAS and Adult
must be in STUDY_DATA.
"""

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from study import data, methods, models
from study.data import Dataset, colour_bias, holdout
from study.data.dataset import Split
from study.training import metrics
from study.training.config import TrainOptions, TrialConfig
from study.training.diverged import DivergedError
from study.training.trial import Trial

FILE = Path(__file__).with_suffix(".npz")
COUNT, SEED = 100, 18
JUDGED = ("val", "unbiased", "test")
SHOWN = {
    "val": (
        "accuracy",
        "worst_class_accuracy",
        "balanced_accuracy",
        "inferred_unbiased_accuracy",
        "inferred_conflicting_accuracy",
        "inferred_worst_group_accuracy",
        "unbiased_accuracy",
        "conflicting_accuracy",
        "worst_group_accuracy",
        "shrunk_unbiased_accuracy",
        "shrunk_worst_group_accuracy",
        "equalized_odds",
    ),
    "unbiased": ("accuracy", "unbiased_accuracy", "shrunk_unbiased_accuracy", "shrunk_worst_group_accuracy"),
    "test": ("accuracy", "unbiased_accuracy"),
}
"""The metrics that are recorded, by split; those that a data set does not have are nan."""

COLUMNS = [f"{split}/{name}" for split, names in SHOWN.items() for name in names]


@dataclass(frozen=True)
class Set:
    """A data set of the benchmark: `splits` makes that of a number, with a split `unbiased` beside."""

    splits: Callable[[int], Dataset]
    model: Mapping[str, Any]
    epochs: int
    batch_size: int


def configurations() -> list[dict[str, float]]:
    """The plain loss, then those that are drawn; `learning_rate` is a key of `train`, the others of `method`."""
    generator = np.random.default_rng(SEED)

    def log(low: float, high: float) -> float:
        return float(np.exp(generator.uniform(np.log(low), np.log(high))))

    drawn = [
        {
            "alpha": log(0.001, 1.0),
            "lambda": float(generator.uniform(0, 2)),
            "epsilon": float(generator.choice([0.0, 0.1, 0.25, 0.5])),
            "temperature": log(0.05, 0.5),
            "learning_rate": log(0.0003, 0.01),
        }
        for _ in range(COUNT)
    ]
    return [{"alpha": 1.0, "lambda": 0.0, "epsilon": 0.0, "temperature": 0.1, "learning_rate": 0.001}, *drawn]


def digits(number: int) -> Dataset:
    """The quickstart's, and the validation digits coloured both ways."""
    unbiased = data.load({"name": "biased_digits", "rho": 0.95, "seed": number})
    biased = data.load({"name": "biased_digits", "rho": 0.95, "seed": number, "val": "biased"})
    return Dataset(unbiased.facts, {**biased.splits, "unbiased": unbiased.splits["val"]})


def small(split: Split, share: float, number: int) -> Split:
    """A share of Biased-MNIST's split, stratified, at half the size."""
    _, members = holdout.stratified_split(
        split.target * len(colour_bias.BACKGROUND_COLOURS) + split.bias, share, number
    )
    fewer = holdout.select_samples(split, members)
    pixels = fewer.inputs.reshape(len(fewer), 3, 14, 2, 14, 2).mean((3, 5))
    return replace(fewer, inputs=np.round(pixels).astype(np.uint8))


def small_mnist(whole: Dataset, number: int = 0) -> Dataset:
    """Shares of the splits of Biased-MNIST at half the size: 4% of train, 15% of val, 10% of test."""
    shares = {"train": 0.04, "val": 0.15, "test": 0.1}
    splits = {name: small(whole.splits[name], share, number) for name, share in shares.items()}
    return Dataset(replace(whole.facts, shape=(3, 14, 14)), splits)


def mnist(number: int) -> Dataset:
    """A part of Biased-MNIST at half the size."""
    biased, unbiased = (
        small_mnist(data.load({"name": "biased_mnist", "rho": 0.98, "seed": number, "val": kind}), number)
        for kind in ("biased", "unbiased")
    )
    return Dataset(biased.facts, {**biased.splits, "unbiased": unbiased.splits["val"]})


def table(name: str, share: float = 1.0) -> Callable[[int], Dataset]:
    """A share of a table's rows, and as many validation rows of each cell as the smallest has."""

    def make(number: int) -> Dataset:
        whole = data.load({"name": name, "split_seed": number})

        def cells(split: Split) -> NDArray[np.int64]:
            return split.target * (whole.facts.bias_classes or 1) + split.bias

        def part(split: Split) -> Split:
            return (
                holdout.select_samples(split, holdout.stratified_split(cells(split), share, number)[1])
                if share < 1
                else split
            )

        splits = {split_name: part(split) for split_name, split in whole.splits.items()}
        in_val, generator = cells(splits["val"]), np.random.default_rng((number, 5))
        names, counts = np.unique(in_val, return_counts=True)
        chosen = [generator.permutation(np.flatnonzero(in_val == cell))[: counts.min()] for cell in names]
        return Dataset(
            whole.facts, {**splits, "unbiased": holdout.select_samples(splits["val"], np.sort(np.concatenate(chosen)))}
        )

    return make


SETS = {
    "digits": Set(digits, {"name": "small_conv_net"}, 20, 128),
    "mnist": Set(mnist, {"name": "small_conv_net", "width": 8}, 10, 64),
    "compas": Set(table("compas"), {"name": "mlp"}, 12, 256),
    "adult": Set(table("adult", 0.15), {"name": "mlp"}, 12, 256),
}


def trial(of: Set, dataset: Dataset, configuration: Mapping[str, float], seed: int) -> Trial:
    """The trial of a configuration."""
    values = dict(configuration)
    rate = values.pop("learning_rate")
    method: dict[str, Any] = {"name": "eps_sup_info_nce", "regulariser": "fair_kl", **values}
    method = {key: knob.default for key, knob in methods.method_knobs(method).items()} | method
    model = {key: knob.default for key, knob in models.model_knobs(of.model).items()} | dict(of.model)
    options = TrainOptions(
        epochs=of.epochs,
        batch_size=of.batch_size,
        learning_rate=rate,
        weight_decay=1e-5,
        seed=seed,
        inferred_groups="gce",
    )
    dataset = replace(dataset, facts=replace(dataset.facts, splits=tuple(dataset.splits)))
    return Trial(TrialConfig({}, model, method, options), dataset, "cpu")


def judged(scores: Tensor, split: Split, dataset: Dataset, inferred: Tensor | None) -> dict[str, float]:
    """The metrics of a split's scores (N, classes)."""
    bias = None if split.bias is None else torch.from_numpy(split.bias)
    target = torch.from_numpy(split.target)
    values = metrics.compute_metrics(scores, scores.argmax(1), target, bias, dataset.facts, inferred)
    return {name: float(value) for name, value in values.items()}


def curves(of: Set, number: int, seed: int, tried: Sequence[Mapping[str, float]] | None = None) -> NDArray[np.float16]:
    """(configurations, epochs, columns), nan behind the epoch in which a trial diverged."""
    dataset, tried = of.splits(number), tried or configurations()
    found = np.full((len(tried), of.epochs, len(COLUMNS)), np.nan, np.float16)
    for place, configuration in enumerate(tried):
        loop = trial(of, dataset, configuration, seed)
        try:
            for epoch, _ in enumerate(loop.train_epochs()):
                for split in JUDGED:
                    scores = loop.evaluate.class_scores("encoder", loop.evaluate.compute_features(split))
                    values = judged(scores, dataset.splits[split], dataset, loop.inferred_groups_by_split.get(split))
                    for name in SHOWN[split]:
                        found[place, epoch, COLUMNS.index(f"{split}/{name}")] = values.get(name, np.nan)
        except DivergedError as problem:
            print(f"configuration {place}: {problem}")
    return found


def add(name: str, values: NDArray[np.float16]) -> None:
    """Put the curves of a split into the file."""
    known = dict(np.load(FILE)) if FILE.exists() else {}
    np.savez_compressed(FILE, **{**known, name: values})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("set", choices=SETS)
    parser.add_argument("--splits", type=int, nargs="+", default=range(5))
    parser.add_argument("--seed", type=int, help="of training; by default the split's number")
    given = parser.parse_args()
    for number in given.splits:
        seed = number if given.seed is None else given.seed
        add(f"{given.set}-{number}-{seed}", curves(SETS[given.set], number, seed))
        print(f"{given.set}, split {number}, seed {seed}: recorded")


if __name__ == "__main__":
    main()
