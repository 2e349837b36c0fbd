"""efficientnet_lite0: EfficientNet-Lite0, for two cores; its weights of ImageNet come as a Python package."""

from typing import TYPE_CHECKING

from study.data.dataset import Facts
from study.models.backbone import BackboneOptions, wrong_weights
from study.models.network_keys import not_images

if TYPE_CHECKING:
    from study.models.encoder import Encoder

Options = BackboneOptions


def unsuited(options: BackboneOptions, facts: Facts) -> str | None:
    """Say why the data do not suit: they must be colour images."""
    if (problem := not_images(facts)) is not None:
        return problem
    if facts.shape[0] != 3:
        return f"takes colour images, not those of {facts.shape[0]} channels"
    return wrong_weights("efficientnet_lite0", options, facts)


def build(options: BackboneOptions, facts: Facts) -> "Encoder":
    """Build the network for images of `facts.shape`: 1280 features."""
    from study.models.backbone_network import Backbone
    from study.models.efficientnet import EfficientNetLite0

    return Backbone(EfficientNetLite0(), "efficientnet_lite0", options, facts)
