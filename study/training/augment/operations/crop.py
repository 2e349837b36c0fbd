"""Random resized crops, flipped or not, by two small matrix products per sample.

Resizing is linear and separable: rows and columns each have a matrix (output, input) of interpolation weights. Cropping
and flipping change only the weights, and products of small matrices are fast on CPU and GPU alike.
"""

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from study.training.augment.operations import chosen, uniform

Interpolation = Literal["bilinear", "bicubic"]
TRIES = 10
"""How many boxes are drawn before a centred one is taken, as torchvision does."""


class Boxes(NamedTuple):
    """A crop per sample, each (B,) float32 of whole pixels."""

    top: Tensor
    left: Tensor
    height: Tensor
    width: Tensor


@dataclass(frozen=True)
class ResizedCrop:
    """A random part of the image, resized, as torchvision's `RandomResizedCrop` and `RandomHorizontalFlip`.

    Attributes:
        size: side of the result in pixels; None: that of the image.
        scale: least share of the area that is kept, in (0, 1]; the share is uniform from there to 1.
        ratio: width/height is log-uniform between 1/ratio and ratio.
        flip: probability of mirroring left and right.
        interpolation: with the antialiasing of PIL, which the papers' code resizes with.
    """

    size: int | None = None
    scale: float = 0.08
    ratio: float = 4.0 / 3.0
    flip: float = 0.5
    interpolation: Interpolation = "bilinear"

    def __call__(self, images: Tensor, generator: torch.Generator) -> Tensor:
        batch, _, height, width = images.shape
        boxes = random_boxes(generator, batch, (height, width), self.scale, self.ratio)
        size = (height, width) if self.size is None else (self.size, self.size)
        return resized_crop(images, boxes, size, chosen(generator, batch, self.flip), self.interpolation)


def random_boxes(generator: torch.Generator, batch: int, size: tuple[int, int], scale: float, ratio: float) -> Boxes:
    """Boxes inside images of `size` (height, width), distributed as torchvision draws them, without its loop."""
    height, width = size
    area = uniform(generator, TRIES, batch, low=scale) * (height * width)
    shape = uniform(generator, TRIES, batch, low=-math.log(ratio), high=math.log(ratio)).exp()
    heights, widths = (area / shape).sqrt().round(), (area * shape).sqrt().round()
    fits = (heights >= 1) & (heights <= height) & (widths >= 1) & (widths <= width)
    first = fits.to(torch.uint8).argmax(0, keepdim=True)  # 0 where none fits, too
    whole_height, whole_width = _largest(height, width, ratio)
    fits_once = fits.gather(0, first)[0]
    box_height = torch.where(fits_once, heights.gather(0, first)[0], whole_height)
    box_width = torch.where(fits_once, widths.gather(0, first)[0], whole_width)
    room = torch.stack([height - box_height, width - box_width])
    corner = torch.where(fits_once, (uniform(generator, 2, batch) * (room + 1)).floor(), (room / 2).floor())
    return Boxes(corner[0], corner[1], box_height, box_width)


def resized_crop(
    images: Tensor, boxes: Boxes, size: tuple[int, int], flip: Tensor, interpolation: Interpolation = "bilinear"
) -> Tensor:
    """The boxes of images (B, C, H, W) in [0, 1], resized to `size`, mirrored where `flip` (B,) is 1.

    Equal to torchvision's `resized_crop` with antialiasing; bicubic results are clamped to [0, 1], as in 8-bit images.
    """
    batch, channels, height, width = images.shape
    rows = interpolation_weights(boxes.top, boxes.height, height, size[0], interpolation)
    columns = interpolation_weights(boxes.left, boxes.width, width, size[1], interpolation, flip)
    narrow = torch.bmm(images.reshape(batch, channels * height, width), columns.mT)
    rows = rows.repeat_interleave(channels, 0)
    result = torch.bmm(rows, narrow.view(batch * channels, height, size[1])).view(batch, channels, *size)
    return result.clamp_(0.0, 1.0)


def interpolation_weights(
    start: Tensor, length: Tensor, inputs: int, outputs: int, interpolation: Interpolation, flip: Tensor | None = None
) -> Tensor:
    """Weights (B, outputs, inputs) that resize the pixels [start, start + length) of a line to `outputs` pixels.

    Args:
        start, length: (B,) float32 of whole pixels.
        flip: (B,), 1 for the lines to be mirrored; None: no line.
    """
    position = torch.arange(outputs, device=start.device, dtype=start.dtype) + 0.5
    positions = position if flip is None else torch.lerp(position, outputs - position, flip[:, None])
    step = (length / outputs)[:, None]  # input pixels per output pixel
    centre = positions * step
    pixel = torch.arange(inputs, device=start.device, dtype=start.dtype) + 0.5 - start[:, None]
    distance = (pixel[:, None, :] - centre[:, :, None]).abs_().div_(step.clamp(min=1.0)[:, :, None])
    weights = _triangle(distance) if interpolation == "bilinear" else _cubic(distance)
    inside = (pixel > 0) & (pixel < length[:, None])
    weights.mul_(inside.to(weights)[:, None, :])
    return weights.div_(weights.sum(2, keepdim=True))


def _triangle(distance: Tensor) -> Tensor:
    return distance.neg_().add_(1.0).clamp_(min=0.0)


def _cubic(distance: Tensor) -> Tensor:
    """Keys' kernel with a = -0.5, PIL's, as one polynomial per unit of distance."""
    near, far = distance.clamp(max=1.0), distance.clamp_(1.0, 2.0)
    inner = ((1.5 * near).sub_(2.5)).mul_(near).mul_(near).add_(1.0)
    outer = (far * -0.5).add_(2.5).mul_(far).sub_(4.0).mul_(far).add_(2.0)
    return inner.add_(outer)


def _largest(height: int, width: int, ratio: float) -> tuple[float, float]:
    """The largest height and width in an image that keep the ratio within its bounds."""
    return float(min(height, round(width * ratio))), float(min(width, round(height * ratio)))
