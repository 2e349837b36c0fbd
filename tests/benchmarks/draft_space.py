"""What the space, the trials and the epochs of a drafted study are worth on folders of images.

    STUDY_DATA=... python tests/benchmarks/draft_space.py run --json FILE [--folders NAME ...] [--trials 60]
    python tests/benchmarks/draft_space.py table --json FILE
    STUDY_DATA=... python tests/benchmarks/draft_space.py probes [--folders NAME ...]

`run` writes each folder: 900 pictures of 32 x 32 to learn from, a fifth of them for validation and as biased as the
others, and 500 without the bias as test. It has `study init` draft a study with bias labels, and runs that with random
configurations of a space wider than the drafted one (lambda from 0 to 2, so that milder ones are in it), the papers'
two configurations and the baseline beside them, all whole, at a constant learning rate: an epoch is that of a study of
so many epochs. The folders are those of `own_folder.py`, and photographs of CIFAR-10 with a frame whose colour is the
bias.

`table` reads what was recorded: the test accuracy of what the drafted metric picks among k drawn configurations, the
mean over 1,000 draws of k, from the whole space and from the drafted part of it, alone and with the papers' two.

`probes` runs the draft of each folder as it stands, with its probe fitted and online (`train.probe`), and prints what
the study's best reaches on test, the mean over its fresh seeds.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from own_folder import DRAWS, HELD_OUT, IMAGES, PAINT, folder, pictures
from PIL import Image

from study.data import colour_bias
from study.home.folder import StudyFolder
from study.home.record import StudyRecord
from study.ranking import Results

SPACE = {
    "method.epsilon": {"low": 0.0, "high": 0.5},
    "method.lambda": {"low": 0.0, "high": 2.0},
    "method.alpha": {"low": 0.0001, "high": 1.0, "log": True},
    "method.temperature": {"low": 0.05, "high": 1.0, "log": True},
    "train.learning_rate": {"low": 0.0003, "high": 0.01, "log": True},
}
DRAFTED = (0.5, 1.5)
"""The range of lambda that `study init` drafts; the other ranges are the drafted ones."""

FOLDERS = ("digits-90", "digits-95", "digits-98", "mnist-95", "digits-95-square", "cifar-frame-95")
SOURCES = ("baseline", "papers", "search")
METRIC, TEST = "val/shrunk_unbiased_log_loss", "test/accuracy"


def framed(place: Path, share: float, seed: int) -> None:
    """CIFAR-10 photographs with a frame of four pixels, in the class's colour in a share of them, else in any."""
    from study import data

    photographs = data.load({"name": "cifar10"}).splits["train"]
    generator = np.random.default_rng(seed)
    rows = generator.permutation(len(photographs))[: IMAGES + HELD_OUT]
    for name, part, kept in (("learn", rows[:IMAGES], share), ("held_out", rows[IMAGES:], 0.0)):
        images, classes = photographs.inputs[part].copy(), photographs.target[part]
        colours = np.where(generator.random(len(part)) < kept, classes, generator.integers(0, 10, len(part)))
        ground = colour_bias.paint_digits_on_colour(np.zeros((len(part), *images.shape[2:]), np.float32), colours)
        inner = np.zeros(images.shape[2:], bool)
        inner[4:-4, 4:-4] = True
        save(place / name, np.where(inner, images, ground), classes, colours)


def save(place: Path, images: NDArray[np.uint8], classes: NDArray[np.int64], colours: NDArray[np.int64]) -> None:
    """Write images (N, 3, H, W) and their table."""
    place.mkdir(parents=True)
    names = [f"{row:03}.png" for row in range(len(images))]
    for name, image in zip(names, images, strict=True):
        Image.fromarray(image.transpose(1, 2, 0)).save(place / name)
    pd.DataFrame({"file": names, "class": classes, "colour": colours}).to_csv(place / "labels.csv", index=False)


def write(name: str, place: Path) -> Path:
    """The folder with a column `split`: val is a fifth of the 900, test the 500 without the bias."""
    if name == "cifar-frame-95":
        framed(place, 0.95, 11)
    else:
        draw = DRAWS[name]
        generator = np.random.default_rng(draw.seed)
        strokes, digits = pictures(draw.pictures)
        order = generator.permutation(len(digits))[: IMAGES + HELD_OUT]
        for part, rows, share in (("learn", order[:IMAGES], draw.share), ("held_out", order[IMAGES:], 0.0)):
            folder(place / part, strokes[rows], digits[rows], share, PAINT[draw.bias], generator)
    tables = []
    for part in ("learn", "held_out"):
        table = pd.read_csv(place / part / "labels.csv")
        of_val = table.index % 5 == 0
        table["split"] = np.where(of_val, "val", "train") if part == "learn" else "test"
        table["file"] = f"{part}/" + table["file"]
        tables.append(table)
    pd.concat(tables).to_csv(place / "labels.csv", index=False)
    return place


def drafted(name: str, scratch: Path, changes: dict[str, Any]) -> StudyFolder:
    """The folder of a study that `study init` drafts of one folder of images, run with these changes."""
    place, file = write(name, scratch / "pictures"), scratch / "own.yaml"
    quiet: dict[str, Any] = {"env": {**os.environ, "STUDY_HOME": str(scratch / "home")}, "check": True}
    quiet["stdout"] = subprocess.DEVNULL
    study = [sys.executable, "-m", "study"]
    answers = ["--data", str(place), "--target", "class", "--bias", "colour", "--cpu", "--no-pretrained"]
    subprocess.run([*study, "init", "own", *answers, "-o", str(file), "--set=data.split=split"], **quiet)
    words = [f"--set={key}={json.dumps(value)}" for key, value in changes.items()]
    subprocess.run([*study, "run", str(file), "-q", "--set=train.report_test=true", *words], **quiet)
    return StudyFolder(scratch / "home" / "own")


