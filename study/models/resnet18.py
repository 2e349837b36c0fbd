"""resnet18: the FSCL paper's network (cifar stem; protocol 3) and the WCL paper's for CelebA and Waterbirds."""

from typing import TYPE_CHECKING

from study.data.dataset import Facts
from study.models.backbone import ResNetOptions, unsuited_resnet

if TYPE_CHECKING:
    from study.models.encoder import Encoder

Options = ResNetOptions


def unsuited(options: ResNetOptions, facts: Facts) -> str | None:
    """Say why the data or keys do not suit, see `unsuited_resnet`."""
    return unsuited_resnet("resnet18", options, facts)


def build(options: ResNetOptions, facts: Facts) -> "Encoder":
    """Build the network for images of `facts.shape`: 512 features."""
    from study.models.backbone_network import resnet

    return resnet("resnet18", options, facts)
