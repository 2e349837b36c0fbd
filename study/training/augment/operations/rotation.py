"""Rotation about the centre."""

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
    across = torch.arange((1 - width) / 2, width / 2, device=images.device)
    down = torch.arange((1 - height) / 2, height / 2, device=images.device)
    pixels = torch.complex(across.expand(height, width), down[:, None].expand(height, width))
    turns = torch.polar(torch.ones_like(degrees), degrees.deg2rad())
    grid = torch.view_as_real(turns[:, None, None] * pixels)
    halves = 2 / width if width == height else torch.linspace(2 / width, 2 / height, 2, device=images.device)
    return grid_sample(images, grid.mul_(halves), mode="nearest", padding_mode="zeros", align_corners=False)
