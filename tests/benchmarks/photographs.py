"""What a frozen pretrained network is worth on folders of photographs with a bias, and which heads pay on its features.

    STUDY_DATA=... python tests/benchmarks/photographs.py --json FILE [--folders NAME ...] [--seeds 3] [--page FILE]

A folder has photographs of five classes of CIFAR-10 (JPEG, q75) with a mark that is the class's own in a share of them
and any in the others: a frame of four pixels in a colour, a fine texture over the whole picture, a tint of it, or a
white square in a corner or at the middle of the top. A fifth is the validation split, as biased; 1,000 further
photographs have any mark. Told is their accuracy in percent: of all, of those whose mark is the class's own, of the
others. What FILE has is not measured again; `--page` writes the table into a page, between its two marks.

Logistic regression is of standardised features by scikit-learn, at its default strength and at that of five which the
mean accuracy over the cells of class and mark on the validation split chooses, fitted to the training split alone, or
at that strength to the validation split, too. The heads are trials of 20 epochs, mean over seeds: `draft` are the
networks, methods and first values that `study init` writes, the others differ from it in what is said. `small` are
trials on pictures of 32 pixels from random weights.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
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
from study.commands import init
from study.commands.init_answers import AnswerSource
from study.data import Dataset, Split, colour_bias, holdout
from study.spec import StudySpec, load_study
from study.training import features
from study.training.config import TrialConfig
from study.training.trial import Trial

CLASSES, HELD_OUT = (0, 1, 2, 3, 8), 1000
FEATURES = 1280
CPU = torch.device("cpu")
BEGIN, END = "<!-- measured -->", "<!-- end -->"


@dataclass(frozen=True)
class Folder:
    """One folder: its mark, in which share it is the class's own, how many pictures to learn from, the seed."""

    mark: str
    share: float
    pictures: int
    seed: int


FOLDERS = {
    "frame-93": Folder("frame", 0.93, 1500, 11),
    "texture-95": Folder("texture", 0.95, 1500, 14),
    "corner-95": Folder("corner", 0.95, 1500, 12),
    "tint-90": Folder("tint", 0.90, 5000, 15),
    "frame-98": Folder("frame", 0.98, 500, 13),
    "texture-90": Folder("texture", 0.90, 500, 16),
}

PLAIN = {"name": "cross_entropy"}
FAIR = {"name": "eps_sup_info_nce", "regulariser": "fair_kl", "lambda": 1.5}
HEADS: Mapping[str, tuple[Mapping[str, Any], Mapping[str, Any], Mapping[str, Any]]] = {
    "draft with bias labels": ({}, {}, {}),
    "draft without bias labels": ({}, {"bias_source": "early_layers"}, {}),
    "draft with bias labels, on validation too": ({}, {}, {"with_val": True}),
    "cross entropy": ({}, PLAIN, {}),
    "learning from failure": ({}, {"name": "learning_from_failure"}, {}),
}
ON_ONE = {
    "group DRO": ({}, {"name": "group_dro"}, {}),
    "eps-SupInfoNCE, FairKL 1.5 on an adapter": (
        {"adapter": 1, "adapter_width": 512, "head": "mlp"},
        FAIR,
        {"augmentation": "noise", "noise": 0.5, "weight_decay": 0.0},
    ),
}
SMALL = {
    "small: cross entropy": ({"name": "small_conv_net"}, PLAIN, {}),
    "small: eps-SupInfoNCE, FairKL 1": (
        {"name": "small_conv_net", "head": "mlp"},
        {**FAIR, "lambda": 1.0},
        {"augmentation": "simclr"},
    ),
}
ONE = "frame-93"
"""The folder of the heads of `ON_ONE` and of the small networks, these on one seed."""


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


TINTS = np.array([(25, -10, -10), (-10, 25, -10), (-10, -10, 25), (20, 20, -20), (-20, 20, 20)])
"""Of each class: added to red, green and blue."""


