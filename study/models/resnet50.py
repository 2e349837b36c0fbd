"""resnet50: the network of DCL, HCL and WCL (cifar stem; protocol 4) and of the CCL-K paper."""

from typing import TYPE_CHECKING

from study.data.dataset import Facts
from study.models.backbone import ResNetOptions, unsuited_resnet

if TYPE_CHECKING:
    from study.models.encoder import Encoder

Options = ResNetOptions


def unsuited(options: ResNetOptions, facts: Facts) -> str | None:
    """Say why the data or keys do not suit, see `unsuited_resnet`."""
    return unsuited_resnet("resnet50", options, facts)


def build(options: ResNetOptions, facts: Facts) -> "Encoder":
    """Build the network for images of `facts.shape`: 2048 features."""
    from study.models.backbone_network import resnet

    return resnet("resnet50", options, facts)
