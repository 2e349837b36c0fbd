"""timm: any classification network of the library timm of which weights are published, by its name."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from study.data.dataset import Facts
from study.models.backbone import Architecture, BackboneOptions
from study.models.published import TIMM

if TYPE_CHECKING:
    from study.models.encoder import Encoder


@dataclass(frozen=True)
class Options(BackboneOptions):
    """Keys of the `model` section."""

    architecture: Architecture = ""


def unsuited(options: Options, facts: Facts) -> str | None:
    """Say why the data or keys do not suit: data must be colour images as large as the network needs."""
    from study.models.backbone_network import unsuited_to

    return unsuited_to(f"{TIMM}{options.architecture}", options, facts)


def build(options: Options, facts: Facts) -> "Encoder":
    """Build the network for images of `facts.shape`."""
    from study.models.backbone_network import Backbone, plain

    name = f"{TIMM}{options.architecture}"
    return Backbone(plain(name, options.weights, facts.shape[1]), name, options, facts)
