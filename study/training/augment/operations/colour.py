"""Colour changes of RGB images (B, 3, H, W) and grey ones (B, 1, H, W) in [0, 1], as torchvision defines them.

Where no colour is, there is none to change: saturation, hue and greyscale leave grey images as they are.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from study.training.augment.operations import chosen, uniform

RED, GREEN, BLUE = 0.2989, 0.587, 0.114
CONTRAST, SATURATION = 1, 2
HUE_SLOTS = 4
"""The hue changes before, between or after the three other changes."""
TINY = 1e-12


@dataclass(frozen=True)
class ColourJitter:
    """Brightness, contrast, saturation and hue by random factors and in random order, as torchvision's `ColorJitter`.

    Each sample has factors and an order of its own, all 24 orders alike.

    Attributes:
        strength: of each factor, which is uniform in [max(0, 1 - strength), 1 + strength].
        hue: largest shift, in turns of the colour circle, in [0, 0.5].
        probability: of changing a sample at all.
    """

    strength: float = 0.4
    hue: float = 0.1
    probability: float = 0.8

    def __call__(self, images: Tensor, generator: torch.Generator) -> Tensor:
        batch = len(images)
        applied = chosen(generator, batch, self.probability)
        low, high = max(0.0, 1.0 - self.strength), 1.0 + self.strength
        factors = uniform(generator, 3, batch, low=low, high=high).sub_(1.0).mul_(applied).add_(1.0)
        shift = uniform(generator, batch, low=-self.hue, high=self.hue).mul_(applied)
        order = uniform(generator, 3, batch).argsort(0)
        # Samples are shuffled, so that the hue's place in the order is random though it goes by place in the batch.
        shuffled = uniform(generator, batch).argsort()
        changed = images.index_select(0, shuffled)
        jitter(changed, factors, shift, order)
        return changed.index_select(0, shuffled.argsort())


@dataclass(frozen=True)
class Greyscale:
    """Colour taken away with a probability, as torchvision's `RandomGrayscale`."""

    probability: float = 0.2

    def __call__(self, images: Tensor, generator: torch.Generator) -> Tensor:
        applied = chosen(generator, len(images), self.probability)
        return torch.lerp(images, luminance(images), applied[:, None, None, None])


def luminance(images: Tensor) -> Tensor:
    """Grey values (B, 1, H, W), a new tensor."""
    if images.shape[1] == 1:
        return images.clone()
    return (images[:, :1] * RED).add_(images[:, 1:2], alpha=GREEN).add_(images[:, 2:], alpha=BLUE)


def jitter(images: Tensor, factors: Tensor, shift: Tensor, order: Tensor) -> None:
    """Change images in place.

    The first quarter of the batch has its hue shifted before the three other changes, the second after the first of
    them, and so on: one pass over the batch, where any sample at any place would take four.

    Args:
        factors: (3, B): of brightness, contrast and saturation; 1 changes nothing.
        shift: (B,), of the hue, in turns.
        order: (3, B): which of the three is first, second, third.
    """
    quarters = zip(images.tensor_split(HUE_SLOTS), shift.tensor_split(HUE_SLOTS), strict=True)
    shift_hue(*next(quarters))
    for kind, (quarter, shifts) in zip(order, quarters, strict=True):
        blend(images, kind, factors.gather(0, kind[None])[0])
        shift_hue(quarter, shifts)


def blend(images: Tensor, kind: Tensor, factor: Tensor) -> None:
    """Mix images in place with black, their mean grey or their grey values (`kind` 0, 1, 2, (B,)): factor * x + rest.

    These are brightness, contrast and saturation; with the kind as data, each sample can have another.
    """
    grey, rest = luminance(images), 1.0 - factor
    mean = grey.mean((1, 2, 3)) * rest * (kind == CONTRAST)
    grey.mul_((rest * (kind == SATURATION))[:, None, None, None]).add_(mean[:, None, None, None])
    images.mul_(factor[:, None, None, None]).add_(grey).clamp_(0.0, 1.0)


def shift_hue(images: Tensor, shift: Tensor) -> None:
    """Turn the hue of RGB images in place by `shift` (B,) turns; grey images stay as they are.

    Exact, as by way of HSV and back, but value and saturation are never computed: with h the hue in sixths of a turn, a
    channel is least + chroma * clamp(trapezium(h), 0, 1).
    """
    if images.shape[1] == 1:
        return
    red, green, blue = images.unbind(1)
    most = torch.maximum(red, green).maximum(blue)
    least = torch.minimum(red, green).minimum(blue)
    chroma = most - least
    # Masks as floats and `lerp` (exact at 0 and 1): on CPU many times as fast as `where` with Boolean masks.
    is_red, is_green = red.clone().eq_(most), green.clone().eq_(most)
    hue = (red - green).add_(chroma, alpha=4.0)
    hue = hue.lerp_((blue - red).add_(chroma, alpha=2.0), is_green).lerp_(green - blue, is_red)
    hue.div_(chroma.clamp(min=TINY)).add_(shift[:, None, None], alpha=6.0)
    hue.sub_((hue / 6.0).floor_(), alpha=6.0)
    trapezia = ((hue - 3.0).abs_().sub_(1.0), 2.0 - (hue - 2.0).abs_(), 2.0 - (hue - 4.0).abs_())
    for channel, trapezium in zip((red, green, blue), trapezia, strict=True):
        torch.addcmul(least, chroma, trapezium.clamp_(0.0, 1.0), out=channel)
