"""What the size of images and the seeds of confirm are worth in a drafted study of images.

    STUDY_DATA=... python tests/benchmarks/draft_seeds.py run --json FILE [--folders NAME ...]
    python tests/benchmarks/draft_seeds.py table --json FILE

`run` writes each folder as pictures of 64 x 64: 900 to learn from, a fifth of them for validation and as biased as the
others, and 500 without the bias as test. It has `study init` draft a study with bias labels. The papers' two
configurations, which were its best (`draft_space.py`), and the drafted baseline then train on `--seeds` at `data.size`
32, the two on the first `--seeds-of-64` of them at 64, one thread.

The folders: digits and MNIST enlarged to 64 pixels on a coloured ground; photographs of CIFAR-10 enlarged, their frame
the bias.

`table` prints accuracies by size, and for 1 to 4 seeds of confirm: how often the means on validation choose the better
of the two (by its mean on test over all seeds), the test accuracy of what they choose, and how wide the interval of its
gain over the baseline is. Both are means over all sets of so many seeds.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from statistics import fmean, median, stdev
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from own_folder import HELD_OUT, IMAGES, pictures
from PIL import Image
from scipy.stats import t

from study import data
from study.commands import init
from study.commands.init_answers import AnswerSource
from study.data import colour_bias
from study.spec import load_study
from study.training.trial import Trial

SIDE, SHARE = 64, 0.95
FOLDERS = {"digits-95": 0, "mnist-95": 4, "cifar-frame-95": 11}
"""The seed of each."""

METRIC, TEST = "val/shrunk_unbiased_accuracy", "test/accuracy"
BASELINE, PAPERS = "baseline", ("paper 1", "paper 2")


def enlarged(image: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """An image (H, W) or (H, W, 3) at 64 x 64."""
    return np.asarray(Image.fromarray(image).resize((SIDE, SIDE), Image.Resampling.BICUBIC))


def write(name: str, place: Path) -> None:
    """The folder with a column `split`."""
    generator = np.random.default_rng(FOLDERS[name])
    if name.startswith("cifar"):
        source = data.load({"name": "cifar10"}).splits["train"]
        images, classes = source.inputs, source.target
    else:
        images, classes = pictures(name.split("-")[0])
    rows = generator.permutation(len(classes))[: IMAGES + HELD_OUT]
    place.mkdir()
    lines = ["file,class,colour,split"]
    for number, row in enumerate(rows):
        split = "test" if number >= IMAGES else "val" if number % 5 == 0 else "train"
        follows = split != "test" and generator.random() < SHARE
        colour = int(classes[row]) if follows else int(generator.integers(0, 10))
        strokes = np.zeros((SIDE, SIDE), np.uint8) if name.startswith("cifar") else enlarged(images[row])
        picture = colour_bias.paint_digits_on_colour(strokes[None].astype(np.float32) / 255, np.array([colour]))[
            0
        ].transpose(1, 2, 0)
        if name.startswith("cifar"):
            picture[8:-8, 8:-8] = enlarged(images[row].transpose(1, 2, 0))[8:-8, 8:-8]
        Image.fromarray(picture).save(place / f"{number:04}.png")
        lines.append(f"{number:04}.png,{classes[row]},{colour},{split}")
    (place / "labels.csv").write_text("\n".join(lines) + "\n")


def drafted(place: Path) -> Path:
    """The study file that `study init` writes for the folder."""
    flags = init.InitOptions("own", str(place), target="class", bias="colour", gpu=False)
    return init.write_study_file(flags, place / "own.yaml", True, AnswerSource(None, print))


def measure(names: Sequence[str], out: Path, seeds: int, seeds_of_64: int) -> None:
    """Append a line for each seed, folder, size and configuration; what is in the file is not run again."""
    with tempfile.TemporaryDirectory() as scratch:
        studies = {}
        for name in names:
            place = Path(scratch) / name
            write(name, place)
            file = str(drafted(place))
            for size in (32, 64):
                spec = load_study(file, [f"data.size={size}"])
                studies[name, size] = spec, data.load(spec.base["data"])
        there = rows_of(out)
        for seed in range(1, seeds + 1):
            for (name, size), (spec, dataset) in studies.items():
                if size == 64 and seed > seeds_of_64:
                    continue
                tried = dict(zip(PAPERS, spec.search.enqueue, strict=True))
                if size == 32:
                    tried = {BASELINE: spec.search.baseline, **tried}
                for label, params in tried.items():
                    row = {"folder": name, "size": size, "configuration": label, "seed": seed}
                    if any(row.items() <= one.items() for one in there):
                        continue
                    trial = Trial(spec.trial_config(dict(params), seed), dataset, "cpu")
                    started = time.process_time()
                    *_, last = trial.train_epochs()
                    row |= {"seconds": time.process_time() - started, "val": last[METRIC]}
                    row |= {"test": trial.evaluate("test")[TEST]}
                    with out.open("a") as lines:
                        lines.write(json.dumps(row) + "\n")


def rows_of(file: Path) -> list[dict[str, Any]]:
    """What was measured."""
    return [json.loads(line) for line in file.read_text().splitlines()] if file.is_file() else []


Values = Mapping[str, Mapping[int, float]]
"""By configuration and seed."""


def of(rows: Sequence[dict[str, Any]], name: str, size: int, what: str) -> Values:
    """What one folder's trials of a size gave."""
    found: dict[str, dict[int, float]] = {}
    for row in rows:
        if (row["folder"], row["size"]) == (name, size):
            found.setdefault(row["configuration"], {})[row["seed"]] = row[what]
    return found


