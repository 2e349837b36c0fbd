"""Gaussian blur."""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import pad

from study.training.augment.operations import chosen, uniform


@dataclass(frozen=True)
class GaussianBlur:
    """A Gaussian blur with a width of its own per sample; edges are mirrored.

    Attributes:
        sigma: least and largest standard deviation in pixels.
        probability: of blurring a sample.
        share: side of the kernel as a share of the image's, as the papers have it; the side is odd and at least 3.
    """

    sigma: tuple[float, float] = (0.1, 2.0)
    probability: float = 0.5
    share: float = 0.1

    def __call__(self, images: Tensor, generator: torch.Generator) -> Tensor:
        low, high = self.sigma
        sigma = uniform(generator, len(images), low=low, high=high)
        applied = chosen(generator, len(images), self.probability)
        radius = max(1, int(self.share * min(images.shape[2:])) // 2)
        return blur(images, sigma, applied, radius)


def blur(images: Tensor, sigma: Tensor, applied: Tensor, radius: int) -> Tensor:
    """Images (B, C, H, W) blurred by `sigma` (B,) pixels where `applied` (B,) is 1, kernel of side 2 radius + 1."""
    offsets = torch.arange(radius + 1, device=images.device, dtype=images.dtype)
    weights = torch.exp(-0.5 * (offsets / sigma[:, None]).square())
    weights = weights / (2.0 * weights.sum(1, keepdim=True) - weights[:, :1])
    weights = torch.lerp((offsets == 0).to(weights), weights, applied[:, None])
    for dimension in (2, 3):
        images = _blur_along(images, weights, dimension)
    return images.clamp_(0.0, 1.0)  # weights may sum to a rounding error above 1


def _blur_along(images: Tensor, weights: Tensor, dimension: int) -> Tensor:
    """One pass with a symmetric kernel, given as its weights (B, radius + 1) from the middle outwards."""
    radius, length = weights.shape[1] - 1, images.shape[dimension]
    sides = (0, 0, radius, radius) if dimension == 2 else (radius, radius, 0, 0)
    padded = pad(images, sides, mode="reflect")
    result = images * weights[:, :1, None, None]
    for offset in range(1, radius + 1):
        before = padded.narrow(dimension, radius - offset, length)
        after = padded.narrow(dimension, radius + offset, length)
        result.addcmul_(before + after, weights[:, offset, None, None, None])
    return result
