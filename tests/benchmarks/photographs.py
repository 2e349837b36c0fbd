"""What a frozen pretrained network is worth on folders of photographs with a bias, and which heads pay on its features.

    STUDY_DATA=... python tests/benchmarks/photographs.py [--folders NAME ...] [--seeds 3] [--json FILE]

A folder has photographs of five classes of CIFAR-10 (JPEG, q75) with a mark that is the class's own in a share of them
and any in the others: a frame of four pixels in a colour, or a white square in a corner or at the middle of the top. A
fifth is the validation split, as biased; 1,000 further photographs have any mark. Printed is their accuracy in
percent: of all, of those whose mark is the class's own, of the others.

Logistic regression is scikit-learn's on standardised features, at its default strength and at the one of five that the
mean accuracy over the cells of class and mark on the validation split chooses, fitted to the training split alone. The
heads are trials of 20 epochs at fixed values, mean over seeds; `small` are trials on pictures of 32 pixels from random
weights, with the network and methods that `study init` drafts.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from PIL import Image
from sklearn.linear_model import LogisticRegression

from study import data, methods
from study.data import Dataset, colour_bias
from study.training import Trial, TrialConfig, features

CLASSES, HELD_OUT, SIDE = (0, 1, 2, 3, 8), 1000, 160
MODEL = {"name": "efficientnet_lite0", "weights": "imagenet", "frozen": True, "adapter": 0}
CPU = torch.device("cpu")


@dataclass(frozen=True)
class Folder:
    """One folder: its mark, in which share it is the class's own, how many pictures to learn from, the seed."""

    mark: str
    share: float
    pictures: int
    seed: int


FOLDERS = {
    "frame-93": Folder("frame", 0.93, 1500, 11),
    "corner-95": Folder("corner", 0.95, 500, 12),
    "frame-98": Folder("frame", 0.98, 500, 13),
}

BALANCED = {"name": "bias_balanced_cross_entropy"}
FAIR = {"name": "eps_sup_info_nce", "regulariser": "fair_kl"}
NOISE = {"augmentation": "noise", "noise": 0.5}
ADAPTER = {**MODEL, "adapter": 1, "adapter_width": 512, "head": "mlp"}
HEADS: Mapping[str, tuple[Mapping[str, Any], Mapping[str, Any], Mapping[str, Any]]] = {
    "cross entropy": (MODEL, {"name": "cross_entropy"}, {}),
    "cross entropy, decay 0.1": (MODEL, {"name": "cross_entropy"}, {"weight_decay": 0.1}),
    "learning from failure, decay 0.1": (MODEL, {"name": "learning_from_failure"}, {"weight_decay": 0.1}),
    "bias-balanced": (MODEL, BALANCED, {}),
    "bias-balanced, decay 0.1": (MODEL, BALANCED, {"weight_decay": 0.1}),
    "bias-balanced, decay 0.3": (MODEL, BALANCED, {"weight_decay": 0.3}),
    "group DRO, decay 0.1": (MODEL, {"name": "group_dro"}, {"weight_decay": 0.1}),
    "FairKL 2 on an adapter": ({**ADAPTER, "head": "none"}, {**FAIR, "name": "cross_entropy", "lambda": 2.0}, {}),
    "eps-SupInfoNCE, FairKL 1.5 on an adapter": (ADAPTER, {**FAIR, "lambda": 1.5}, NOISE),
}
SMALL = {
    "small: cross entropy": ({"name": "small_conv_net"}, {"name": "cross_entropy"}, {}),
    "small: eps-SupInfoNCE, FairKL 1": (
        {"name": "small_conv_net", "head": "mlp"},
        {**FAIR, "lambda": 1.0},
        {"augmentation": "simclr"},
    ),
}


def write(folder: Folder, place: Path) -> None:
    """Write the pictures and their table, with a column `split`."""
    photographs = data.load({"name": "cifar10"}).splits["train"]
    generator = np.random.default_rng(folder.seed)
    rows = generator.permutation(np.flatnonzero(np.isin(photographs.target, CLASSES)))[: folder.pictures + HELD_OUT]
    classes = np.searchsorted(CLASSES, photographs.target[rows])
    learns = np.arange(len(rows)) < folder.pictures
    own = learns & (generator.random(len(rows)) < folder.share)
    marks = np.where(own, classes, generator.integers(0, len(CLASSES), len(rows)))
    splits = np.where(learns, np.where(np.arange(len(rows)) % 5 == 0, "val", "train"), "test")
    names = [f"{row:04}.png" for row in range(len(rows))]
    for name, image in zip(names, marked(photographs.inputs[rows], marks, folder.mark), strict=True):
        Image.fromarray(image.transpose(1, 2, 0)).save(place / name)
    pd.DataFrame({"file": names, "class": classes, "mark": marks, "split": splits}).to_csv(
        place / "labels.csv", index=False
    )