def percent(values: Iterable[float]) -> str:
    """Fractions in percent, in a row."""
    return ", ".join(f"{100 * value:.1f}" for value in values)


def half_width(values: Sequence[float]) -> float:
    """Half of the 95% interval of their mean."""
    return float(t.ppf(0.975, len(values) - 1)) * stdev(values) / len(values) ** 0.5


def sizes(rows: Sequence[dict[str, Any]], names: Sequence[str]) -> None:
    print("| folder | configuration | at 32, by seed | at 64 | mean of 64 less 32 | CPU seconds an epoch, 32 and 64 |")
    print("|---|---|---|---|---|---|")
    for name in names:
        small, large = of(rows, name, 32, "test"), of(rows, name, 64, "test")
        seconds = [of(rows, name, size, "seconds") for size in (32, 64)]
        for label in PAPERS:
            both = sorted(small[label].keys() & large[label].keys())
            columns = [percent(side[label][seed] for seed in both) for side in (small, large)]
            gain = fmean(large[label][seed] - small[label][seed] for seed in both)
            pace = ", ".join(f"{median(own[label].values()) / 20:.1f}" for own in seconds)
            print(f"| {name} | {label} | {' | '.join(columns)} | {100 * gain:+.1f} | {pace} |")


def seeds(rows: Sequence[dict[str, Any]], names: Sequence[str]) -> None:
    print("| folder | seeds | the better one chosen | its accuracy | gain over the baseline | half of its interval |")
    print("|---|---|---|---|---|---|")
    for name in names:
        val, test = of(rows, name, 32, "val"), of(rows, name, 32, "test")
        means = {label: fmean(test[label].values()) for label in PAPERS}
        for count in (1, 2, 3, 4):
            right, reached, gained, widths = [], [], [], []
            for some in combinations(sorted(set.intersection(*(set(own) for own in test.values()))), count):
                chosen = max(PAPERS, key=lambda label: fmean(val[label][seed] for seed in some))
                gains = [test[chosen][seed] - test[BASELINE][seed] for seed in some]
                right.append(means[chosen] == max(means.values()))
                reached.append(means[chosen])
                gained.append(fmean(gains))
                widths += [half_width(gains)] if count > 1 else []
            width = f"{100 * median(widths):.1f}" if widths else "-"
            print(
                f"| {name} | {count} | {fmean(right):.0%} | {100 * fmean(reached):.1f} | {100 * fmean(gained):+.1f} "
                f"| {width} |"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("run", "table"))
    parser.add_argument("--json", type=Path, required=True)
    parser.add_argument("--folders", nargs="+", choices=FOLDERS, default=list(FOLDERS))
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--seeds-of-64", type=int, default=3)
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    if chosen.what == "run":
        measure(chosen.folders, chosen.json, chosen.seeds, chosen.seeds_of_64)
        return
    rows = rows_of(chosen.json)
    sizes(rows, chosen.folders)
    print()
    seeds(rows, chosen.folders)


if __name__ == "__main__":
    main()
