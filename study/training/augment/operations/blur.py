"""Gaussian blur."""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import conv2d, pad

from study.training.augment.operations import chosen, uniform

SHARP = 1e-3
"""A standard deviation in pixels of which float32 has no weight besides the middle one."""


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
        radius = max(1, int(self.share * min(images.shape[2:])) // 2)
        return blur(images, sigma.mul_(chosen(generator, len(images), self.probability)), radius)


def blur(images: Tensor, sigma: Tensor, radius: int) -> Tensor:
    """Images (B, C, H, W) blurred by `sigma` (B,) pixels, kernel of side 2 radius + 1; 0 leaves an image as it is."""
    batch, channels, height, width = images.shape
    offsets = torch.arange(-radius, radius + 1.0, device=images.device)
    weights = torch.exp((offsets / sigma.clamp(min=SHARP)[:, None]).square_().mul_(-0.5))
    weights.div_(weights.sum(1, keepdim=True))
    kernels = weights.repeat_interleave(channels, 0)[:, None]
    lines = pad(images, (radius,) * 4, mode="reflect").view(1, -1, height + 2 * radius, width + 2 * radius)
    for kernel in (kernels[..., None], kernels[:, :, None]):
        lines = conv2d(lines, kernel, groups=batch * channels)
    return lines.view(images.shape).clamp_(0.0, 1.0)  # weights may sum to a rounding error above 1
