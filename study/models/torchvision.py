"""torchvision: any classification network of torchvision, ConvNeXt, EfficientNet, Swin, ViT and others, by its name."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from study.data.dataset import Facts
from study.models.backbone import Architecture, BackboneOptions

if TYPE_CHECKING:
    from study.models.encoder import Encoder


@dataclass(frozen=True)
class Options(BackboneOptions):
    """Keys of the `model` section."""

    architecture: Architecture = "convnext_tiny"


def unsuited(options: Options, facts: Facts) -> str | None:
    """Say why the data or keys do not suit: data must be colour images as large as the network needs."""
    from study.models.backbone_network import unsuited_to

    return unsuited_to(options.architecture, options, facts)


def build(options: Options, facts: Facts) -> "Encoder":
    """Build the network for images of `facts.shape`."""
    from study.models.backbone_network import Backbone, plain

    name = options.architecture
    return Backbone(plain(name, options.weights, facts.shape[1]), name, options, facts)