def marked(images: NDArray[np.uint8], marks: NDArray[np.int64], kind: str) -> NDArray[np.uint8]:
    """Images (N, 3, 32, 32) with their marks (N,)."""
    images = images.copy()
    if kind == "frame":
        ground = colour_bias.paint(np.zeros((len(images), *images.shape[2:]), np.float32), marks)
        inner = np.zeros(images.shape[2:], bool)
        inner[4:-4, 4:-4] = True
        return np.where(inner, images, ground)
    for image, mark in zip(images, marks, strict=True):
        top, left = ((0, 0), (0, 26), (26, 0), (26, 26), (0, 13))[mark]
        image[:, top : top + 6, left : left + 6] = 255
    return images


def accuracies(predicted: NDArray[np.int64], dataset: Dataset) -> list[float]:
    """Of all, of the aligned and of the conflicting samples of the test split."""
    test = dataset.splits["test"]
    right, aligned = predicted == test.target, test.target == test.bias
    return [100 * float(part.mean()) for part in (right, right[aligned], right[~aligned])]


def regressions(dataset: Dataset) -> dict[str, tuple[list[float], float]]:
    """Logistic regressions, plain and with every cell of class and mark weighing alike; with their seconds."""
    train, val, test = (dataset.splits[name] for name in ("train", "val", "test"))
    mean, deviation = train.inputs.astype(np.float32).mean(0), train.inputs.astype(np.float32).std(0)
    of_train, of_val, of_test = (
        (split.inputs.astype(np.float32) - mean) / np.where(deviation > 0, deviation, 1) for split in (train, val, test)
    )
    assert train.bias is not None
    assert val.bias is not None
    cells, of_val_cells = train.target * len(CLASSES) + train.bias, val.target * len(CLASSES) + val.bias
    counts = np.bincount(cells, minlength=len(CLASSES) ** 2)
    found = {}
    for name, weights in (("plain", None), ("cells alike", len(cells) / counts[cells] / np.count_nonzero(counts))):
        began, scores, fitted = time.process_time(), {}, {}
        for strength in (1.0, 0.1, 0.01, 0.001, 0.0001):
            model = LogisticRegression(C=strength, max_iter=300).fit(of_train, train.target, sample_weight=weights)
            right = model.predict(of_val) == val.target
            scores[strength] = np.mean([right[of_val_cells == cell].mean() for cell in np.unique(of_val_cells)])
            fitted[strength] = accuracies(model.predict(of_test), dataset)
        seconds = time.process_time() - began
        found[f"regression, {name}, default strength"] = fitted[1.0], seconds / 5
        found[f"regression, {name}, chosen strength"] = fitted[max(scores, key=scores.__getitem__)], seconds
    return found


def trials(
    dataset: Dataset, model: Mapping[str, Any], method: Mapping[str, Any], train: Mapping[str, Any], seeds: int
) -> tuple[list[float], float]:
    """Mean accuracies over seeds, and the CPU seconds of a trial."""
    section = {key: knob.default for key, knob in methods.method_knobs(method).items()} | dict(method)
    values, began = [], time.process_time()
    for seed in range(seeds):
        options = {"epochs": 20, "batch_size": 64, "learning_rate": 0.001, "seed": seed, **train}
        document = {"data": {}, "model": dict(model), "method": section, "train": options}
        trial = Trial(TrialConfig.from_document(document), dataset, "cpu")
        for _ in trial.run():
            pass
        scores = trial.evaluate.scores("encoder", trial.evaluate.features("test"))
        values.append(accuracies(scores.argmax(1).numpy(), dataset))
    return [float(value) for value in np.mean(values, 0)], (time.process_time() - began) / seeds


def measured(name: str, seeds: int) -> dict[str, tuple[list[float], float]]:
    """Accuracies and seconds by what was fitted."""
    with tempfile.TemporaryDirectory() as scratch:
        write(FOLDERS[name], Path(scratch))
        section = {"name": "image_folder", "path": scratch, "target": "class", "bias": "mark"}
        section |= {"split": "split", "val": "given"}
        pictures, small = data.load({**section, "size": SIDE}), data.load({**section, "size": 32})
        began = time.process_time()
        rows = features.of_frozen(MODEL, pictures, CPU)
        found = {"features": ([], time.process_time() - began)} | regressions(rows)
        for kinds, dataset in ((HEADS, rows), (SMALL, small)):
            found |= {head: trials(dataset, *sections, seeds) for head, sections in kinds.items()}
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folders", nargs="+", choices=FOLDERS, default=list(FOLDERS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--json", type=Path)
    chosen = parser.parse_args()
    print("| folder | | all | aligned | conflicting | CPU seconds |\n|---|---|---|---|---|---|")
    for name in chosen.folders:
        for what, (values, seconds) in measured(name, chosen.seeds).items():
            cells = " | ".join(f"{value:.1f}" for value in values) or " | | "
            print(f"| {name} | {what} | {cells} | {seconds:.1f} |", flush=True)
            if chosen.json:
                with chosen.json.open("a") as lines:
                    lines.write(json.dumps([name, what, values, seconds]) + "\n")


if __name__ == "__main__":
    main()
