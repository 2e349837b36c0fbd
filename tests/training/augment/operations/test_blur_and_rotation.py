"""Blur and rotation, against torchvision on each image by itself."""

import pytest
import torch
from draws import generator
from torch.testing import assert_close
from torchvision.transforms.v2 import functional as oracle

from study.training.augment.operations import GaussianBlur, Rotation, gaussian_blur, rotate


@pytest.mark.parametrize("radius", [1, 3])
@pytest.mark.parametrize("shape", [(3, 16, 16), (1, 9, 21)])
def test_blur_is_torchvisions(shape: tuple[int, int, int], radius: int) -> None:
    images, sigma = torch.rand(12, *shape, generator=generator()), torch.linspace(0.1, 2.0, 12)
    side = 2 * radius + 1
    theirs = [oracle.gaussian_blur(image, [side, side], [float(s)]) for image, s in zip(images, sigma, strict=True)]
    assert_close(gaussian_blur(images, sigma, radius), torch.stack(theirs), atol=1e-6, rtol=0)


def test_blur_leaves_half_of_the_samples_as_they_are() -> None:
    images = torch.rand(2000, 1, 8, 8, generator=generator())
    same = (GaussianBlur(sigma=(0.5, 2.0))(images, generator()) == images).flatten(1).all(1)
    assert abs(same.float().mean() - 0.5) < 0.035


@pytest.mark.parametrize(("side", "reach"), [(8, 1), (32, 1), (64, 3), (96, 4)])
def test_the_kernel_is_a_tenth_of_the_image(side: int, reach: int) -> None:
    images = torch.zeros(1, 1, side, side)
    images[..., side // 2, side // 2] = 1.0
    row = GaussianBlur(sigma=(2.0, 2.0), probability=1.0)(images, generator())[0, 0, side // 2]
    assert row.count_nonzero() == 2 * reach + 1


@pytest.mark.parametrize("shape", [(3, 28, 28), (1, 20, 31)])
def test_rotation_is_torchvisions(shape: tuple[int, int, int]) -> None:
    images = torch.rand(21, *shape, generator=generator())
    degrees = torch.linspace(-19.7, 19.9, 21)
    theirs = torch.stack([oracle.rotate(image, float(angle)) for image, angle in zip(images, degrees, strict=True)])
    differing = (rotate(images, degrees) - theirs).abs() > 1e-6
    assert differing.float().mean() < 0.001  # a tie between two nearest pixels may fall either way


def test_angles_are_uniform_within_the_bound() -> None:
    images = torch.zeros(3000, 1, 41, 41)
    images[:, :, 20, 40] = images[:, :, 20, 39] = 1.0  # a dot to the right of the centre
    views = Rotation(20.0)(images, generator())[:, 0]
    heights = torch.arange(41.0) - 20.0
    rows = (views.sum(2) * heights).sum(1) / views.sum((1, 2))
    angles = torch.rad2deg(torch.asin(rows / 19.5))
    assert 18.0 < angles.abs().max() < 22.0
    assert abs(angles.mean()) < 1.0
    assert_close(angles.abs().mean(), torch.tensor(10.0), atol=1.5, rtol=0)
