"""The user's own folder of images: what `study init` drafts for it, and what `study run` makes of the draft.

    STUDY_DATA=... python tests/benchmarks/own_folder.py [--draws NAME ...] [--cases labels none ...] [--json FILE]

A draw is a real folder: 900 pictures of 32 x 32, digits on a ground whose colour is the class's own in a share of them
and any colour in the others, and a CSV with file, class and colour. In the draws `...-square` the ground is black, and
the bias is at which of ten places of the border a white square of 4 x 4 pixels stands. `study init` with its defaults
writes a study of it, `study run` runs that in a home of its own. Then the networks of the confirm trials, of the chosen
configuration and of the drafted baseline on the same fresh seeds, classify 500 further pictures whose bias says
nothing. The draw `digits-none` has no bias.

Cases: `labels`: the column of the bias is given; `none`: nothing is; `colour`: nothing, but that it may be the
colour. Printed are percent of the 500, mean over the seeds, the seconds of `study run`, and what it was chosen by. Rows
are appended to the JSON file, one a line. MNIST is read from STUDY_DATA. With `--rules` the study also runs the pick of
each selection rule on the fresh seeds, and the column `accuracy's pick` is the configuration that plain accuracy on the
validation split picks among the same trials.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from PIL import Image

from study import data
from study.data import Dataset, colour_bias, mnist
from study.data.dataset import Split
from study.home.folder import StudyFolder
from study.home.record import StudyRecord, TrialRecord
from study.ranking import Results
from study.ranking.candidate_selection import judging_trials
from study.ranking.rule_picks import fresh_seed_trials
from study.training.trial import Trial

SIDE, IMAGES, HELD_OUT = 32, 900, 500
CASES = {"labels": ["--bias", "colour"], "none": ["--bias", "none"], "colour": ["--bias", "none", "--guess", "colour"]}


@dataclass(frozen=True)
class Draw:
    """One draw of the folder: in how many pictures the bias is the class's own, the seed, whose digits, which bias."""

    share: float
    seed: int
    pictures: str = "digits"
    bias: str = "colour"


Paint = Callable[[NDArray[np.float32], NDArray[np.int64]], NDArray[np.uint8]]
"""Strokes (N, H, W) in 0..1 and biases (N,) to pictures (N, 3, H, W)."""


