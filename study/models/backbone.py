"""Networks of torchvision as encoders: their classifier taken off, begun from weights, and frozen up to a stage."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Literal

import torch
from torch import Tensor, nn
from typing_extensions import Doc

from study.data.dataset import Facts
from study.knobs import Range
from study.models import published
from study.models.encoder import Encoder

CLASSES = 1000
"""Outputs of the classifier that torchvision's networks have."""

FEWEST = 4
"""A network of fewer parts is taken apart further before its stages are counted."""

NORMS = (nn.BatchNorm2d, nn.GroupNorm, nn.LayerNorm)
FILES = (".safetensors", ".pth", ".pt")


@dataclass(frozen=True)
class BackboneOptions:
    """Keys of the `model` section of a network that can begin from weights."""

    weights: Annotated[
        str | None,
        Doc(
            "weights to begin from: `imagenet` or another of torchvision's names, fetched by `study models "
            "prepare`; or a file (.safetensors, .pth); null: random ones"
        ),
    ] = None
    frozen: Annotated[
        int,
        Range(low=0),
        Doc(
            "stages, counted from the input, that are not trained; `study models prepare` prints how many a network has"
        ),
    ] = 0
    lr_factor: Annotated[
        float,
        Range(above=0.0),
        Doc("learning rate of the network without its head, as a multiple of `train.learning_rate`"),
    ] = 1.0
    normalisation: Annotated[
        Literal["weights", "data"],
        Doc(
            "pixels are normalised as the published `weights` want it, or as the `data` set says; without "
            "weights always the latter"
        ),
    ] = "weights"


class Backbone(Encoder):
    """A classification network of torchvision up to the features before its last layer.

    Its state holds nothing of the normalisation: that follows from the options.

    Args:
        net: with its classifier of `CLASSES` outputs.
        architecture: its name.
        options: of the `model` section.
        facts: of the data.

    Attributes:
        net: without its last layer.
        dropped: the name in `net` of the layer that was taken off.
    """

    def __init__(self, net: nn.Module, architecture: str, options: BackboneOptions, facts: Facts) -> None:
        super().__init__()
        self.net, self.architecture = net, architecture
        self.dropped, self.features = behead(net)
        self.lr_factor = options.lr_factor
        parts = stages(net)
        self._still = [part for stage in parts[: options.frozen] for part in stage]
        if options.frozen:
            moving = {id(tensor) for stage in parts[options.frozen :] for part in stage for tensor in part.parameters()}
            for tensor in net.parameters():
                tensor.requires_grad_(id(tensor) in moving)
        scale, shift = renormalisation(architecture, options, facts)
        self._scale: Tensor | None
        self._shift: Tensor | None
        self.register_buffer("_scale", scale, persistent=False)
        self.register_buffer("_shift", shift, persistent=False)

    def train(self, mode: bool = True) -> "Backbone":
        super().train(mode)
        for part in self._still:
            part.eval()
        return self

    def forward(self, images: Tensor) -> Tensor:
        scale, shift = self._scale, self._shift
        features: Tensor = self.net(images if scale is None or shift is None else images * scale + shift)
        return features


def renormalisation(
    architecture: str, options: BackboneOptions, facts: Facts
) -> tuple[Tensor, Tensor] | tuple[None, None]:
    """Factors and summands (C, 1, 1) from images as the data set normalises them to images as the weights want them;
    None where these are the same, or nothing is to be done."""
    if options.weights is None or options.normalisation == "data":
        return None, None
    name = published.DEFAULT if is_file(options.weights) else options.weights
    wanted = published.published(architecture, name)
    if facts.shape[0] != len(wanted.mean):
        return None, None
    mean, deviation = (torch.tensor(value, dtype=torch.float64) for value in (wanted.mean, wanted.deviation))
    own_mean, own_deviation = (torch.tensor(value, dtype=torch.float64) for value in (facts.mean, facts.deviation))
    scale, shift = own_deviation / deviation, (own_mean - mean) / deviation
    if bool((scale == 1).all()) and bool((shift == 0).all()):
        return None, None
    return scale.float().reshape(-1, 1, 1), shift.float().reshape(-1, 1, 1)