def probes(name: str) -> dict[str, float]:
    """Percent right of the pictures without the bias, by the probe of the draft's trials."""
    reached = {}
    for probe in ("online", "fitted"):
        with tempfile.TemporaryDirectory() as scratch:
            own = drafted(name, Path(scratch), {"train.probe": probe})
            best = Results(own.load_spec(), StudyRecord.load(own.ledger_file)).best
            assert best is not None
            reached[probe] = 100 * float(
                np.mean([trial.reports[-1][TEST] for trial in best.confirm_trials or [best.trial]])
            )
    return reached


def recorded(name: str, trials: int, epochs: int) -> dict[str, Any]:
    """One folder's row: parameters and curves of every trial."""
    with tempfile.TemporaryDirectory() as scratch:
        changes = {
            "search.space": SPACE,
            "search.references": False,
            "search.sampler": "random",
            "search.trials": trials + 3,
            "search.early_stopping": "none",
            "search.confirm": {"top": 0},
            "train.epochs": epochs,
        }
        started = time.perf_counter()
        own = drafted(name, Path(scratch), changes)
        record = StudyRecord.load(own.ledger_file)
        rows = [
            {
                "stage": trial.stage,
                "source": "papers" if trial.number in (1, 2) else trial.stage,
                "params": trial.params,
                "val": [report[METRIC] for report in trial.reports],
                "test": [report[TEST] for report in trial.reports],
            }
            for trial in record.trials.values()
            if trial.state == "complete"
        ]
        return {"folder": name, "seconds": round(time.perf_counter() - started), "trials": rows}


def picked(trials: Sequence[dict[str, Any]], epoch: int) -> float:
    """The test accuracy, in percent, of the trial that is best on validation at an epoch; the first of equal ones."""
    return 100 * min(trials, key=lambda trial: trial["val"][epoch - 1])["test"][epoch - 1]


def of_draws(pool: list[dict[str, Any]], k: int, epoch: int, beside: Sequence[dict[str, Any]] = ()) -> float:
    """The mean of `picked` over 1,000 draws of k of the pool, with those beside."""
    generator = np.random.default_rng(0)
    draws = (generator.choice(len(pool), min(k, len(pool)), replace=False) for _ in range(1000))
    return float(np.mean([picked([*beside, *(pool[at] for at in draw)], epoch) for draw in draws]))


def table(rows: list[dict[str, Any]]) -> None:
    last = min(len(row["trials"][0]["val"]) for row in rows)
    for epoch in (last // 2, last):
        print(f"\nAt epoch {epoch}:\n")
        heads = ["folder", "baseline", "papers' two", "drafted 6", "drafted 14", "whole 6", "whole 14", "whole 30"]
        heads += [f"papers + {pool}" for pool in ("drafted 5", "drafted 9", "drafted 14", "whole 9", "whole 30")]
        heads += ["best there is"]
        print(f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}")
        lines = []
        for row in rows:
            every = row["trials"]
            by = {source: [one for one in every if one["source"] == source] for source in SOURCES}
            low, high = DRAFTED
            drafted = [one for one in by["search"] if low <= one["params"]["method.lambda"] <= high]
            papers = by["papers"]
            lines.append(
                [
                    picked(by["baseline"], epoch),
                    picked(papers, epoch),
                    *(of_draws(drafted, k, epoch) for k in (6, 14)),
                    *(of_draws(by["search"], k, epoch) for k in (6, 14, 30)),
                    *(of_draws(drafted, k, epoch, papers) for k in (5, 9, 14)),
                    *(of_draws(by["search"], k, epoch, papers) for k in (9, 30)),
                    100 * max(one["test"][epoch - 1] for one in every),
                ]
            )
            print(f"| {row['folder']} | {' | '.join(f'{value:.1f}' for value in lines[-1])} |")
        print(f"| mean | {' | '.join(f'{value:.1f}' for value in np.mean(lines, axis=0))} |")
    print("\nThe five best of each folder on test at the last epoch:\n")
    for row in rows:
        for one in sorted(row["trials"], key=lambda one: -one["test"][-1])[:5]:
            params = ", ".join(f"{key.split('.')[1]} {value:.3g}" for key, value in one["params"].items())
            print(f"- {row['folder']}: {100 * one['test'][-1]:.1f}, {one['source']}: {params}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("run", "table", "probes"))
    parser.add_argument("--json", type=Path)
    parser.add_argument("--folders", nargs="+", choices=FOLDERS, default=FOLDERS)
    parser.add_argument("--trials", type=int, default=60, help="random configurations")
    parser.add_argument("--epochs", type=int, default=20)
    chosen = parser.parse_args()
    if chosen.what == "probes":
        for name in chosen.folders:
            reached = probes(name)
            print(f"| {name} | {reached['online']:.1f} | {reached['fitted']:.1f} |", flush=True)
        return
    if chosen.json is None:
        parser.error("--json FILE is needed")
    if chosen.what == "table":
        table([json.loads(line) for line in chosen.json.read_text().splitlines()])
        return
    for name in chosen.folders:
        row = recorded(name, chosen.trials, chosen.epochs)
        with chosen.json.open("a") as lines:
            lines.write(json.dumps(row) + "\n")
        print(name, row["seconds"], "s", flush=True)


if __name__ == "__main__":
    main()
