"""Rotation about the centre."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import affine_grid, grid_sample

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
    angle = degrees * (math.pi / 180.0)
    cosine, sine, zero = angle.cos(), angle.sin(), torch.zeros_like(angle)
    rows = (cosine, -sine * (height / width), zero, sine * (width / height), cosine, zero)
    grid = affine_grid(torch.stack(rows, 1).view(-1, 2, 3), list(images.shape), align_corners=False)
    return grid_sample(images, grid, mode="nearest", padding_mode="zeros", align_corners=False)
