"""resnet50: the network of DCL, HCL and WCL (cifar stem; protocol 4) and of the CCL-K paper."""

from study.data.dataset import Facts
from study.models.encoder import Encoder
from study.models.residual import ResNetOptions, resnet, unsuited_resnet

Options = ResNetOptions


def unsuited(options: ResNetOptions, facts: Facts) -> str | None:
    """Say why the data or keys do not suit, see `unsuited_resnet`."""
    return unsuited_resnet("resnet50", options, facts)


def build(options: ResNetOptions, facts: Facts) -> Encoder:
    """Build the network for images of `facts.shape`: 2048 features."""
    return resnet("resnet50", options, facts)
