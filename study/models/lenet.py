"""lenet: LeNet-5 with tanh, the CCL-K paper's network for ColorMNIST (protocol 2)."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from study.data.dataset import Facts
from study.models.network_keys import not_images, size

if TYPE_CHECKING:
    from study.models.encoder import Encoder

IMAGE_SIDE = 32


@dataclass(frozen=True)
class Options:
    """Keys of the `model` section: there are none."""


def unsuited(options: Options, facts: Facts) -> str | None:
    """Say why the data do not suit: they must be images of 28 or 32 pixels a side, with any number of channels."""
    if (problem := not_images(facts)) is not None:
        return problem
    if all(side in (28, IMAGE_SIDE) for side in facts.shape[1:]):
        return None
    return f"takes images of 28 x 28 or {IMAGE_SIDE} x {IMAGE_SIDE} pixels, not of {size(facts)}"


def build(options: Options, facts: Facts) -> "Encoder":
    """Build the network for images of `facts.shape`."""
    from study.models.small_networks import LeNet

    return LeNet(facts.shape[0], IMAGE_SIDE)
