"""Augmentations by name: which data each suits, and its operations in their order."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal

from study.data.dataset import Facts
from study.training.config import TrainOptions

if TYPE_CHECKING:
    from study.training.augment.operations import Operation


def _images(facts: Facts) -> str | None:
    return "is for images, the data set is a table" if facts.is_table else None


def _colour_images(facts: Facts) -> str | None:
    """Accept images whose channels are red, green and blue, or grey alone."""
    if facts.is_table or facts.shape[0] in (1, 3):
        return _images(facts)
    return f"changes colours, the data set's images have {facts.shape[0]} channels"


def _tables(facts: Facts) -> str | None:
    return None if facts.is_table else "is for tables, the data set has images"


SUITS: dict[str, Callable[[Facts], str | None]] = {
    "bias_con": _colour_images,
    "corrupt_columns": _tables,
    "crop_flip": _images,
    "noise": _tables,
    "none": lambda facts: None,
    "simclr": _colour_images,
    "simclr_blur": _colour_images,
}
"""Function of each augmentation that says why it cannot be used with some data, None where it can; without PyTorch."""

CROPS = ("crop_flip", "simclr", "simclr_blur")
"""Augmentations that crop, and resize what is left to `train.crop_size`."""


def operations(name: str, options: TrainOptions) -> "Sequence[Operation]":
    """Return the operations of an augmentation of `SUITS`."""
    from study.training.augment.operations import (
        ColourJitter,
        Corruption,
        GaussianBlur,
        Greyscale,
        Noise,
        ResizedCrop,
        Rotation,
    )

    def crop(scale: float, interpolation: Literal["bilinear", "bicubic"] = "bilinear") -> ResizedCrop:
        return ResizedCrop(options.crop_size, options.crop_scale or scale, interpolation=interpolation)

    jitter = ColourJitter(0.4 * options.jitter, 0.1 * options.jitter)
    match name:
        case "bias_con":  # rotation and colour jitter, neither crop nor flip: BiasCon's views of Biased-MNIST
            return Rotation(20.0), jitter
        case "corrupt_columns":  # values of a row replaced by those of other rows, as in SCARF (Bahri et al., 2022)
            return (Corruption(options.corruption),)
        case "crop_flip":  # random resized crop and flip, no change of colour: the CCL-K paper's views of ColorMNIST
            return (crop(0.08, "bicubic"),)
        case "noise":  # Gaussian noise on the standardised columns of a table
            return (Noise(options.noise),)
        case "simclr":  # crop, flip, colour jitter and greyscale: the FSCL paper's views of CelebA and UTKFace
            return crop(0.2), jitter, Greyscale()
        case "simclr_blur":  # the same and blur: the views of DCL and HCL, after SimCLR
            return crop(0.08), jitter, Greyscale(), GaussianBlur()
    return ()  # samples as they are: all views of one are equal, and a loss of pairs of views learns nothing from them
