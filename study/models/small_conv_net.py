"""small_conv_net: 3 x 3 convolutions and a linear layer, for trials of seconds on a CPU and images of any size."""

import math
from dataclasses import dataclass
from typing import Annotated

import torch
from torch import Tensor, nn
from torch.nn import functional
from typing_extensions import Doc

from study.data.dataset import Facts
from study.knobs import Range
from study.models.encoder import Encoder, not_images

GRID = 4
"""Positions along the longer side that the linear layer sees."""

POOLED = 32
"""Pixels of a side up to which it is halved by max pooling; a longer one is halved by stride, at a quarter the cost."""

WIDEST = 4
"""Channels of the widest convolution, and features, in multiples of `width`."""


@dataclass(frozen=True)
class Options:
    """Keys of the `model` section."""

    width: Annotated[
        int,
        Range(low=1),
        Doc("channels of the first convolution, doubled at each of the next two; a quarter of the features"),
    ] = 16


class SmallConvNet(Encoder):
    """Convolution, batch norm and ReLU, at least twice, then a linear layer.

    Each convolution halves the image until 4 x 4 positions are left, and the linear layer, without activation, sees
    them all. Measured (`tests/benchmarks/networks.py`): with the mean over positions instead, it does not learn digits
    of 28 pixels and more, since each position sees a small patch and the mean forgets where. A ReLU behind the linear
    layer costs accuracy, too: the cosines of features that have one sign are never below 0.

    Args:
        shape: of the images that it is trained on, (channels, height, width). It takes others, too: their grid is
            averaged to that of this shape.
        width: see `Options`.
    """

    def __init__(self, shape: tuple[int, ...], width: int) -> None:
        super().__init__()
        inputs, *sides = shape
        halvings = math.ceil(math.log2(max(sides) / GRID))
        layers: list[nn.Module] = []
        for index in range(max(2, halvings)):
            outputs, halve, by_stride = width * min(2**index, WIDEST), index < halvings, max(sides) > POOLED
            layers.append(nn.Conv2d(inputs, outputs, 3, stride=2 if by_stride else 1, padding=1, bias=False))
            layers += [nn.BatchNorm2d(outputs), nn.ReLU()]
            if halve and not by_stride:
                layers.append(nn.MaxPool2d(2, ceil_mode=True))
            sides = [math.ceil(side / 2) for side in sides] if halve else sides
            inputs = outputs
        self.layers = nn.Sequential(*layers)
        self.grid = sides[0], sides[1]
        self.features = WIDEST * width
        self.last = nn.Linear(inputs * math.prod(sides), self.features)

    def forward(self, images: Tensor) -> Tensor:
        positions = self.layers(images)
        if positions.shape[2:] != self.grid:
            positions = functional.adaptive_avg_pool2d(positions, self.grid)
        return self.last(torch.flatten(positions, 1))


def unsuited(options: Options, facts: Facts) -> str | None:
    """Say why the data do not suit: they must be images."""
    return not_images(facts)


def build(options: Options, facts: Facts) -> Encoder:
    """Build the network for images of `facts.shape`."""
    return SmallConvNet(facts.shape, options.width)
