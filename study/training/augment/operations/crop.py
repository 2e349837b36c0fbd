"""Random resized crops, flipped or not, by two small matrix products per sample.

Resizing is linear and separable: rows and columns each have a matrix (output, input) of interpolation weights. Cropping
and flipping change only the weights, and products of small matrices are fast on CPU and GPU alike. A grid of sampling
points would not do: it has no antialiasing.
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
FAR = 1e4
"""How many times as far from its box a pixel is moved that is not in it: out of reach of every interpolation."""


class Boxes(NamedTuple):
    """A crop per sample, float32 of whole pixels; the first row is vertical, the second horizontal.

    Attributes:
        corner: (2, B): top and left.
        sides: (2, B): height and width.
    """

    corner: Tensor
    sides: Tensor


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
    root = uniform(generator, TRIES, batch, low=scale * height * width, high=height * width).sqrt_()
    stretch = uniform(generator, TRIES, batch, low=-math.log(ratio) / 2, high=math.log(ratio) / 2).exp_()
    tried = torch.empty(TRIES + 1, 2, batch, device=generator.device)
    torch.div(root, stretch, out=tried[:TRIES, 0])
    torch.mul(root, stretch, out=tried[:TRIES, 1])
    tried[TRIES, 0], tried[TRIES, 1] = _largest(height, width, ratio)  # where none of the tries fits
    places = _pair(height + 1.0, width + 1.0, generator.device)
    fits = (places - tried.round_()).mul_(tried).amin(1).gt_(0.0)  # both sides: 1 to all of the image's
    first = fits.argmax(0)
    sides = tried.gather(0, first.expand(1, 2, batch))[0]
    place = uniform(generator, 2, batch).masked_fill_(first == TRIES, 0.49999)  # of the middle two the first
    return Boxes((places - sides).mul_(place).floor_(), sides)


def resized_crop(
    images: Tensor, boxes: Boxes, size: tuple[int, int], flip: Tensor, interpolation: Interpolation = "bilinear"
) -> Tensor:
    """The boxes of images (B, C, H, W) in [0, 1], resized to `size`, mirrored where `flip` (B,) is 1.

    Equal to torchvision's `resized_crop` with antialiasing; bicubic results are clamped to [0, 1], as in 8-bit images.
    """
    batch, channels, height, width = images.shape
    weights = interpolation_weights(boxes, (height, width), size, flip, interpolation)
    rows, columns = weights[0, :, : size[0], :height], weights[1, :, : size[1], :width]
    narrow = torch.bmm(images.reshape(batch, channels * height, width), columns.mT)
    rows = rows.repeat_interleave(channels, 0)
    result = torch.bmm(rows, narrow.view(batch * channels, height, size[1])).view(batch, channels, *size)
    return result.clamp_(0.0, 1.0)


def interpolation_weights(
    boxes: Boxes, inputs: tuple[int, int], outputs: tuple[int, int], flip: Tensor, interpolation: Interpolation
) -> Tensor:
    """Weights (2, B, O, I) that resize the boxes of images of `inputs` pixels to `outputs` pixels, rows and columns.

    O and I are the larger of the two numbers of `outputs` and `inputs`: of the lines with fewer, the others mean
    nothing.

    Args:
        flip: (B,), 1 for the samples whose columns are mirrored.
    """
    device = boxes.sides.device
    to = _pair(*outputs, device)
    step = boxes.sides / to  # input pixels per output pixel
    reach = step.clamp(min=1.0)
    step[1].addcmul_(step[1], flip, value=-2.0)  # its negative where the columns are mirrored
    position = torch.arange(max(outputs), device=device) + (0.5 - to / 2)
    centre = torch.addcmul(boxes.sides[:, :, None] / 2, step[:, :, None], position[..., None, :])
    pixel = torch.arange(0.5, max(inputs), device=device) - boxes.corner[:, :, None]
    inside = pixel.minimum(boxes.sides[:, :, None]).clamp_(min=0.0)
    pixel = torch.lerp(inside, pixel, FAR)
    distance = (pixel[:, :, None, :] - centre[:, :, :, None]).abs_().div_(reach[:, :, None, None])
    weights = _triangle(distance) if interpolation == "bilinear" else _cubic(distance)
    return weights.div_(weights.sum(3, keepdim=True))


def _triangle(distance: Tensor) -> Tensor:
    """1 - distance or 0, times -1."""
    return distance.sub_(1.0).clamp_(max=0.0)


def _cubic(distance: Tensor) -> Tensor:
    """Keys' kernel with a = -0.5, PIL's, times -2.

    Of truncated powers, which join its two pieces: with p and q what is missing from a distance of 1 and 2, or 0, it is
    q^2 (q - 1) / 2 - p^2 (2 p - 1).
    """
    near, far = (distance - 1.0).clamp_(max=0.0), distance.sub_(2.0).clamp_(max=0.0)
    near_square, far_square = near.square(), far.square()
    far_square.addcmul_(far_square, far)
    return far_square.sub_(near.mul_(2.0).add_(1.0).mul_(near_square), alpha=2.0)


def _pair(vertical: float, horizontal: float, device: torch.device) -> Tensor | float:
    """A number for both directions where it is the same, else (2, 1)."""
    if vertical == horizontal:
        return vertical
    return torch.linspace(vertical, horizontal, 2, device=device)[:, None]


def _largest(height: int, width: int, ratio: float) -> tuple[float, float]:
    """The largest height and width in an image that keep the ratio within its bounds."""
    return float(min(height, round(width * ratio))), float(min(width, round(height * ratio)))
