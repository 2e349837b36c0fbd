"""Augmentations by name: `AUGMENTATION_CHECKS` says which data each suits, `_build_operations` what it does.

Batched on the device of the data: every sample has random parameters of its own, drawn from a generator on that device,
and nothing is read back from there. PyTorch alone, no further library.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal, Protocol

from study.data.dataset import Facts
from study.errors import UserError, suggest_or_list
from study.training.config import TrainOptions

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from study.training.augment.operations import Operation


class Augmentation(Protocol):
    """Function that makes views of a batch; see `build_augmentation`."""

    def __call__(self, batch: "Tensor", generator: "torch.Generator", views: int = 1) -> "Tensor": ...


def _why_not_images(facts: Facts) -> str | None:
    return "is for images, the data set is a table" if facts.is_table else None


def _why_not_colour_images(facts: Facts) -> str | None:
    """Accept images whose channels are red, green and blue, or grey alone."""
    if facts.is_table or facts.shape[0] in (1, 3):
        return _why_not_images(facts)
    return f"changes colours, the data set's images have {facts.shape[0]} channels"


def _why_not_table(facts: Facts) -> str | None:
    return None if facts.is_table else "is for tables, the data set has images"


AUGMENTATION_CHECKS: dict[str, Callable[[Facts], str | None]] = {
    "bias_con": _why_not_colour_images,
    "corrupt_columns": _why_not_table,
    "crop_flip": _why_not_images,
    "noise": _why_not_table,
    "none": lambda facts: None,
    "simclr": _why_not_colour_images,
    "simclr_blur": _why_not_colour_images,
}
"""Every augmentation that `train.augmentation` may name, with the function that says why it cannot be used with some
data, None where it can; without PyTorch."""

CROPPING_AUGMENTATIONS = ("crop_flip", "simclr", "simclr_blur")
"""Augmentations that crop, and resize what is left to `train.crop_size`."""


def _build_operations(name: str, options: TrainOptions) -> "Sequence[Operation]":
    """Return the operations of an augmentation of `AUGMENTATION_CHECKS`."""
    from study.training.augment.operations import (
        ColourJitter,
        ColumnCorruption,
        ColumnNoise,
        GaussianBlur,
        Greyscale,
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
            return (ColumnCorruption(options.corruption),)
        case "crop_flip":  # random resized crop and flip, no change of colour: the CCL-K paper's views of ColorMNIST
            return (crop(0.08, "bicubic"),)
        case "noise":  # Gaussian noise on the standardised columns of a table
            return (ColumnNoise(options.noise),)
        case "simclr":  # crop, flip, colour jitter and greyscale: the FSCL paper's views of CelebA and UTKFace
            return crop(0.2), jitter, Greyscale()
        case "simclr_blur":  # the same and blur: the views of DCL and HCL, after SimCLR
            return crop(0.08), jitter, Greyscale(), GaussianBlur()
    return ()  # samples as they are: all views of one are equal, and a loss of pairs of views learns nothing from them


def has_random_views(name: str) -> bool:
    """Tell whether two views of a sample differ."""
    return name != "none"


def why_augmentation_unsuited(name: str, facts: Facts) -> str | None:
    """Say why an augmentation cannot be used with a data set; None if it can."""
    reason = AUGMENTATION_CHECKS[_check_augmentation_name(name)](facts)
    return None if reason is None else f"{name!r} {reason}"


def build_augmentation(name: str, shape: tuple[int, ...], options: TrainOptions) -> Augmentation:
    """Build the augmentation for samples of a shape.

    It takes a batch, images (B, C, H, W) float32 in [0, 1] or rows (B, F) float32, a generator on the same device and
    the number of views of each sample (V). It returns the views, (V, B, ...), float32, images in [0, 1]. The batch
    itself is not changed; without a random augmentation the views are the batch itself, and must not be written. The
    same generator state gives the same views.

    Raises:
        UserError: there is no augmentation of this name, or it cannot be applied to this shape.
    """
    _check_suits_shape(name, shape)
    import torch

    operations = tuple(_build_operations(_check_augmentation_name(name), options))

    @torch.no_grad()
    def augmentation(batch: "Tensor", generator: "torch.Generator", views: int = 1) -> "Tensor":
        samples = batch.expand(views, *batch.shape)
        if operations and len(shape) == 3:  # of tables an operation asks which rows are of one batch
            samples = samples.flatten(0, 1)
        with torch.autocast(batch.device.type, enabled=False):
            for operation in operations:
                samples = operation(samples, generator)
        return samples.reshape(views, len(batch), *samples.shape[-len(shape) :])

    return augmentation


def augmented_shape(name: str, shape: tuple[int, ...], options: TrainOptions) -> tuple[int, ...]:
    """Return the shape of a view of a sample of this shape; raises as `build_augmentation`."""
    _check_suits_shape(name, shape)
    side = options.crop_size if name in CROPPING_AUGMENTATIONS else None
    return shape if side is None else (shape[0], side, side)


def resize_for_evaluation(images: "Tensor", size: int | None) -> "Tensor":
    """Resize images (B, C, H, W) to `size` x `size` for evaluation; None leaves them as they are.

    Bilinear with antialiasing, as torchvision's `Resize`. Rows of tables are returned as they are.
    """
    if size is None or images.dim() != 4 or tuple(images.shape[2:]) == (size, size):
        return images
    from torch.nn.functional import interpolate

    return interpolate(images, (size, size), mode="bilinear", antialias=True)


def _check_suits_shape(name: str, shape: tuple[int, ...]) -> None:
    """Raise UserError where there is no augmentation of this name, or it cannot be applied to this shape."""
    facts = Facts(classes=2, bias_classes=None, shape=shape)
    if (reason := why_augmentation_unsuited(name, facts)) is not None:
        suitable = [other for other in AUGMENTATION_CHECKS if why_augmentation_unsuited(other, facts) is None]
        raise UserError(f"train.augmentation: {reason}. Allowed: {', '.join(suitable)}")


def _check_augmentation_name(name: str) -> str:
    if name not in AUGMENTATION_CHECKS:
        allowed = suggest_or_list(name, AUGMENTATION_CHECKS)
        raise UserError(f"train.augmentation: {name!r} given. {allowed}")
    return name
