"""small_conv_net: three 3 x 3 convolutions, for images of a few pixels and trials of a few seconds."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated

import torch
from torch import Tensor, nn
from typing_extensions import Doc

from study.data.dataset import Facts
from study.knobs import Range
from study.models.encoder import Encoder
from study.models.inputs import not_images


@dataclass(frozen=True)
class Options:
    """Keys of the `model` section."""

    width: Annotated[int, Range(low=1), Doc("channels of the first convolution, doubled at each further one")] = 16


class SmallConvNet(Encoder):
    """Convolution, batch norm, ReLU, three times; a pooling after the first two; mean over positions."""

    def __init__(self, channels: int, width: int) -> None:
        super().__init__()
        widths = [channels, width, 2 * width, 4 * width]
        layers: list[nn.Module] = []
        for index, (inputs, outputs) in enumerate(pairwise(widths)):
            layers += [nn.Conv2d(inputs, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU()]
            if index < 2:
                layers.append(nn.MaxPool2d(2, ceil_mode=True))
        self.layers = nn.Sequential(*layers)
        self.features = widths[-1]

    def forward(self, images: Tensor) -> Tensor:
        return torch.flatten(self.layers(images).mean((2, 3)), 1)


def unsuited(options: Options, facts: Facts) -> str | None:
    """Any images will do."""
    return not_images(facts)


def build(options: Options, facts: Facts) -> Encoder:
    """The network for images of `facts.shape`."""
    return SmallConvNet(facts.shape[0], options.width)
