"""Augmentations by name: which data each suits, and its operations in their order."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from study.data.dataset import Facts
from study.training.augment.operations import Operation
from study.training.augment.operations.blur import GaussianBlur
from study.training.augment.operations.colour import ColourJitter, Greyscale
from study.training.augment.operations.columns import Corruption, Noise
from study.training.augment.operations.crop import ResizedCrop
from study.training.augment.operations.rotation import Rotation
from study.training.config import TrainOptions


class Recipe(NamedTuple):
    """An augmentation: why it cannot be used with some data (None: it can), and its operations."""

    suits: Callable[[Facts], str | None]
    operations: Callable[[TrainOptions], Sequence[Operation]]


def _images(facts: Facts) -> str | None:
    return "is for images, the data set is a table" if facts.is_table else None


def _colour_images(facts: Facts) -> str | None:
    """Images whose channels are red, green and blue, or grey alone."""
    if facts.is_table or facts.shape[0] in (1, 3):
        return _images(facts)
    return f"changes colours, the data set's images have {facts.shape[0]} channels"


def _tables(facts: Facts) -> str | None:
    return None if facts.is_table else "is for tables, the data set has images"


def _jitter(options: TrainOptions) -> Operation:
    return ColourJitter(0.4 * options.jitter, 0.1 * options.jitter)


def _crop(options: TrainOptions, scale: float) -> Operation:
    return ResizedCrop(options.crop_size, options.crop_scale or scale)


RECIPES = {
    # rotation and colour jitter, neither crop nor flip: BiasCon's views of Biased-MNIST
    "bias_con": Recipe(_colour_images, lambda options: (Rotation(20.0), _jitter(options))),
    # values of a table's row replaced by those of other rows, as in SCARF (Bahri et al., 2022)
    "corrupt_columns": Recipe(_tables, lambda options: (Corruption(options.corruption),)),
    # random resized crop and flip, no change of colour: the CCL-K paper's views of ColorMNIST
    "crop_flip": Recipe(
        _images, lambda options: (ResizedCrop(options.crop_size, options.crop_scale or 0.08, interpolation="bicubic"),)
    ),
    # Gaussian noise on the standardised columns of a table
    "noise": Recipe(_tables, lambda options: (Noise(options.noise),)),
    # samples as they are: all views of one are equal, and a loss of pairs of views learns nothing from them
    "none": Recipe(lambda facts: None, lambda options: ()),
    # crop, flip, colour jitter and greyscale: the FSCL paper's views of CelebA and UTKFace
    "simclr": Recipe(_colour_images, lambda options: (_crop(options, 0.2), _jitter(options), Greyscale())),
    # the same and blur: the views of DCL and HCL, after SimCLR
    "simclr_blur": Recipe(
        _colour_images, lambda options: (_crop(options, 0.08), _jitter(options), Greyscale(), GaussianBlur())
    ),
}
