"""torchvision: any classification network of torchvision, ConvNeXt, EfficientNet, Swin, ViT and others, by its name."""

from dataclasses import dataclass
from typing import Annotated

import torch
from typing_extensions import Doc

from study.data.dataset import Facts
from study.models import published
from study.models.backbone import Backbone, BackboneOptions, outline, plain, wrong_weights
from study.models.encoder import Encoder
from study.models.inputs import not_images, size


@dataclass(frozen=True)
class Options(BackboneOptions):
    """Keys of the `model` section."""

    architecture: Annotated[
        str, Doc("which network, as torchvision names it; `study models list` prints all there are")
    ] = "convnext_tiny"


def unsuited(options: Options, facts: Facts) -> str | None:
    """Colour images that are as large as the network needs them."""
    if (problem := not_images(facts)) is not None:
        return problem
    name = options.architecture
    if (problem := published.wrong_architecture(name)) is not None:
        return problem
    if facts.shape[0] != 3:
        return f"takes colour images, not those of {facts.shape[0]} channels"
    problem = wrong_weights(name, options, facts, facts.shape[1]) or _wrong_size(options, facts)
    return f"with architecture {name} {problem}" if problem else None


def build(options: Options, facts: Facts) -> Encoder:
    """The network for images of `facts.shape`."""
    name = options.architecture
    return Backbone(plain(name, options, facts.shape[1]), name, options, facts)


def _wrong_size(options: Options, facts: Facts) -> str | None:
    """What is wrong with the size of the images: too small, or not one that the network can take."""
    name, sides = options.architecture, facts.shape[1:]
    least = published.published(name, published.DEFAULT).least
    made_for_any = name.startswith("vit_") and (options.weights is None)
    if min(sides) < least and not made_for_any:
        return f"takes images of at least {least} x {least} pixels, not of {size(facts)}"
    try:
        outline(name, options, sides[0])(torch.empty(2, *facts.shape, device="meta"))
    except (RuntimeError, AssertionError, ValueError) as error:
        reason = (str(error) or type(error).__name__).splitlines()[0]
        return f"cannot take images of {size(facts)} pixels ({reason})"
    return None
