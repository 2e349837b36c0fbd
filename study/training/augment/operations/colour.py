"""Colour changes of RGB images (B, 3, H, W) and grey ones (B, 1, H, W) in [0, 1], as torchvision defines them.

Where no colour is, there is none to change: saturation, hue and greyscale leave grey images as they are.
"""

from dataclasses import dataclass
from itertools import permutations

import torch
from torch import Tensor

from study.training.augment.operations import Constant, chosen, uniform

RED, GREEN, BLUE = 0.2989, 0.587, 0.114
CHANGES = BRIGHTNESS, CONTRAST, SATURATION = 0, 1, 2
ORDERS = list(permutations(CHANGES))
FROM_CHANNELS = Constant(2.0 - torch.tensor([0.0, 1 / 3, 2 / 3]))
"""From red, green and blue to red on the circle of hues, in turns, and one more: positive with any hue and shift."""
TINY = 1e-12


def _effects(weights: list[float]) -> Constant:
    """What is added to a colour for each unit of a change's amount, (6, 3, C + 1, C): by `ORDERS` and place in these.

    With a factor of 1 + amount, brightness adds amount * x, contrast amount * (x - the image's mean grey), saturation
    amount * (x - grey). The first C rows are by what the colour is multiplied, the last by what the image's mean is.

    Args:
        weights: of the channels (C) in their grey.
    """
    channels = len(weights)
    grey, itself, nothing = torch.tensor([weights]), torch.eye(channels), torch.zeros(1, channels)
    rows = {BRIGHTNESS: (itself, nothing), CONTRAST: (itself, -grey), SATURATION: (itself - grey, nothing)}
    changes = {change: torch.cat(parts) for change, parts in rows.items()}
    return Constant(torch.stack([torch.stack([changes[change] for change in order]) for order in ORDERS]))


EFFECTS = {1: _effects([1.0]), 3: _effects([RED, GREEN, BLUE])}
UNCHANGED = {channels: Constant(torch.eye(channels + 1, channels)) for channels in EFFECTS}


@dataclass(frozen=True)
class ColourJitter:
    """Brightness, contrast, saturation and hue by random factors and in random order, as torchvision's `ColorJitter`.

    Each sample has factors and an order of its own, all 24 orders alike.

    Attributes:
        strength: of each factor, which is uniform in [1 - strength, 1 + strength]; in [0, 1].
        hue: largest shift, in turns of the colour circle, in [0, 0.5].
        probability: of changing a sample at all.
    """

    strength: float = 0.4
    hue: float = 0.1
    probability: float = 0.8

    def __call__(self, images: Tensor, generator: torch.Generator) -> Tensor:
        batch = len(images)
        draws = uniform(generator, 4, batch, low=-1.0).mul_(chosen(generator, batch, self.probability))
        order = torch.randint(len(ORDERS), (batch,), generator=generator, device=generator.device)
        # Samples are shuffled, so that the hue's place in the order is random though it goes by place in the batch.
        shuffled = uniform(generator, batch).argsort()
        changed = jitter(images.index_select(0, shuffled), draws, order, self.strength, self.hue)
        return torch.empty_like(changed).index_copy_(0, shuffled, changed)


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


def jitter(images: Tensor, draws: Tensor, order: Tensor, strength: float, hue: float) -> Tensor:
    """Images, each after four changes in an order of its own; the images given are overwritten.

    The hue is shifted in all images at once. Of the three other changes the images of the first quarter of the batch
    have none before that, those of the second quarter one, and so on; what came before for a quarter is left out after:

        first:  hue 0 1 2,   second:  2 hue 0 1,   third:  1 2 hue 0,   fourth:  0 1 2 hue

    Args:
        draws: (4, B): the factors of the changes 0, 1, 2, less 1, in units of `strength`; the shift of the hue, in
            units of `hue`. 0 changes nothing.
        order: (B,): which of `ORDERS` the changes 0, 1, 2 are.
        strength: see `ColourJitter`.
        hue: see there.
    """
    channels, device = images.shape[1], images.device
    effects = EFFECTS[channels].on(device).index_select(0, order)
    matrices = torch.addcmul(UNCHANGED[channels].on(device), effects, draws[:3].mT[:, :, None, None], value=strength)
    starts = [len(images) * quarter // 4 for quarter in (3, 2, 1)]
    spare = torch.empty_like(images)
    for change, start in enumerate(starts):
        blend(images[start:], matrices[start:, change], spare[start:])
    if channels == 3:
        shift_hue(images, draws[3], hue, spare)
        images, spare = spare, images
    for change, start in enumerate(starts):
        blend(images[:start], matrices[:start, change], spare[:start])
    return images


def blend(images: Tensor, matrices: Tensor, spare: Tensor) -> None:
    """Change colours in place: `matrices` (B, C + 1, C) times the colour, the last row times the image's mean added.

    Brightness, contrast and saturation are such matrices; as data, each sample can have another.

    Args:
        spare: memory of the shape of the images, which is overwritten: fresh memory costs a CPU more than the changes.
    """
    channels, pixels = images.shape[1], images.flatten(2)
    added = torch.bmm(matrices[:, channels:], pixels.mean(2, keepdim=True))
    changed = torch.baddbmm(added, matrices[:, :channels], pixels, out=spare.flatten(2))
    torch.clamp(changed, 0.0, 1.0, out=pixels)


def shift_hue(images: Tensor, shift: Tensor, unit: float, out: Tensor) -> None:
    """Write RGB images to `out` with their hue turned by `shift` (B,) times `unit` turns, at most one turn either way.

    Exact, as by way of HSV and back, but value and saturation are never computed: a channel is least + chroma *
    clamp(6 a - 1, 0, 1), with a its distance from the colour opposite to the hue on the circle, in turns.
    """
    red, green, blue = images.split(1, 1)
    most, least = images.amax(1, keepdim=True), images.amin(1, keepdim=True)
    # Masks as floats and `lerp` (exact at 0 and 1): on CPU many times as fast as `where` with Boolean masks.
    is_most, other = torch.eq(images[:, :2], most, out=out[:, :2]), out[:, 2:]
    chroma = most.sub_(least).clamp_(min=TINY)
    sixths = (red - green).add_(chroma, alpha=4.0)
    sixths.lerp_(torch.sub(blue, red, out=other).add_(chroma, alpha=2.0), is_most[:, 1:])
    sixths.lerp_(torch.sub(green, blue, out=other), is_most[:, :1])
    offset = torch.add(FROM_CHANNELS.on(images.device), shift[:, None], alpha=unit)[:, :, None, None]
    turns = torch.addcdiv(offset, sixths, chroma, value=1 / 6, out=out)
    rises = turns.frac_().sub_(0.5).abs_().mul_(6.0).sub_(1.0).clamp_(0.0, 1.0)
    torch.addcmul(least, chroma, rises, out=out)
