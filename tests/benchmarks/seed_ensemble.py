"""What the mean of several seeds' probabilities is worth, beside one network, and beside the seed validation chooses.

    STUDY_DATA=... python tests/benchmarks/seed_ensemble.py [--settings NAME ...] [--seeds 15] [--json FILE]

Each setting is one configuration, trained on `--seeds` seeds with the same data and splits. The seeds are divided into
threes and fives, each a final training: `one seed` is the mean of its networks, `chosen` the one that is best by
`val/shrunk_unbiased_log_loss`, by log loss where no bias is known, `ensemble` the mean of their probabilities, and
`better` the ensemble or the chosen seed, whichever is better by that metric. Told are the means over these trainings on
the test split: accuracy and mean accuracy of the cells of class and bias in percent, log loss in nats; and the gain in
accuracy over the chosen seed with its standard error over trainings. Rows are appended to the JSON file, one a line; a
setting that it has is not run again.

`digits` is the quickstart's data, `folder` a folder of `own_folder.py` and `photographs` one of `photographs.py`, both
with the first configuration that `study init` drafts for them; `compas` and `adult` are tables.
"""

import argparse
import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import own_folder
import photographs
import torch

from study import data, methods
from study.commands import init
from study.commands.init_answers import AnswerSource
from study.data import Dataset
from study.data.folds import select_fold
from study.spec import load_study
from study.training import features
from study.training.config import TrialConfig
from study.training.ensemble_probabilities import mean_log_probabilities
from study.training.metrics import compute_metrics
from study.training.trial import Trial

Sections = tuple[Dataset, Mapping[str, Any], Mapping[str, Any], Mapping[str, Any]]
"""Data set, and the sections `model`, `method` and `train`."""

Scores = Mapping[str, torch.Tensor]
"""log p of each class, (N, classes), by split."""

CPU = torch.device("cpu")
FAIR_KL = {"name": "eps_sup_info_nce", "temperature": 0.1, "regulariser": "fair_kl", "alpha": 0.01, "lambda": 1.0}
QUICK = {"epochs": 20, "batch_size": 128, "optimizer": "adam", "weight_decay": 1e-5}


def digits(method: Mapping[str, Any], rate: float) -> Sections:
    """The quickstart's data and network."""
    dataset = data.load({"name": "biased_digits", "rho": 0.95})
    return dataset, {"name": "small_conv_net"}, method, {**QUICK, "learning_rate": rate}


def drafted(place: Path, bias: str) -> Sections:
    """What `study init` drafts first for a folder, on features where the network is frozen."""
    flags = init.InitOptions("drafted", str(place), target="class", bias=bias, gpu=False)
    file = init.write_study_file(flags, place / "drafted.yaml", True, AnswerSource(None, lambda line: None))
    spec = load_study(str(file))
    document = spec.trial_document(spec.search.enqueue[0] if spec.search.enqueue else {})
    model, method, train = ({**document[part]} for part in ("model", "method", "train"))
    dataset = select_fold(data.load(spec.base["data"]), 0 if spec.folds else None)
    if model.get("frozen"):
        dataset = features.replace_inputs_with_frozen_features(model, dataset, CPU)
    return dataset, model, method, train


def folder(name: str, place: Path) -> Sections:
    """A folder of `own_folder.py`; what its draft holds out is the test split."""
    own_folder.write(own_folder.DRAWS[name], place)
    return drafted(place / "train", "colour")


def marked_photographs(name: str, place: Path) -> Sections:
    """A folder of `photographs.py`."""
    photographs.write(photographs.FOLDERS[name], place)
    return drafted(place, "mark")


def table(name: str, network: str) -> Sections:
    """A table of the papers."""
    train = {"epochs": 20, "batch_size": 128, "learning_rate": 0.003, "optimizer": "adam"}
    return data.load({"name": name}), {"name": network}, {"name": "cross_entropy"}, train


SETTINGS: dict[str, Callable[[Path], Sections]] = {
    "digits, FairKL": lambda place: digits(FAIR_KL, 0.001),
    "digits, bias-balanced": lambda place: digits({"name": "bias_balanced_cross_entropy"}, 0.0014),
    "digits, cross entropy": lambda place: digits({"name": "cross_entropy"}, 0.0014),
    "photographs, frame-93": lambda place: marked_photographs("frame-93", place),
    "photographs, texture-95": lambda place: marked_photographs("texture-95", place),
    "folder, digits-95": lambda place: folder("digits-95", place),
    "folder, digits-95-square": lambda place: folder("digits-95-square", place),
    "compas, linear": lambda place: table("compas", "linear"),
    "compas, network": lambda place: table("compas", "mlp"),
    "adult, network": lambda place: table("adult", "mlp"),
}


