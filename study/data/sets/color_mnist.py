"""color_mnist: MNIST digits, black on a ground of a colour drawn at random, which the representation should forget.

The data of the CCL-K paper's fair experiments (section 4.2, appendix F.4) as its released code makes them: the colour
is a palette colour with noise, whatever the digit, and is the continuous attribute `condition`.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from study.data import colour_bias, holdout, mnist
from study.data.dataset import Facts, Split, SplitLabels
from study.data.source import Source

_PALETTE_HEX_COLOURS = "1f77b4 ff7f0e 2ca02c d62728 9467bd 8c564b e377c2 7f7f7f bcbd22 17becf"
PALETTE_COLOURS = np.array([[*bytes.fromhex(colour)] for colour in _PALETTE_HEX_COLOURS.split()], np.int64)
"""Colours that the noise is added to, of 0 to 255; a sample's bias class is its index here."""

COLOUR_NOISE_STD = 40.0
"""Standard deviation of the noise on each channel, of 0 to 255."""


COLOUR_STREAMS = {"train": 1, "test": 2, "val": 3}
"""Streams of random colours, each seeded with its number beside the seed."""


@dataclass(frozen=True)
class Options:
    """Keys of the `data` section."""

    seed: colour_bias.ColourSeedKey = 0
    val_share: holdout.ValShareKey = 0.1
    val: holdout.BiasedOrUnbiasedValKey = "biased"
    folds: holdout.FoldsKey = None


def describe(options: Options) -> Facts:
    """Return the facts: ten digits; the colour scaled to [0, 1] as the condition.

    Pixels are not normalised, as in the protocol.
    """
    return Facts(
        classes=10,
        bias_classes=10,
        shape=(3, 28, 28),
        condition=3,
        mean=0.0,
        deviation=1.0,
        title="ColorMNIST",
        aligned=tuple(range(10)),
    )


def sources(options: Options) -> tuple[Source, ...]:
    """Return MNIST's four files."""
    return mnist.mnist_sources()


def build(options: Options) -> dict[str, Split]:
    """Colour both files' digits, then cut the validation split off by digit and palette colour.

    Training is coloured at random, so that a split held out of it is as unbiased as test. With `val: unbiased` the
    same digits are coloured anew, each palette colour for the same share of each digit.
    """
    plain = {file: mnist.read_images_and_digits(file) for file in ("train", "test")}
    whole = {file: _colour_images(*arrays, _split_generator(options, file)) for file, arrays in plain.items()}
    kept, held = holdout.split_by_val_kind(
        holdout.cell_of_sample(whole["train"]), options.val_share, "biased", options.seed
    )
    val = holdout.select_samples(whole["train"], held)
    if options.val == "unbiased":
        images, target = plain["train"]
        val = _colour_images(images[held], target[held], _split_generator(options, "val"), even=True)
    return {"train": holdout.select_samples(whole["train"], kept), "val": val, "test": whole["test"]}


def load_labels(options: Options) -> dict[str, SplitLabels]:
    """Return the digits and palette colours of each split; no images are read."""
    digits = {file: mnist.read_digits(file) for file in ("train", "test")}
    colours = {
        file: _choose_palette_colours(target, _split_generator(options, file)) for file, target in digits.items()
    }
    whole = {file: SplitLabels(digits[file], colours[file]) for file in digits}
    splits = holdout.add_held_out_val(whole, options.val_share, options.seed)
    if options.val == "unbiased":
        target = splits["val"].target
        splits["val"] = SplitLabels(
            target, _choose_palette_colours(target, _split_generator(options, "val"), even=True)
        )
    return splits


def _split_generator(options: Options, name: str) -> np.random.Generator:
    return np.random.default_rng((options.seed, COLOUR_STREAMS[name]))


def _choose_palette_colours(
    target: NDArray[np.int64], generator: np.random.Generator, even: bool = False
) -> NDArray[np.int64]:
    """Choose a palette colour per digit, (N,): at random, or each for the same share of each digit."""
    if even:
        return colour_bias.assign_colours(target, colour_bias.UNBIASED_RHO, generator)
    return generator.integers(len(PALETTE_COLOURS), size=len(target))


def _colour_images(
    images: NDArray[np.uint8], target: NDArray[np.int64], generator: np.random.Generator, even: bool = False
) -> Split:
    bias = _choose_palette_colours(target, generator, even)
    noise = np.trunc(generator.normal(scale=COLOUR_NOISE_STD, size=(len(target), 3))).astype(np.int64)
    colour = np.clip(PALETTE_COLOURS[bias] + noise, 0, 255).astype(np.float32)
    ground = 255 - images
    painted = np.empty((len(target), 3, *images.shape[1:]), np.uint8)
    for channel in range(3):
        painted[:, channel] = ground * (colour[:, channel] / 255)[:, None, None]
    return Split(painted, target, bias, colour / 255)
