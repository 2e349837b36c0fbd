"""simple_conv_net: four 7 x 7 convolutions, the FairKL paper's network for Biased-MNIST (protocol 1)."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Literal

from torch import Tensor, nn
from typing_extensions import Doc

from study.data.dataset import Facts
from study.models.encoder import Encoder, kaiming, not_images

WIDTHS = (16, 32, 64, 128)
ACTIVATIONS = {"tanh": nn.Tanh, "relu": nn.ReLU}


@dataclass(frozen=True)
class Options:
    """Keys of the `model` section."""

    activation: Annotated[
        Literal["tanh", "relu"],
        Doc("activation after the last convolution; in the protocol tanh without a projection head, relu with one"),
    ] = "tanh"


class SimpleConvNet(Encoder):
    """Convolution and batch norm four times, ReLU after the first three, mean over positions: 128 features.

    Nothing is pooled in between, so an image costs about 0.42 billion multiply-adds at 28 x 28. Convolutions have no
    bias, which batch norm would take out again (the protocol counts 240 parameters more for them).
    """

    features = WIDTHS[-1]

    def __init__(self, channels: int, activation: str) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for inputs, outputs in pairwise((channels, *WIDTHS)):
            layers += [nn.Conv2d(inputs, outputs, 7, padding=3, bias=False), nn.BatchNorm2d(outputs), nn.ReLU()]
        self.layers = nn.Sequential(*layers[:-1], ACTIVATIONS[activation]())
        kaiming(self)

    def forward(self, images: Tensor) -> Tensor:
        return self.layers(images).mean((2, 3))


def unsuited(options: Options, facts: Facts) -> str | None:
    """Say why the data do not suit: they must be images."""
    return not_images(facts)


def build(options: Options, facts: Facts) -> Encoder:
    """Build the network for images of `facts.shape`."""
    return SimpleConvNet(facts.shape[0], options.activation)
