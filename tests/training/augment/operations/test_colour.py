"""Colour changes, against torchvision on each image by itself."""

from collections.abc import Callable

import pytest
import torch
from draws import generator
from torch import Tensor
from torch.testing import assert_close
from torchvision.transforms.v2 import functional as oracle

from study.training.augment.operations import (
    BRIGHTNESS_CHANGE,
    COLOUR_CHANGE_ORDERS,
    CONTRAST_CHANGE,
    SATURATION_CHANGE,
    ColourJitter,
    Greyscale,
    jitter_colours,
    luminance,
    shift_hue,
)

Change = Callable[[Tensor, float], Tensor]
FUNCTIONS: list[Change] = [oracle.adjust_brightness, oracle.adjust_contrast, oracle.adjust_saturation]


def pictures(batch: int, channels: int = 3) -> Tensor:
    """Random images with the pixels that hues are hard for: grey, black, white, two equal channels."""
    images = torch.rand(batch, channels, 8, 9, generator=generator())
    images[:, :, 0] = images[:, :1, 0]
    images[:, :, 1, :3], images[:, :, 1, 3:6] = 0.0, 1.0
    images[:, : channels - 1, 2] = images[:, :1, 2]
    images[:, channels // 3 :, 3] = images[:, channels // 3 : channels // 3 + 1, 3]
    return images


@pytest.mark.parametrize("channels", [1, 3])
def test_luminance_is_torchvisions_grey(channels: int) -> None:
    images = pictures(4, channels)
    assert_close(luminance(images), oracle.rgb_to_grayscale(images))


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("change", [BRIGHTNESS_CHANGE, CONTRAST_CHANGE, SATURATION_CHANGE])
def test_brightness_contrast_and_saturation_are_torchvisions(change: int, channels: int) -> None:
    images, factors = pictures(16, channels), torch.linspace(0, 2, 16)
    theirs = [FUNCTIONS[change](image, float(factor)) for image, factor in zip(images, factors, strict=True)]
    order = torch.full((16,), [first for first, *_ in COLOUR_CHANGE_ORDERS].index(change))
    draws = torch.stack([factors - 1.0, *torch.zeros(3, 16)])
    ours = jitter_colours(images, draws, order, 1.0, 1.0)
    assert_close(ours, torch.stack(theirs), atol=2e-6, rtol=0)


def test_the_hue_is_torchvisions() -> None:
    images, shifts = pictures(21), torch.linspace(-0.5, 0.5, 21)
    theirs = [oracle.adjust_hue(image, float(shift)) for image, shift in zip(images, shifts, strict=True)]
    ours = torch.empty_like(images)
    shift_hue(images, shifts * 2.0, 0.5, ours)
    assert_close(ours, torch.stack(theirs), atol=3e-6, rtol=0)


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("batch", [4 * len(COLOUR_CHANGE_ORDERS), 1, 2, 7])
def test_every_sample_has_its_changes_in_its_own_order(batch: int, channels: int) -> None:
    images, draw = pictures(batch, channels), generator(1)
    draws = 2.0 * torch.rand(4, batch, generator=draw) - 1.0
    order = torch.arange(batch) % len(COLOUR_CHANGE_ORDERS)
    theirs, orders = [], set()
    for sample, image in enumerate(images):
        changes: list[tuple[Change, float]] = [
            (FUNCTIONS[change], 1.0 + 0.4 * float(draws[place, sample]))
            for place, change in enumerate(COLOUR_CHANGE_ORDERS[int(order[sample])])
        ]
        before = next(count for count in range(4) if sample < batch * (count + 1) // 4)
        hue: tuple[Change, float] = (oracle.adjust_hue, 0.1 * float(draws[3, sample]))
        changes = [*changes[3 - before :], hue, *changes[: 3 - before]]
        orders.add(tuple(change.__name__ for change, _ in changes))
        for change, amount in changes:
            image = change(image, amount)
        theirs.append(image)
    ours = jitter_colours(images, draws, order, 0.4, 0.1)
    assert_close(ours, torch.stack(theirs), atol=1e-5, rtol=0)
    assert len(orders) == min(batch, 24)


def test_jitter_changes_the_share_of_samples_asked_for_each_differently() -> None:
    images = torch.full((4000, 3, 2, 2), 0.5) * torch.tensor([1.0, 0.6, 0.2]).view(3, 1, 1)
    views = ColourJitter()(images, generator())
    colours = views[:, :, 0, 0]
    changed = (colours - images[:, :, 0, 0]).abs().amax(1) > 1e-6
    assert abs(changed.float().mean() - 0.8) < 0.02
    assert len(colours[changed].unique(dim=0)) > 0.99 * changed.sum()


def test_brightness_is_uniform_within_its_strength() -> None:
    views = ColourJitter(strength=0.4, hue=0.0, probability=1.0)(torch.full((4000, 1, 1, 1), 0.5), generator())
    factors = views.flatten() / 0.5  # contrast and saturation leave an even grey as it is
    assert_close(
        factors.quantile(torch.tensor([0.0, 0.25, 0.5, 0.75, 1.0])),
        torch.tensor([0.6, 0.8, 1.0, 1.2, 1.4]),
        atol=0.03,
        rtol=0,
    )


def test_the_place_of_the_hue_does_not_go_by_place_in_the_batch() -> None:
    """The same image all over the batch: its changed versions must not fall into quarters."""
    images = torch.tensor([0.9, 0.5, 0.1]).view(1, 3, 1, 1).expand(4000, 3, 1, 1)
    strong = ColourJitter(strength=0.9, hue=0.5, probability=1.0)(images, generator())
    quarters = strong.mean((1, 2, 3)).view(4, 1000).mean(1)
    assert (quarters - quarters.mean()).abs().max() < 0.02


def test_grey_takes_a_fifth_and_leaves_the_rest() -> None:
    images = pictures(4000)
    views = Greyscale()(images, generator())
    grey = (views == views[:, :1]).all(1).flatten(1).all(1)
    assert abs(grey.float().mean() - 0.2) < 0.02
    assert torch.equal(views[~grey], images[~grey])
    assert_close(views[grey], oracle.rgb_to_grayscale(images[grey], 3))
