"""small_conv_net: 3 x 3 convolutions and a linear layer, for trials of seconds on a CPU and images of any size."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from typing_extensions import Doc

from study.data.dataset import Facts
from study.knobs import Range
from study.models.network_keys import not_images

if TYPE_CHECKING:
    from study.models.encoder import Encoder


@dataclass(frozen=True)
class Options:
    """Keys of the `model` section."""

    width: Annotated[
        int,
        Range(low=1),
        Doc("channels of the first convolution, doubled at each of the next two; a quarter of the features"),
    ] = 16


def unsuited(options: Options, facts: Facts) -> str | None:
    """Say why the data do not suit: they must be images."""
    return not_images(facts)


def build(options: Options, facts: Facts) -> "Encoder":
    """Build the network for images of `facts.shape`."""
    from study.models.small_networks import SmallConvNet

    return SmallConvNet(facts.shape, options.width)
