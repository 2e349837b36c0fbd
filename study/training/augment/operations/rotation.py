"""Rotation about the centre."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import grid_sample

from study.training.augment.operations import uniform


@dataclass(frozen=True)
class Rotation:
    """A rotation by at most `degrees` either way; what comes from outside is black, as with `RandomRotation`."""

    degrees: float = 20.0

    def __call__(self, images: Tensor, generator: torch.Generator) -> Tensor:
        return rotate(images, uniform(generator, len(images), low=-self.degrees, high=self.degrees))


def rotate(images: Tensor, degrees: Tensor) -> Tensor:
    """Images (B, C, H, W) turned counter-clockwise by `degrees` (B,), the nearest pixel taken."""
    height, width = images.shape[2:]
    angle = (degrees * (math.pi / 180.0))[:, None, None]
    across = torch.arange(width, device=images.device, dtype=images.dtype) - (width - 1) / 2
    down = (torch.arange(height, device=images.device, dtype=images.dtype) - (height - 1) / 2)[:, None]
    column = angle.cos() * across - angle.sin() * down
    row = angle.sin() * across + angle.cos() * down
    grid = torch.stack((column.mul_(2 / width), row.mul_(2 / height)), 3)
    return grid_sample(images, grid, mode="nearest", padding_mode="zeros", align_corners=False)
