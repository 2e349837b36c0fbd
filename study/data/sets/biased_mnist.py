"""biased_mnist: MNIST digits on a background colour that betrays the class in a share rho of the training images.

The construction of the FairKL paper (section 4.2) and its released data set: exact shares, strokes made white.
"""

from dataclasses import asdict, dataclass
from typing import Annotated, Literal

import numpy as np
from typing_extensions import Doc

from study.data import colour_bias, holdout, mnist
from study.data.cache import cached
from study.data.dataset import Dataset, Facts, Split
from study.data.source import Source
from study.knobs import Range

VERSION = 1


@dataclass(frozen=True)
class Options:
    """Keys of the `data` section."""

    rho: Annotated[
        float, Range(low=0.0, high=1.0), Doc("share of training images whose colour is their class's own")
    ] = 0.99
    seed: Annotated[int, Range(low=0), Doc("seed of the validation split and the colours")] = 0
    class_nine: Annotated[
        Literal["green", "grey"],
        Doc("colour of class 9: green (50, 255, 128) as in FairKL's code, grey (128, 128, 128) as in ReBias'"),
    ] = "green"
    foreground: Annotated[bool, Doc("colour the digit, on a black ground, instead of the ground")] = False
    val_share: Annotated[
        holdout.Share, Doc("share of the 60,000 training digits that is held out for validation, before colouring")
    ] = 0.1
    val: Annotated[
        Literal["unbiased", "biased"],
        Doc("unbiased: held-out digits are coloured like the test split's, rho 0.1; biased: like the training split's"),
    ] = "unbiased"


def describe(options: Options) -> Facts:
    """Ten digits, ten colours."""
    return Facts(classes=10, bias_classes=10, shape=(3, 28, 28), title="Biased-MNIST")


def sources(options: Options) -> tuple[Source, ...]:
    """MNIST's four files."""
    return mnist.sources()


def load(options: Options) -> Dataset:
    """Cut the validation digits off, then colour each split."""
    key = asdict(options) | {"version": VERSION}
    return cached("biased_mnist", key, describe(options), lambda: _build(options), sources(options))


def _build(options: Options) -> dict[str, Split]:
    images, target = mnist.read("train")
    kept, held = holdout.stratified(target, options.val_share, (options.seed, 0))
    test_images, test_target = mnist.read("test")
    parts = {
        "train": (images[kept], target[kept], options.rho),
        "val": (images[held], target[held], options.rho if options.val == "biased" else colour_bias.UNBIASED),
        "test": (test_images, test_target, colour_bias.UNBIASED),
    }
    palette = colour_bias.palette(options.class_nine)
    splits = {}
    for stream, (name, (digits, labels, rho)) in enumerate(parts.items(), start=1):
        colours = colour_bias.assign(labels, rho, np.random.default_rng((options.seed, stream)))
        # protocol: every pixel that is not 0 becomes stroke, however faint
        painted = colour_bias.paint(digits != 0, colours, palette, options.foreground)
        splits[name] = Split(painted, labels, colours)
    return splits
