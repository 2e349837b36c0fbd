"""resnet18: the FSCL paper's network (cifar stem; protocol 3) and the WCL paper's for CelebA and Waterbirds."""

from study.data.dataset import Facts
from study.models.encoder import Encoder
from study.models.residual import ResNetOptions, resnet, unsuited_resnet

Options = ResNetOptions


def unsuited(options: ResNetOptions, facts: Facts) -> str | None:
    """Say why the data or keys do not suit, see `unsuited_resnet`."""
    return unsuited_resnet("resnet18", options, facts)


def build(options: ResNetOptions, facts: Facts) -> Encoder:
    """Build the network for images of `facts.shape`: 512 features."""
    return resnet("resnet18", options, facts)