def is_file(weights: str) -> bool:
    """Return whether the value of `model.weights` names a file, not published weights."""
    return weights.endswith(FILES)


def behead(net: nn.Module) -> tuple[str, int]:
    """Take off the layer that gives the scores of classes; its name, and the features that it saw."""
    name, last = next(
        (name, part)
        for name, part in reversed(list(net.named_modules()))
        if (isinstance(part, nn.Linear) and part.out_features == CLASSES)
        or (isinstance(part, nn.Conv2d) and part.out_channels == CLASSES)
    )
    parent, _, leaf = name.rpartition(".")
    setattr(net.get_submodule(parent), leaf, nn.Identity())
    return name, last.in_features if isinstance(last, nn.Linear) else last.in_channels


def stages(net: nn.Module) -> list[list[nn.Module]]:
    """The stages of a network, from the input on: its parts with parameters, a norm with the part before it.

    While there are fewer than `FEWEST`, the largest part that consists of others is taken apart. A ResNet has 5 (stem,
    four blocks), ConvNeXt and Swin 8, a ViT its patches and each layer. Parameters in no part, as the position
    embedding of a ViT, belong to the first stage.
    """
    parts = list(_parts(net))
    while len(grouped := _with_norms(parts)) < FEWEST:
        composed = [part for part in parts if next(_parts(part), None) is not None]
        if not composed:
            break
        largest = max(composed, key=lambda part: sum(tensor.numel() for tensor in part.parameters()))
        place = next(place for place, part in enumerate(parts) if part is largest)
        parts[place : place + 1] = _parts(largest)
    return grouped


def _parts(module: nn.Module) -> Iterator[nn.Module]:
    return (part for part in module.children() if next(part.parameters(), None) is not None)


def _with_norms(parts: list[nn.Module]) -> list[list[nn.Module]]:
    grouped: list[list[nn.Module]] = []
    for part in parts:
        own = [inner for inner in part.modules() if next(inner.parameters(recurse=False), None) is not None]
        if grouped and all(isinstance(inner, NORMS) for inner in own):
            grouped[-1].append(part)
        else:
            grouped.append([part])
    return grouped


def plain(architecture: str, weights: str | None, side: int) -> nn.Module:
    """The network with its classifier, weights drawn from torch's generator.

    Args:
        weights: of the `model` section; they are not put in.
        side: pixels of the images; only a ViT is made for one size, that of published weights where these are given.
    """
    from torchvision.models import get_model

    if not architecture.startswith("vit_"):
        net: nn.Module = get_model(architecture, weights=None)
        return net
    if weights is not None and not is_file(weights):
        side = published.published(architecture, weights).least
    net = get_model(architecture, weights=None, image_size=side)
    return net


@cache
def outline(architecture: str, weights: str | None, side: int) -> nn.Module:
    """The network without its last layer and without values, in evaluation mode: for questions about its form."""
    try:
        with torch.device("meta"):
            net = plain(architecture, weights, side)
    except NotImplementedError:  # a RegNet reads its widths off tensors, which meta tensors refuse
        with torch.random.fork_rng(devices=[]):
            net = plain(architecture, weights, side).to("meta")
    behead(net)
    return net.eval()


def wrong_weights(architecture: str, options: BackboneOptions, facts: Facts, side: int) -> str | None:
    """Return what is wrong with the keys of `BackboneOptions`, ready to show behind the network's name; None if nothing
    is.

    Whether the file is there, and fits, is seen when it is read.
    """
    if options.weights is None:
        return "with frozen stages needs weights: they would stay random" if options.frozen else None
    if not is_file(options.weights):
        if options.weights not in (names := published.weights_of(architecture)):
            return f"has no weights {options.weights!r}. {published.allowed(names)}"
        if facts.shape[0] != 3:
            return f"with weights {options.weights} takes colour images, not those of {facts.shape[0]} channels"
    count = len(stages(outline(architecture, options.weights, side)))
    return f"has {count} stages, not {options.frozen} to freeze" if options.frozen > count else None
