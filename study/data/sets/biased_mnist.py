"""biased_mnist: MNIST digits on a background colour that betrays the class in a share rho of the training images.

The construction of the FairKL paper (section 4.2) and its released data set: exact shares, strokes made white.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from study.data import colour_bias, holdout, mnist
from study.data.dataset import Facts, Split, SplitLabels
from study.data.source import Source


@dataclass(frozen=True)
class Options:
    """Keys of the `data` section."""

    rho: colour_bias.RhoKey = 0.99
    seed: colour_bias.ColourSeedKey = 0
    val_share: holdout.ValShareKey = 0.1
    val: holdout.BiasedOrUnbiasedValKey = "unbiased"
    folds: holdout.FoldsKey = None


def describe(options: Options) -> Facts:
    """Return the facts: ten digits, ten colours."""
    return Facts(classes=10, bias_classes=10, shape=(3, 28, 28), title="Biased-MNIST", aligned=tuple(range(10)))


def sources(options: Options) -> tuple[Source, ...]:
    """Return MNIST's four files."""
    return mnist.mnist_sources()


def load_labels(options: Options) -> dict[str, SplitLabels]:
    """Return the digits and colours of each split; no images are read."""
    return {name: SplitLabels(part.target, part.colours) for name, part in _choose_splits(options).items()}


class _UnpaintedSplit(NamedTuple):
    """A split before it is painted: one of MNIST's files, which of its images, their digits and colours (N,)."""

    file: str
    members: NDArray[np.int64]
    target: NDArray[np.int64]
    colours: NDArray[np.int64]


def _choose_splits(options: Options) -> dict[str, _UnpaintedSplit]:
    """Choose digits and colours of each split; `val` changes the colours of the validation split alone."""
    digits = {file: mnist.read_digits(file) for file in ("train", "test")}
    kept, held = holdout.stratified_split(digits["train"], options.val_share, (options.seed, 0))
    parts = {
        "train": ("train", kept, options.rho),
        "val": ("train", held, options.rho if options.val == "biased" else colour_bias.UNBIASED_RHO),
        "test": ("test", np.arange(len(digits["test"])), colour_bias.UNBIASED_RHO),
    }
    coloured = {}
    for stream, (name, (file, members, rho)) in enumerate(parts.items(), start=1):
        target = digits[file][members]
        colours = colour_bias.assign_colours(target, rho, np.random.default_rng((options.seed, stream)))
        coloured[name] = _UnpaintedSplit(file, members, target, colours)
    return coloured


def build(options: Options) -> dict[str, Split]:
    """Cut the validation digits off, then colour each split."""
    images = {file: mnist.read_images_and_digits(file)[0] for file in ("train", "test")}
    splits = {}
    for name, part in _choose_splits(options).items():
        # protocol: every pixel that is not 0 becomes stroke, however faint
        strokes = images[part.file][part.members] != 0
        splits[name] = Split(colour_bias.paint_digits_on_colour(strokes, part.colours), part.target, part.colours)
    return splits
