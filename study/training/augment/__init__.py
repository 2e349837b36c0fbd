"""Augmentations by name: each is a row of `study.training.augment.recipes`.

Batched on the device of the data: every sample has random parameters of its own, drawn from a generator on that device,
and nothing is read back from there. PyTorch alone, no further library.
"""

from typing import TYPE_CHECKING, Protocol

from study.data.dataset import Facts
from study.errors import UserError, nearest
from study.training.augment import recipes
from study.training.augment.recipes import CROPS, SUITS
from study.training.config import TrainOptions

if TYPE_CHECKING:
    import torch
    from torch import Tensor


class Augmentation(Protocol):
    """Function that makes views of a batch; see `build`."""

    def __call__(self, batch: "Tensor", generator: "torch.Generator", views: int = 1) -> "Tensor": ...


__all__ = ["Augmentation", "build", "evaluation_resize", "is_random", "names", "output_shape", "suits"]


def names() -> list[str]:
    """List every augmentation that `train.augmentation` may name."""
    return list(SUITS)


def is_random(name: str) -> bool:
    """Tell whether two views of a sample differ."""
    return name != "none"


def suits(name: str, facts: Facts) -> str | None:
    """Say why an augmentation cannot be used with a data set; None if it can."""
    reason = SUITS[_known(name)](facts)
    return None if reason is None else f"{name!r} {reason}"


def build(name: str, shape: tuple[int, ...], options: TrainOptions) -> Augmentation:
    """Build the augmentation for samples of a shape.

    It takes a batch, images (B, C, H, W) float32 in [0, 1] or rows (B, F) float32, a generator on the same device and
    the number of views of each sample (V). It returns the views, (V, B, ...), float32, images in [0, 1]. The batch
    itself is not changed; without a random augmentation the views are the batch itself, and must not be written. The
    same generator state gives the same views.

    Raises:
        UserError: there is no augmentation of this name, or it cannot be applied to this shape.
    """
    _check_suits(name, shape)
    import torch

    operations = tuple(recipes.operations(_known(name), options))

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


def output_shape(name: str, shape: tuple[int, ...], options: TrainOptions) -> tuple[int, ...]:
    """Return the shape of a view of a sample of this shape; raises as `build`."""
    _check_suits(name, shape)
    side = options.crop_size if name in CROPS else None
    return shape if side is None else (shape[0], side, side)


def evaluation_resize(images: "Tensor", size: int | None) -> "Tensor":
    """Resize images (B, C, H, W) to `size` x `size` for evaluation; None leaves them as they are.

    Bilinear with antialiasing, as torchvision's `Resize`. Rows of tables are returned as they are.
    """
    if size is None or images.dim() != 4 or tuple(images.shape[2:]) == (size, size):
        return images
    from torch.nn.functional import interpolate

    return interpolate(images, (size, size), mode="bilinear", antialias=True)


def _check_suits(name: str, shape: tuple[int, ...]) -> None:
    """Raise UserError where there is no augmentation of this name, or it cannot be applied to this shape."""
    facts = Facts(classes=2, bias_classes=None, shape=shape)
    if (reason := suits(name, facts)) is not None:
        suitable = [other for other in names() if suits(other, facts) is None]
        raise UserError(f"train.augmentation: {reason}. Allowed: {', '.join(suitable)}")


def _known(name: str) -> str:
    if name not in SUITS:
        raise UserError(f"train.augmentation: {name!r} given. {nearest(name, SUITS)}Allowed: {', '.join(SUITS)}")
    return name
