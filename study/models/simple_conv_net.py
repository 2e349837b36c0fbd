"""simple_conv_net: four 7 x 7 convolutions, the FairKL paper's network for Biased-MNIST (protocol 1)."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from typing_extensions import Doc

from study.data.dataset import Facts
from study.models.network_keys import not_images

if TYPE_CHECKING:
    from study.models.encoder import Encoder


@dataclass(frozen=True)
class Options:
    """Keys of the `model` section."""

    activation: Annotated[
        Literal["tanh", "relu"],
        Doc("activation after the last convolution; in the protocol tanh without a projection head, relu with one"),
    ] = "tanh"


def unsuited(options: Options, facts: Facts) -> str | None:
    """Say why the data do not suit: they must be images."""
    return not_images(facts)


def build(options: Options, facts: Facts) -> "Encoder":
    """Build the network for images of `facts.shape`."""
    from study.models.small_networks import SimpleConvNet

    return SimpleConvNet(facts.shape[0], options.activation)