def trained(sections: Sections, seed: int) -> Scores:
    """What a seed's network says."""
    dataset, model, method, train = sections
    complete = {key: knob.default for key, knob in methods.method_knobs(method).items()} | dict(method)
    document = {"data": {}, "model": dict(model), "method": complete, "train": {**train, "seed": seed}}
    trial = Trial(TrialConfig.from_document(document), dataset, "cpu")
    for _ in trial.train_epochs():
        pass
    return {split: trial.evaluate.log_probabilities(split) for split in ("val", "test")}


MEASURES = ("accuracy", "unbiased_accuracy", "log_loss")


def metrics(scores: Scores, dataset: Dataset, name: str) -> dict[str, float]:
    """Every metric on a split."""
    split, facts = dataset.splits[name], dataset.facts.facts_of_split(name)
    bias = None if split.bias is None else torch.from_numpy(split.bias)
    values = compute_metrics(scores[name], scores[name].argmax(1), torch.from_numpy(split.target), bias, facts)
    return {metric: float(value) for metric, value in values.items()}


def measures(scores: Scores, dataset: Dataset) -> list[float]:
    """The measures on the test split."""
    values = metrics(scores, dataset, "test")
    return [values.get(name, float("nan")) for name in MEASURES]


def loss(scores: Scores, dataset: Dataset) -> float:
    """What validation says; smaller is better."""
    values = metrics(scores, dataset, "val")
    return values.get("shrunk_unbiased_log_loss", values["log_loss"])


def row(name: str, seeds: int) -> dict[str, Any]:
    """One setting: each way's measures, by number of seeds and training."""
    with tempfile.TemporaryDirectory() as scratch:
        sections = SETTINGS[name](Path(scratch))
        networks = [trained(sections, seed) for seed in range(seeds)]
    dataset, told = sections[0], dict[str, Any](setting=name, seeds=seeds)
    on_val = partial(loss, dataset=dataset)
    for count in (3, 5):
        ways: dict[str, list[list[float]]] = {"one seed": [], "chosen": [], "ensemble": [], "better": []}
        for start in range(0, seeds - count + 1, count):
            these = networks[start : start + count]
            joined = {split: mean_log_probabilities([one[split] for one in these]) for split in ("val", "test")}
            best = min(these, key=on_val)
            ways["one seed"].append(np.mean([measures(one, dataset) for one in these], 0).tolist())
            ways["chosen"].append(measures(best, dataset))
            ways["ensemble"].append(measures(joined, dataset))
            ways["better"].append(measures(min(joined, best, key=on_val), dataset))
        told[str(count)] = ways
    return told


def text(values: Sequence[Sequence[float]]) -> str:
    """Accuracy, mean accuracy of the cells, log loss."""
    accuracy, unbiased, lost = np.mean(values, 0)
    return f"{100 * accuracy:.1f} / {100 * unbiased:.1f} / {lost:.3f}"


def gain(ways: Mapping[str, Sequence[Sequence[float]]], way: str) -> str:
    """Points of accuracy over the chosen seed, with the standard error over trainings."""
    points = 100 * (np.array(ways[way]) - np.array(ways["chosen"]))[:, 0]
    return f"{points.mean():+.1f} ± {points.std(ddof=1) / np.sqrt(len(points)):.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--settings", nargs="+", choices=SETTINGS, default=list(SETTINGS))
    parser.add_argument("--seeds", type=int, default=15)
    parser.add_argument("--json", type=Path)
    chosen = parser.parse_args()
    known = chosen.json.read_text().splitlines() if chosen.json and chosen.json.exists() else []
    rows = {told["setting"]: told for told in map(json.loads, known)}
    print("| setting | one seed | chosen of 3 | ensemble of 3 | ensemble, better of 3 | ensemble, better of 5 |")
    print("|---|---|---|---|---|---|")
    for name in chosen.settings:
        if name not in rows:
            rows[name] = row(name, chosen.seeds)
            if chosen.json:
                with chosen.json.open("a") as file:
                    print(json.dumps(rows[name]), file=file)
        three, five = rows[name]["3"], rows[name]["5"]
        cells = [text(three[way]) for way in ("one seed", "chosen", "ensemble")]
        cells += [f"{gain(ways, 'ensemble')}, {gain(ways, 'better')}" for ways in (three, five)]
        print(f"| {' | '.join([name, *cells])} |", flush=True)


if __name__ == "__main__":
    main()
