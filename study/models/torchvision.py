"""torchvision: any classification network of torchvision, ConvNeXt, EfficientNet, Swin, ViT and others, by its name."""

from dataclasses import dataclass
from functools import cache
from typing import Annotated

import torch
from typing_extensions import Doc

from study.data.dataset import Facts
from study.models import published
from study.models.backbone import Backbone, BackboneOptions, is_file, outline, plain, wrong_weights
from study.models.encoder import Encoder, not_images


@dataclass(frozen=True)
class Options(BackboneOptions):
    """Keys of the `model` section."""

    architecture: Annotated[
        str, Doc("which network, as torchvision names it; `study models list` prints all there are")
    ] = "convnext_tiny"


def unsuited(options: Options, facts: Facts) -> str | None:
    """Say why the data or keys do not suit: data must be colour images as large as the network needs."""
    if (problem := not_images(facts)) is not None:
        return problem
    name = options.architecture
    if (problem := published.wrong_architecture(name)) is not None:
        return problem
    if facts.shape[0] != 3:
        return f"takes colour images, not those of {facts.shape[0]} channels"
    problem = wrong_weights(name, options, facts) or _wrong_size(name, options.weights, facts.shape)
    return f"with architecture {name} {problem}" if problem else None


def build(options: Options, facts: Facts) -> Encoder:
    """Build the network for images of `facts.shape`."""
    name = options.architecture
    return Backbone(plain(name, options.weights, facts.shape[1]), name, options, facts)


@cache
def _wrong_size(architecture: str, weights: str | None, shape: tuple[int, ...]) -> str | None:
    """Say what is wrong with images of this shape: too small, or not of a size that the network can take."""
    _, height, width = shape
    by_name = weights is not None and not is_file(weights)
    least = published.published(architecture, weights if by_name else published.DEFAULT).least
    any_side = architecture.startswith("vit_") and not by_name
    if min(height, width) < least and not any_side:
        return f"takes images of at least {least} x {least} pixels, not of {height} x {width}"
    try:
        outline(architecture, weights, height)(torch.empty(2, *shape, device="meta"))
    except (RuntimeError, AssertionError, ValueError) as error:
        reason = (str(error) or type(error).__name__).splitlines()[0]
        return f"cannot take images of {height} x {width} pixels ({reason})"
    return None
