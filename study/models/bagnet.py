"""bagnet: a network that sees small patches only (Brendel & Bethge 2019), to capture a bias such as texture.

With the blocks of ResNet-18 it is the bias-capturing model of the FairKL paper (appendix B.2.4) and of SoftCon.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from typing_extensions import Doc

from study.data.dataset import Facts
from study.knobs import Range
from study.models.network_keys import not_images, size

if TYPE_CHECKING:
    from study.models.encoder import Encoder


@dataclass(frozen=True)
class Options:
    """Keys of the `model` section."""

    receptive_field: Annotated[Literal[9, 17, 33], Doc("side of the patches, in pixels")] = 17
    width: Annotated[
        int, Range(low=1), Doc("channels of the first stage, doubled in each of the three further ones")
    ] = 64


def unsuited(options: Options, facts: Facts) -> str | None:
    """Say why the data do not suit: they must be images with room for one patch."""
    if (problem := not_images(facts)) is not None:
        return problem
    if min(facts.shape[1:]) >= options.receptive_field:
        return None
    return f"with receptive_field {options.receptive_field} takes images of at least that, not of {size(facts)} pixels"


def build(options: Options, facts: Facts) -> "Encoder":
    """Build the network for images of `facts.shape`: 8 * width features."""
    from study.models.small_networks import BagNet

    return BagNet(facts.shape[0], options.receptive_field, options.width)