def square(strokes: NDArray[np.float32], places: NDArray[np.int64]) -> NDArray[np.uint8]:
    """White strokes on black, and a white square of 4 x 4 at one of ten places: five at the top, five at the bottom."""
    pictures = np.repeat((strokes[:, None] * 255).astype(np.uint8), 3, axis=1)
    for picture, place in zip(pictures, places, strict=True):
        top, left = (SIDE - 4) * (place // 5), 7 * (place % 5)
        picture[:, top : top + 4, left : left + 4] = 255
    return pictures


PAINT: dict[str, Paint] = {"colour": colour_bias.paint_digits_on_colour, "square": square}

DRAWS = {
    "digits-95": Draw(0.95, 0),
    "digits-90": Draw(0.90, 1),
    "digits-98": Draw(0.98, 2),
    "digits-95-again": Draw(0.95, 3),
    "mnist-95": Draw(0.95, 4, "mnist"),
    "digits-none": Draw(0.0, 5),
    "digits-95-third": Draw(0.95, 6),
    "mnist-90": Draw(0.90, 7, "mnist"),
    "digits-95-square": Draw(0.95, 8, bias="square"),
    "mnist-95-square": Draw(0.95, 9, "mnist", "square"),
}


def write(draw: Draw, place: Path) -> None:
    """Write the folder `train` of 900 pictures, the folder `held_out` of 500 with any colour, and a CSV in each."""
    generator = np.random.default_rng(draw.seed)
    strokes, digits = pictures(draw.pictures)
    order = generator.permutation(len(digits))[: IMAGES + HELD_OUT]
    for name, rows, share in (("train", order[:IMAGES], draw.share), ("held_out", order[IMAGES:], 0.0)):
        folder(place / name, strokes[rows], digits[rows], share, PAINT[draw.bias], generator)


def folder(
    place: Path,
    strokes: NDArray[np.uint8],
    digits: NDArray[np.int64],
    share: float,
    paint: Paint,
    generator: np.random.Generator,
) -> None:
    """Write pictures of strokes (N, H, W) with the class's bias in a share of them, with any in the others."""
    place.mkdir(parents=True)
    follows = generator.random(len(digits)) < share
    colours = np.where(follows, digits, generator.integers(0, 10, len(digits)))
    names = [f"{row:03}.png" for row in range(len(digits))]
    for name, image, colour in zip(names, strokes, colours, strict=True):
        large = Image.fromarray(image).resize((SIDE, SIDE), Image.Resampling.BICUBIC)
        painted = paint(np.asarray(large, np.float32)[None] / 255, np.array([colour]))[0]
        Image.fromarray(painted.transpose(1, 2, 0)).save(place / name)
    pd.DataFrame({"file": names, "class": digits, "colour": colours}).to_csv(place / "labels.csv", index=False)


def pictures(name: str) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Strokes (N, H, W) and digits (N,)."""
    if name == "mnist":
        return mnist.read_images_and_digits("train")
    from sklearn.datasets import load_digits

    digits = load_digits()
    return (digits.images * (255 / 16)).astype(np.uint8), digits.target


def measured(name: str, case: str, more: Sequence[str]) -> dict[str, Any]:
    """One row: init, run, and the accuracy of the chosen and the plain networks on the held-out pictures."""
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch)
        write(DRAWS[name], place)
        environment = {**os.environ, "STUDY_HOME": str(place / "home")}
        file = place / "own.yaml"
        answers = ["--data", str(place / "train"), "--target", "class", *CASES[case], "--cpu", "-o", str(file), *more]
        study = [sys.executable, "-m", "study"]
        subprocess.run([*study, "init", "own", *answers], env=environment, check=True)
        started = time.perf_counter()
        run = subprocess.run([*study, "run", str(file), "-q"], env=environment, check=True, capture_output=True)
        seconds = time.perf_counter() - started
        row = {"draw": name, "case": case, "seconds": round(seconds), **judged(place), "answers": list(more)}
        return row | {"said": run.stdout.decode().splitlines()}


def judged(place: Path) -> dict[str, Any]:
    """The accuracies of the confirm trials' networks, and what they were chosen by."""
    own = StudyFolder(place / "home" / "own")
    spec, record = own.load_spec(), StudyRecord.load(own.ledger_file)
    best, plain = Results(spec, record).best, Results(spec, record).baseline
    assert best is not None
    assert plain is not None
    dataset = held_out(data.load(dict(spec.base["data"])), spec.base["data"], place)

    def accuracies(trials: Sequence[TrialRecord]) -> list[float]:
        values = []
        for record_of_trial in trials:
            config = spec.trial_config(record_of_trial.params, record_of_trial.seed)
            config = replace(config, train=replace(config.train, inferred_groups="none"))  # none of the held-out ones
            trial = Trial(config, dataset, "cpu")
            trial.load_model(own.model_file(record_of_trial.number))
            values.append(round(100 * trial.evaluate("test")["test/accuracy"], 1))
        return values

    of_best, of_plain = accuracies(judging_trials(best)), accuracies(judging_trials(plain))
    by_accuracy = next(pick for pick in Results(spec, record).rule_picks if pick.rule.name == "accuracy").trial_number
    return {
        "by_accuracy": accuracies(fresh_seed_trials(record, by_accuracy)),
        "metric": spec.metric,
        "chosen": best.trial.params,
        "plain": of_plain,
        "best": of_best,
        "gain": round(mean(of_best) - mean(of_plain), 1),
    }


def held_out(dataset: Dataset, section: Any, place: Path) -> Dataset:
    """The study's data with the held-out pictures as its test split."""
    whole = {**section, "path": str(place / "held_out"), "test_share": 0.0}
    parts = [split for name, split in data.load(whole).splits.items() if name in ("train", "val")]
    test = Split(np.concatenate([part.inputs for part in parts]), np.concatenate([part.target for part in parts]))
    if dataset.splits["train"].bias is not None:
        test = replace(test, bias=np.concatenate([part.bias for part in parts if part.bias is not None]))
    return replace(dataset, splits={**dataset.splits, "test": test}, stored_fingerprint=None)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", nargs="+", choices=DRAWS, default=list(DRAWS))
    parser.add_argument("--cases", nargs="+", choices=CASES, default=("labels", "none"))
    parser.add_argument("--json", type=Path)
    parser.add_argument("--rules", action="store_true", help="also what plain accuracy would have picked")
    parser.add_argument("--set", action="append", default=[], help="for study init, as --set train.epochs=40")
    chosen = parser.parse_args()
    settings = [*chosen.set, *(["search.confirm.rules=true"] if chosen.rules else [])]
    print("| draw | case | plain | accuracy's pick | chosen | gain | seconds | by |\n|---|---|---|---|---|---|---|---|")
    for case in chosen.cases:
        for name in chosen.draws:
            row = measured(name, case, [part for text in settings for part in ("--set", text)])
            other = f"{mean(row['by_accuracy']):.1f}" if row["by_accuracy"] else "-"
            figures = (
                f"{mean(row['plain']):.1f} | {other} | {mean(row['best']):.1f} | {row['gain']:+.1f} | {row['seconds']}"
            )
            print(f"| {name} | {case} | {figures} | {row['metric']} |", flush=True)
            if chosen.json:
                with chosen.json.open("a") as lines:
                    lines.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