def marked(images: NDArray[np.uint8], marks: NDArray[np.int64], kind: str) -> NDArray[np.uint8]:
    """Images (N, 3, 32, 32) with their marks (N,)."""
    images = images.copy()
    if kind == "frame":
        ground = colour_bias.paint_digits_on_colour(np.zeros((len(images), *images.shape[2:]), np.float32), marks)
        inner = np.zeros(images.shape[2:], bool)
        inner[4:-4, 4:-4] = True
        return np.where(inner, images, ground)
    if kind == "tint":
        return np.clip(images + TINTS[marks][:, :, None, None], 0, 255).astype(np.uint8)
    if kind == "texture":
        row, column = np.mgrid[: images.shape[2], : images.shape[3]]
        textures = [row % 2, column % 2, (row + column) % 2, (row // 2 + column // 2) % 2, row % 4 // 2]
        signs = np.stack([np.where(texture, 14, -14) for texture in textures])
        return np.clip(images + signs[marks][:, None], 0, 255).astype(np.uint8)
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
    of_val, found = cells(val), {}
    for alike in (False, True):
        name, began, scores, fitted = "cells alike" if alike else "plain", time.process_time(), {}, {}
        for strength in (1.0, 0.1, 0.01, 0.001, 0.0001):
            on_val, on_test = regression(train, strength, alike, val, test)
            right = on_val == val.target
            scores[strength] = np.mean([right[of_val == cell].mean() for cell in np.unique(of_val)])
            fitted[strength] = accuracies(on_test, dataset)
        seconds, chosen = time.process_time() - began, max(scores, key=scores.__getitem__)
        found[f"regression, {name}, default strength"] = fitted[1.0], seconds / 5
        found[f"regression, {name}, chosen strength"] = fitted[chosen], seconds
        (on_test,) = regression(holdout.concatenate_samples(train, val), chosen, alike, test)
        both = f"regression, {name}, chosen strength, on validation too"
        found[both] = accuracies(on_test, dataset), time.process_time() - began
    return found


def regression(train: Split, strength: float, alike: bool, *judged: Split) -> Iterator[NDArray[np.int64]]:
    """What a logistic regression of the last, standardised features predicts of other splits."""
    of_train, own = train.inputs[:, -FEATURES:].astype(np.float32), cells(train)
    counts = np.bincount(own)
    mean, deviation = of_train.mean(0), of_train.std(0)
    deviation = np.where(deviation > 0, deviation, 1)
    weights = len(own) / counts[own] / np.count_nonzero(counts) if alike else None
    model = LogisticRegression(C=strength, max_iter=300)
    model.fit((of_train - mean) / deviation, train.target, sample_weight=weights)
    for split in judged:
        yield model.predict((split.inputs[:, -FEATURES:].astype(np.float32) - mean) / deviation)


def cells(split: Split) -> NDArray[np.int64]:
    """The cell of class and mark of each sample."""
    assert split.bias is not None
    return split.target * len(CLASSES) + split.bias


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
        for _ in trial.train_epochs():
            pass
        scores = trial.evaluate.class_scores("encoder", trial.evaluate.compute_features("test"))
        values.append(accuracies(scores.argmax(1).numpy(), dataset))
    return [float(value) for value in np.mean(values, 0)], (time.process_time() - began) / seeds


def drafted(place: Path) -> StudySpec:
    """The study that `study init` writes for the folder."""
    flags = init.InitOptions("drafted", str(place), target="class", bias="mark", gpu=False)
    return load_study(
        str(init.write_study_file(flags, place / "drafted.yaml", True, AnswerSource(None, lambda line: None)))
    )


def measured(name: str, seeds: int, known: Collection[str]) -> Iterator[tuple[str, list[float], float]]:
    """What was fitted, its accuracies and its seconds, without what is known."""
    with tempfile.TemporaryDirectory() as scratch:
        write(FOLDERS[name], Path(scratch))
        spec = drafted(Path(scratch))
        document = spec.trial_document(spec.search.enqueue[0])
        model, method, train = ({**document[part]} for part in ("model", "method", "train"))
        began = time.process_time()
        rows = features.replace_inputs_with_frozen_features(model, data.load(spec.base["data"]), CPU)
        if "features" not in known:
            yield "features", [], time.process_time() - began
        for head, (network, own, training) in (HEADS | (ON_ONE if name == ONE else {})).items():
            loss = own if "name" in own else {"name": method["name"], **own}
            given = {key: train[key] for key in ("batch_size", "weight_decay", "schedule")}
            if head not in known:
                yield head, *trials(rows, {**model, **network}, loss, {**given, **training}, seeds)
        if not any(what.startswith("regression") for what in known):
            for what, (values, seconds) in regressions(rows).items():
                yield what, values, seconds
        for head, sections in SMALL.items():
            if name == ONE and head not in known:
                yield head, *trials(data.load({**spec.base["data"], "size": 32}), *sections, 1)


def table(lines: Sequence[tuple[str, str, list[float], float]]) -> str:
    """The table of the page: what was fitted by folders, accuracy of all (aligned, conflicting); mean seconds."""
    folders = [name for name in FOLDERS if any(line[0] == name for line in lines)]
    cells = {(folder, what): (values, seconds) for folder, what, values, seconds in lines}
    text = [f"| | {' | '.join(folders)} | CPU seconds |", "|---" * (len(folders) + 2) + "|"]
    for what in dict.fromkeys(line[1] for line in lines):
        own = [cells.get((folder, what)) for folder in folders]
        shown = ["{:.1f} ({:.0f}, {:.0f})".format(*one[0]) if one and one[0] else "" for one in own]
        seconds = np.mean([one[1] for one in own if one])
        text.append(f"| {what} | {' | '.join(shown)} | {seconds:.1f} |")
    return "\n".join(text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folders", nargs="+", choices=FOLDERS, default=list(FOLDERS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--json", type=Path, required=True)
    parser.add_argument("--page", type=Path)
    chosen = parser.parse_args()
    lines = [json.loads(line) for line in chosen.json.read_text().splitlines()] if chosen.json.exists() else []
    for name in chosen.folders:
        known = [line[1] for line in lines if line[0] == name]
        heads = {*HEADS, *(ON_ONE | SMALL if name == ONE else {})}
        if heads <= {*known} and any(what.startswith("regression") for what in known):
            continue
        for what, values, seconds in measured(name, chosen.seeds, known):
            lines.append([name, what, values, seconds])
            with chosen.json.open("a") as file:
                file.write(json.dumps(lines[-1]) + "\n")
    print(table(lines))
    if chosen.page:
        page = chosen.page.read_text()
        before, after = page.partition(BEGIN)[0], page.partition(END)[2]
        chosen.page.write_text(f"{before}{BEGIN}\n{table(lines)}\n{END}{after}")


if __name__ == "__main__":
    main()
