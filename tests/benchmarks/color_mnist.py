"""CCL-K paper Tables 3 and 5 on ColorMNIST, beside the published values: 1 to 2 minutes a row on one CPU thread.

    STUDY_DATA=... python tests/benchmarks/color_mnist.py [--epochs 2] [--seeds 0] [--rows NAME ...] [--json FILE]

Accuracy of logistic regression on the frozen features, in percent, and the colour's mean squared error by ridge
regression on them, in squared units of 0..255: higher is meant to be better, a constant predictor has about 5,500. All
on the last epoch's network. Temperature 0.1 and CCL-K's lambda (`ridge`) 0.01 as in the released command, colours
scaled to 0..1.

Trained by Adam 0.001, since LARS at the released command's rate, 0.001 with trust 0.001, moves a tensor by a millionth
of its length a step: its rows are those of the network as it was drawn, and the published values are near them. What
Adam learns in the same time is the colour, in which two views of one image agree exactly; the narrower the kernel, the
less of it.
"""

import argparse
import json
import time
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import numpy as np
import torch

from study import data, methods
from study.training.config import TrialConfig
from study.training.trial import Trial

MODEL = {"name": "lenet", "head": "mlp", "head_hidden": 84, "head_features": 128, "head_norm": "both"}
TRAIN = {"batch_size": 256, "learning_rate": 0.001, "augmentation": "crop_flip", "crop_size": 32, "evaluation_size": 32}
LARS = {"optimizer": "lars", "weight_decay": 1e-4, "schedule": "cosine"}
INFO_NCE = {"name": "info_nce"}
FAIR = {"name": "fair_cclk", "ridge": 0.01}
SQUARED = 255.0**2


@dataclass(frozen=True)
class Row:
    """A line of the table: what is trained, and the paper's accuracy and error."""

    method: dict[str, Any]
    published: tuple[float, float] | None = None
    train: dict[str, Any] = field(default_factory=dict)
    trained: bool = True


ROWS = {
    "not trained": Row(INFO_NCE, trained=False),
    "InfoNCE, LARS 0.001": Row(INFO_NCE, (84.1, 48.8), LARS),
    "Fair-CCLK, cosine, LARS 0.001": Row(FAIR | {"kernel": "cosine"}, (86.4, 64.7), LARS),
    "InfoNCE": Row(INFO_NCE, (84.1, 48.8)),
    "Fair-InfoNCE, 10 clusters": Row({"name": "fair_info_nce", "clusters": 10}, (85.9, 64.9)),
    "Fair-CCLK, cosine": Row(FAIR | {"kernel": "cosine"}, (86.4, 64.7)),
    **{
        f"Fair-CCLK, RBF, sigma2 {sigma2}": Row(FAIR | {"kernel": "rbf", "sigma2": sigma2}, (86.2, 57.6))
        for sigma2 in (0.01, 0.1, 1.0)
    },
    "Fair-CCLK, Laplacian, 0.3": Row(FAIR | {"kernel": "laplacian", "sigma2": 0.3}, (85.0, 72.8)),
    "Fair-CCLK, polynomial, 3": Row(FAIR | {"kernel": "polynomial", "degree": 3}, (86.7, 61.3)),
}


def config(row: Row, epochs: int, seed: int) -> TrialConfig:
    named = {"temperature": 0.1} | row.method
    method = {key: knob.default for key, knob in methods.method_knobs(named).items()} | named
    train = TRAIN | row.train | {"epochs": epochs, "seed": seed, "final": ["lbfgs", "ridge"]}
    return TrialConfig.from_document(
        {"data": {"name": "color_mnist"}, "model": MODEL, "method": method, "train": train}
    )


def run(row: Row, epochs: int, seed: int) -> dict[str, float]:
    """Figures of the validation and test splits, the method's own of the last epoch, and the seconds of training."""
    of = config(row, epochs, seed)
    trial = Trial(of, data.load(of.data), "cpu")
    started = time.perf_counter()
    *_, last = trial.train_epochs() if row.trained else [{}]
    seconds = time.perf_counter() - started
    found = trial.evaluate("val", final=True) | trial.evaluate("test", final=True)
    own = {key: value for key, value in last.items() if key.startswith(("train/", "speed/"))}
    return {
        "val": 100 * found["val/lbfgs_accuracy"],
        "accuracy": 100 * found["test/lbfgs_accuracy"],
        "mse": SQUARED * found["test/condition_mse"],
        "seconds": seconds,
    } | own


def constant() -> float:
    """The error of the mean colour."""
    splits = data.load({"name": "color_mnist"}).splits
    train, test = splits["train"].condition, splits["test"].condition
    if train is None or test is None:
        raise ValueError("ColorMNIST without colours")
    return SQUARED * float(np.square(test - train.mean(0)).mean())


def spread(values: list[float]) -> str:
    return f"{mean(values):.2f}" + (f" ± {stdev(values):.2f}" if len(values) > 1 else "")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--rows", nargs="+", choices=tuple(ROWS), default=tuple(ROWS))
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    print(f"torch {torch.__version__}, one thread, {given.epochs} epochs of 54,000 images; seeds {given.seeds}")
    print(f"colour MSE of the mean colour: {constant():.0f}")
    print(f"{'':<30} {'val':>14} {'accuracy':>14} {'paper':>6} {'colour MSE':>16} {'paper':>6}")
    rows = []
    for name in given.rows:
        row = ROWS[name]
        found = [run(row, given.epochs, seed) for seed in given.seeds]
        val, accuracy, mse = (spread([one[key] for one in found]) for key in ("val", "accuracy", "mse"))
        paper = [f"{value:.1f}" for value in row.published or ()] or ["", ""]
        own = {key.removeprefix("train/"): round(value, 3) for key, value in found[-1].items() if "train/" in key}
        figures = f"{val:>14} {accuracy:>14} {paper[0]:>6} {mse:>16} {paper[1]:>6}"
        print(f"{name:<30} {figures}  {mean(one['seconds'] for one in found):4.0f} s  {own}", flush=True)
        rows.append({"row": name, "epochs": given.epochs, "seeds": found, "published": row.published})
    if given.json:
        given.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
