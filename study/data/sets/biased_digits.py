"""biased_digits: the 1,797 handwritten digits that ship with scikit-learn, on a background that betrays the class.

Small enough to be embedded, real enough to show the effect: the construction is that of Biased-MNIST.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import distribution
from pathlib import Path
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from study.data import colour_bias, holdout
from study.data.dataset import Dataset, Facts, HasLabels, Split
from study.data.holdout import Indices
from study.knobs import Range

TEST_SHARE = 0.2
"""Share of each class's digits in the test split."""

BIASED_VAL_COLOUR_STREAM = 77
"""Stream of the colours of a biased validation split; recorded curves (`tests/benchmarks`) were made with it."""


@dataclass(frozen=True)
class Options:
    """Keys of the `data` section.

    Attributes:
        val_share: share of all digits that is held out for validation.
    """

    rho: colour_bias.RhoKey = 0.95
    seed: colour_bias.ColourSeedKey = 0
    val: holdout.BiasedOrUnbiasedValKey = "unbiased"
    val_share: Annotated[float, Range(above=0.0, high=0.5)] = 0.2
    folds: holdout.FoldsKey = None


def describe(options: Options) -> Facts:
    """Return the facts: ten digits, ten colours, 8 x 8 pixels; the colour scaled to [0, 1] is also the condition."""
    return Facts(classes=10, bias_classes=10, shape=(3, 8, 8), condition=3, aligned=tuple(range(10)))


def load_labels(options: Options) -> Mapping[str, HasLabels]:
    """Return digits and colours of each split; so few pixels take no time."""
    return load(options).splits


def load(options: Options) -> Dataset:
    """Split by class, then colour each split: training with `rho`, test unbiased, validation as `val` says.

    Whatever `val` is, the three splits have the same digits, and training and test the same colours.
    """
    strokes, target = load_strokes_and_classes()
    splits = {}
    for name, members, colours in _assign_colours_by_split(options, target):
        condition = (colour_bias.BACKGROUND_COLOURS / 255).astype(np.float32)[colours]
        splits[name] = Split(
            colour_bias.paint_digits_on_colour(strokes[members], colours), target[members], colours, condition
        )
    return Dataset(describe(options), splits)


def load_strokes_and_classes() -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Return all digits as strokes in [0, 1], shape (1797, 8, 8), and their classes, shape (1797,): `load_digits`."""
    file = distribution("scikit-learn").locate_file("sklearn/datasets/data/digits.csv.gz")
    if Path(str(file)).is_file():  # importing scikit-learn takes a second
        rows = np.loadtxt(str(file), delimiter=",")
    else:
        from sklearn.datasets import load_digits

        rows = np.column_stack(load_digits(return_X_y=True))
    return (rows[:, :-1].reshape(-1, 8, 8) / 16.0).astype(np.float32), rows[:, -1].astype(np.int64)


def _assign_colours_by_split(options: Options, target: Indices) -> Iterator[tuple[str, Indices, Indices]]:
    """Yield each split's name, the positions of its digits, and their colours."""
    generator = np.random.default_rng(options.seed)
    for name, members in _split_indices(target, options.val_share, generator).items():
        rho = options.rho if name == "train" else colour_bias.UNBIASED_RHO
        colours = colour_bias.assign_colours(target[members], rho, generator)
        if name == "val" and options.val == "biased":  # from a generator of its own: test is drawn after it
            own = np.random.default_rng((options.seed, BIASED_VAL_COLOUR_STREAM))
            colours = colour_bias.assign_colours(target[members], options.rho, own)
        yield name, members, colours


def _split_indices(target: np.ndarray, val_share: float, generator: np.random.Generator) -> dict[str, np.ndarray]:
    """Return disjoint sample indices per split, each class in the same shares."""
    bounds = np.array([1 - TEST_SHARE - val_share, 1 - TEST_SHARE])
    parts: dict[str, list[np.ndarray]] = {"train": [], "val": [], "test": []}
    for label in np.unique(target):
        members = generator.permutation(np.flatnonzero(target == label))
        cuts = np.rint(bounds * len(members)).astype(int)
        for name, part in zip(parts, np.split(members, cuts), strict=True):
            parts[name].append(part)
    return {name: np.sort(np.concatenate(pieces)) for name, pieces in parts.items()}
