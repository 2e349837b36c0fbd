"""Does the regulariser undo the bias? Biased-MNIST with LeNet-5, minutes on one CPU thread.

    STUDY_DATA=... python tests/benchmarks/biased_mnist.py [--rho 0.99 0.997] [--epochs 8] [--seeds 0] [--json FILE]

eps-SupInfoNCE alone, with FairKL at the four best known cells of FairKL Table 12's grid, and with the paper's own forms
of FairKL beside the `reference` one that its released code computes. Accuracy in percent of the last epoch's online
linear probe on the test split, whose colours are unbiased; the best epoch's is not looked at. alpha acts once and the
base temperature is the temperature.
"""

import argparse
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from study import data, methods
from study.training.config import TrialConfig
from study.training.diverged import DivergedError
from study.training.trial import Trial

CELLS = [
    {"alpha": 1.0, "lambda": 0.0},
    *({"alpha": alpha, "lambda": weight} for alpha in (0.01, 0.1) for weight in (0.5, 1.0)),
    *({"alpha": 0.1, "lambda": 1.0, "variant": variant} for variant in ("kl", "moments", "mean")),
]


def config(rho: float, cell: dict[str, Any], epochs: int, seed: int) -> TrialConfig:
    regularised = {"regulariser": "fair_kl"} if cell["lambda"] else {}
    named = {"name": "eps_sup_info_nce", "epsilon": 0.5} | regularised
    method = {key: knob.default for key, knob in methods.method_knobs(named).items()} | named | cell
    if not regularised:
        del method["lambda"]
    train = {"epochs": epochs, "learning_rate": 0.001, "weight_decay": 1e-5, "lr_milestones": [0.333, 0.667]}
    sections = {"data": {"name": "biased_mnist", "rho": rho}, "model": {"name": "lenet"}}
    return TrialConfig.from_document(sections | {"method": method, "train": train | {"seed": seed}})


def run(rho: float, cell: dict[str, Any], epochs: int, seed: int) -> dict[str, float]:
    """The test metrics of the last epoch and what an epoch took."""
    of = config(rho, cell, epochs, seed)
    trial = Trial(of, data.load(of.data), "cpu")
    try:
        *_, last = trial.train_epochs()
    except DivergedError as problem:
        return {"test/accuracy": float("nan"), "diverged": str(problem)}  # type: ignore[dict-item]
    return trial.evaluate("test") | {"time/epoch": last["time/epoch"], "val/accuracy": last["val/accuracy"]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rho", type=float, nargs="+", default=[0.99, 0.997])
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--cells", type=int, nargs="+", default=list(range(len(CELLS))))
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    print(f"torch {torch.__version__}, {given.epochs} epochs, one thread; test accuracy, and on conflicting samples")
    rows = []
    for rho in given.rho:
        for cell in (CELLS[index] for index in given.cells):
            for seed in given.seeds:
                found = run(rho, cell, given.epochs, seed)
                rows.append({"rho": rho, "seed": seed, **cell, **found, "train": asdict(config(rho, cell, 1, 0).train)})
                what = ", ".join(f"{key} {value}" for key, value in cell.items())
                conflicting = found.get("test/conflicting_accuracy", float("nan"))
                figures = f"{100 * found['test/accuracy']:6.2f} {100 * conflicting:6.2f}"
                print(f"rho {rho}  {what:<42} seed {seed} {figures}  {found.get('time/epoch', 0):.1f} s", flush=True)
    if given.json:
        given.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
