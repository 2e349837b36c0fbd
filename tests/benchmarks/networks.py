"""Which small network learns a small folder of images on a CPU, and what of it decides?

    python tests/benchmarks/networks.py [--only cause sizes draft] [--seeds 2] [--sizes 32 64] [--networks NAME ...]

A real folder is made: scikit-learn's digits enlarged to pictures of `--picture` pixels, PNG, on a ground whose colour
is the class's own in 95% of 690 training and 122 validation pictures, and any colour in 985 test pictures; beside it
the CSV. `study init` drafts a study of it (of all 1,797 pictures: in batches of 64), and trials of that file run with
alpha 0.01 and lambda 0.5 on the column's splits, one thread.
Printed are the test accuracy of each seed, which the colour cannot help, and the CPU seconds of an epoch.

* cause: variants of the network that small_conv_net was, at 32 pixels: what follows its three convolutions.
* sizes: small_conv_net and what it was, by `data.size`.
* draft: the drafted file with other batch sizes and epochs, at the first of `--sizes`.
"""

import argparse
import functools
import itertools
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from PIL import Image
from torch import Tensor, nn

from study import data
from study.commands import init
from study.commands.init_answers import AnswerSource
from study.data import Dataset, colour_bias
from study.models import Encoder, small_networks
from study.spec import load_study
from study.training.trial import Trial

SPLITS = {"train": 690, "val": 122, "test": 985}
FAIR = ["method.alpha=0.01", "method.lambda=0.5"]
BATCHES, EPOCHS = (128, 64, 32), (20, 40)


class Old(Encoder):
    """Three convolutions of 16, 32 and 64 channels with two poolings, whatever the size, and an end."""

    features = 64

    def __init__(self, end: Callable[[int], nn.Module], positions: int, last_activation: bool) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for inputs, outputs in pairwise((3, 16, 32, 64)):
            layers += [nn.Conv2d(inputs, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU()]
            layers += [nn.MaxPool2d(2, ceil_mode=True)] if outputs < 64 else []
        layers = layers if last_activation else layers[:-1]
        self.layers = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(positions), nn.Flatten())
        self.end = end(64 * positions**2)

    def forward(self, images: Tensor) -> Tensor:
        return self.end(self.layers(images))


def nothing(features: int) -> nn.Module:
    return nn.Identity()


def linear(features: int) -> nn.Module:
    return nn.Linear(features, 64)


def linear_relu(features: int) -> nn.Module:
    return nn.Sequential(nn.Linear(features, 64), nn.ReLU())


OLD = {
    "mean over positions (as it was)": (nothing, 1, True),
    "the same without the last ReLU": (nothing, 1, False),
    "mean, batch norm": (nn.BatchNorm1d, 1, True),
    "mean, linear": (linear, 1, True),
    "2 x 2 positions, linear": (linear, 2, True),
    "4 x 4 positions, linear": (linear, 4, True),
    "4 x 4 positions, linear, ReLU": (linear_relu, 4, True),
}
AS_IT_WAS, NOW = next(iter(OLD)), "small_conv_net"


def folder(place: Path, side: int) -> None:
    """Write the pictures and their CSV."""
    from sklearn.datasets import load_digits

    digits, generator = load_digits(), np.random.default_rng(0)
    order = generator.permutation(len(digits.target))
    split = np.repeat(list(SPLITS), list(SPLITS.values()))
    target = digits.target[order]
    biased = (split != "test") & (generator.random(len(order)) < 0.95)
    colours = np.where(biased, target, generator.integers(0, 10, len(order)))
    names = []
    for row, (image, colour) in enumerate(zip(digits.images[order], colours, strict=True)):
        small = Image.fromarray((image * (255 / 16)).astype(np.uint8))
        strokes = np.asarray(small.resize((side, side), Image.Resampling.BICUBIC), dtype=np.float32) / 255
        picture = colour_bias.paint_digits_on_colour(strokes[None], np.array([colour]))[0]
        names.append(f"{row:04}.png")
        Image.fromarray(picture.transpose(1, 2, 0)).save(place / names[-1])
    table = pd.DataFrame({"file": names, "digit": target, "colour": colours, "split": split})
    table.to_csv(place / "labels.csv", index=False)


def drafted(place: Path) -> Path:
    """The study file that `study init` writes for the folder."""
    flags = init.InitOptions(
        "digits", str(place), target="digit", bias="colour", methods=["eps_sup_info_nce+fair_kl"], gpu=False
    )
    return init.write_study_file(flags, place / "digits.yaml", True, AnswerSource(None, print))


@functools.cache
def loaded(file: Path, size: int | None) -> Dataset:
    return data.load(load_study(str(file), assignments(size)).base["data"])


def assignments(size: int | None) -> list[str]:
    return ["data.split=split", *([] if size is None else [f"data.size={size}"])]


def measured(file: Path, network: str, size: int | None, seeds: int, *more: str) -> str:
    """Test accuracies in percent and CPU seconds of an epoch, as cells of a table."""
    own, spent, found = small_networks.SmallConvNet, [], []
    if network in OLD:
        small_networks.SmallConvNet = lambda shape, width: Old(*OLD[network])
    model = [] if network in {*OLD, NOW} else [f"model={{name: {network}}}"]
    for seed in range(seeds):
        spec = load_study(str(file), [*assignments(size), *FAIR, *model, *more])
        trial = Trial(spec.trial_config({}, seed), loaded(file, size), "cpu")
        started = time.process_time()
        epochs = len(list(trial.train_epochs()))
        spent.append((time.process_time() - started) / epochs)
        found.append(f"{100 * trial.evaluate('test')['test/accuracy']:.0f}")
    small_networks.SmallConvNet = own
    return f"{', '.join(found)} | {min(spent):.2f}"


def rows(part: str, file: Path, given: argparse.Namespace) -> Iterator[str]:
    if part == "cause":
        yield "| network, 32 pixels | test accuracy, % | CPU s an epoch |\n|---|---|---|"
        for network in given.networks or (*OLD, NOW):
            yield f"| {network} | {measured(file, network, 32, given.seeds)} |"
    elif part == "sizes":
        yield "| network | data.size | test accuracy, % | CPU s an epoch |\n|---|---|---|---|"
        for size in given.sizes:
            for network in given.networks or (AS_IT_WAS, NOW):
                yield f"| {network} | {size} | {measured(file, network, size, given.seeds)} |"
    else:
        yield "| batch size | epochs | test accuracy, % | CPU s an epoch |\n|---|---|---|---|"
        for batch, epochs in itertools.product(BATCHES, EPOCHS):
            keys = [f"train.batch_size={batch}", f"train.epochs={epochs}", "search.early_stopping={}"]
            yield f"| {batch} | {epochs} | {measured(file, NOW, given.sizes[0], given.seeds, *keys)} |"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=("cause", "sizes", "draft"), default=("cause", "sizes", "draft"))
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--picture", type=int, default=64)
    parser.add_argument("--sizes", type=int, nargs="+", default=(32, 28, 64, 128, 224))
    parser.add_argument("--networks", nargs="+", help="of the table of parts, or names of the catalogue")
    given = parser.parse_args(arguments)
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as place:
        folder(Path(place), given.picture)
        file = drafted(Path(place))
        for part in given.only:
            for row in rows(part, file, given):
                print(row, flush=True)


if __name__ == "__main__":
    main()
