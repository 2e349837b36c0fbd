"""timm: any classification network of the library timm of which weights are published, by its name."""

from dataclasses import dataclass

from study.data.dataset import Facts
from study.models.backbone import Architecture, Backbone, BackboneOptions, plain, unsuited_to
from study.models.encoder import Encoder
from study.models.published import TIMM


@dataclass(frozen=True)
class Options(BackboneOptions):
    """Keys of the `model` section."""

    architecture: Architecture = ""


def unsuited(options: Options, facts: Facts) -> str | None:
    """Say why the data or keys do not suit: data must be colour images as large as the network needs."""
    return unsuited_to(f"{TIMM}{options.architecture}", options, facts)


def build(options: Options, facts: Facts) -> Encoder:
    """Build the network for images of `facts.shape`."""
    name = f"{TIMM}{options.architecture}"
    return Backbone(plain(name, options.weights, facts.shape[1]), name, options, facts)
