"""Networks of torchvision as encoders: their classifier taken off, begun from weights."""

from collections.abc import Callable
from copy import deepcopy
from functools import cache, partial
from typing import Any, Self, TypeVar

import torch
from torch import Tensor, nn

from study.data.dataset import Facts
from study.models import network_keys, published_weights
from study.models.encoder import Encoder, init_kaiming

TORCHVISION_CLASS_COUNT = 1000
"""Number of outputs of the classifier in torchvision's networks."""

ModuleType = TypeVar("ModuleType", bound=nn.Module)


class Backbone(Encoder):
    """A classification network up to the features before its last layer.

    Its state holds nothing of the normalisation: that follows from the options.

    Args:
        net: with its classifier, torchvision's of `TORCHVISION_CLASS_COUNT` outputs.
        architecture: its name.
        options: of the `model` section.
        facts: of the data.

    Attributes:
        net: without its last layer.
        dropped: the names of the tensors that were taken off.
    """

    def __init__(self, net: nn.Module, architecture: str, options: network_keys.BackboneOptions, facts: Facts) -> None:
        super().__init__()
        self.net, self.architecture = net, architecture
        self._cut = network_keys.LAST_FROZEN_LAYERS.get(architecture, {}).get(options.trained_stages)
        whole = net.state_dict().keys()
        self.features = remove_classifier(net)
        self.dropped = whole - net.state_dict().keys()
        self.lr_factor = options.lr_factor
        scale, shift = renormalisation_factors(architecture, options, facts)
        self._scale: Tensor | None
        self._shift: Tensor | None
        self.register_buffer("_scale", scale, persistent=False)
        self.register_buffer("_shift", shift, persistent=False)

    def forward(self, images: Tensor) -> Tensor:
        scale, shift = self._scale, self._shift
        features: Tensor = self.net(images if scale is None or shift is None else images * scale + shift)
        return features

    def feature_rows(self, images: Tensor) -> Tensor:
        """Convert images (B, C, H, W) to rows (B, M + E + L + F).

        They hold the maps that trained stages take, if there are such, features of early layers and of late stages,
        where these are known, and the last layer's.
        """
        early = network_keys.EARLY_LAYER_MODULES
        known = [early[self.architecture]] if self.architecture in early else []
        maps: list[Tensor] = []
        parts: list[Tensor] = []
        handles = [
            self.net.get_submodule(name).register_forward_hook(lambda *call: parts.append(call[2].mean((2, 3))))
            for name, _ in (*known, *network_keys.LATE_STAGE_MODULES.get(self.architecture, ()))
        ]
        if self._cut is not None:
            cut = self.net.get_submodule(self._cut[0])
            handles.append(cut.register_forward_hook(lambda *call: maps.append(call[2].flatten(1))))
        try:
            features = self(images)
        finally:
            for handle in handles:
                handle.remove()
        return torch.cat([*maps, *parts, features], 1)


class TrainedStages(Encoder):
    """The stages behind a module, with batch norm as it is: from its maps (B, C, H, W) to rows (B, L + F).

    They hold the features of those among `LATE_STAGE_MODULES`, averaged over the image, and those of the last layer.

    Args:
        backbone: whose stages are copied.
        trained: a value of `trained_stages` other than none.
        lr_factor: of its parameters.
    """

    uses_weight_decay = False

    def __init__(self, backbone: Backbone, trained: str, lr_factor: float) -> None:
        super().__init__()
        self.first, self.channels = network_keys.LAST_FROZEN_LAYERS[backbone.architecture][trained]
        self.lr_factor = lr_factor

    def train(self, mode: bool = True) -> Self:
        """Leave batch norm as it is."""
        return super().train(False)


def renormalisation_factors(
    architecture: str, options: network_keys.BackboneOptions, facts: Facts
) -> tuple[Tensor, Tensor] | tuple[None, None]:
    """Return factors and summands (C, 1, 1) from the data set's normalisation of images to that of the weights.

    None where the two are equal, or nothing is to be done.
    """
    if options.weights is None or options.normalisation == "data":
        return None, None
    name = published_weights.DEFAULT_WEIGHTS_NAME if network_keys.is_weights_file(options.weights) else options.weights
    wanted = published_weights.find_published_weights(architecture, name)
    if facts.shape[0] != len(wanted.mean):
        return None, None
    mean, deviation = (torch.tensor(value, dtype=torch.float64) for value in (wanted.mean, wanted.deviation))
    own_mean, own_deviation = (torch.tensor(value, dtype=torch.float64) for value in (facts.mean, facts.deviation))
    scale, shift = own_deviation / deviation, (own_mean - mean) / deviation
    if bool((scale == 1).all()) and bool((shift == 0).all()):
        return None, None
    return scale.float().reshape(-1, 1, 1), shift.float().reshape(-1, 1, 1)


def remove_classifier(net: nn.Module) -> int:
    """Remove what gives the scores of classes; return the number of features that it saw."""
    name, last = next(
        (name, part)
        for name, part in reversed(list(net.named_modules()))
        if (isinstance(part, nn.Linear) and part.out_features == TORCHVISION_CLASS_COUNT)
        or (isinstance(part, nn.Conv2d) and part.out_channels == TORCHVISION_CLASS_COUNT)
    )
    parent, _, leaf = name.rpartition(".")
    setattr(net.get_submodule(parent), leaf, nn.Identity())
    return last.in_features if isinstance(last, nn.Linear) else last.in_channels


def build_classifier(architecture: str, weights: str | None, side: int) -> nn.Module:
    """Build the network with its classifier, weights drawn from torch's generator.

    Args:
        weights: of the `model` section; they are not loaded.
        side: pixels of the images; only a ViT is made for one size, that of published weights where
            these are given.
    """
    from torchvision.models import get_model

    if not architecture.startswith("vit_"):
        net: nn.Module = get_model(architecture, weights=None)
        return net
    if weights is not None and not network_keys.is_weights_file(weights):
        side = published_weights.find_published_weights(architecture, weights).min_side
    net = get_model(architecture, weights=None, image_size=side)
    return net


def build_on_meta_device(build: Callable[[], ModuleType]) -> ModuleType:
    """Build a network without values in its tensors, where its parts allow this."""
    try:
        with torch.device("meta"):
            return build()
    except NotImplementedError:  # a RegNet reads its widths off tensors, which meta tensors refuse
        with torch.random.fork_rng(devices=[]):
            return build()


@cache
def build_meta_network(architecture: str, weights: str | None, side: int) -> nn.Module:
    """Build the network without its last layer and without values, in evaluation mode, to ask about its form."""
    net = build_on_meta_device(partial(build_classifier, architecture, weights, side)).to("meta")
    remove_classifier(net)
    return net.eval()


def build_resnet(name: str, options: network_keys.ResNetOptions, facts: Facts) -> Encoder:
    """Build the network `name` of torchvision for images of `facts.shape`, initialised as there."""
    net: Any = build_classifier(name, options.weights, facts.shape[1])
    channels = facts.shape[0]
    if options.stem == "cifar":
        net.conv1 = nn.Conv2d(channels, 64, 3, padding=1, bias=False)
        net.maxpool = nn.Identity()
        init_kaiming(net.conv1)
    elif channels != 3:
        net.conv1 = nn.Conv2d(channels, 64, 7, stride=2, padding=3, bias=False)
        init_kaiming(net.conv1)
    return Backbone(net, name, options, facts)


class ResNetStages(TrainedStages):
    """The last stages of a ResNet, see `TrainedStages`."""

    def __init__(self, backbone: Backbone, trained: str, lr_factor: float) -> None:
        super().__init__(backbone, trained, lr_factor)
        net: Any = deepcopy(backbone.net)
        self.stages = nn.Sequential(*([net.layer3] if self.first == "layer2" else []), net.layer4)

    def forward(self, maps: Tensor) -> Tensor:
        features: Tensor = self.stages(maps).mean((2, 3))
        return features


def why_backbone_unsuited(architecture: str, options: network_keys.BackboneOptions, facts: Facts) -> str | None:
    """Say why a data set does not suit a library's network: data must be colour images as large as it needs."""
    if (problem := network_keys.why_not_images(facts)) is not None:
        return problem
    if (problem := published_weights.why_wrong_architecture(architecture)) is not None:
        return problem
    if facts.shape[0] != 3:
        return f"takes colour images, not those of {facts.shape[0]} channels"
    problem = network_keys.why_wrong_weights(architecture, options, facts)
    problem = problem or _wrong_image_size(architecture, options.weights, facts.shape)
    return f"with architecture {architecture} {problem}" if problem else None


@cache
def _wrong_image_size(architecture: str, weights: str | None, shape: tuple[int, ...]) -> str | None:
    """Say what is wrong with images of this shape: too small, or not of a size that the network can take."""
    _, height, width = shape
    by_name = weights is not None and not network_keys.is_weights_file(weights)
    name = weights if by_name else published_weights.DEFAULT_WEIGHTS_NAME
    least = published_weights.find_published_weights(architecture, name).min_side
    any_side = architecture.startswith("vit_") and not by_name
    if min(height, width) < least and not any_side:
        return f"takes images of at least {least} x {least} pixels, not of {height} x {width}"
    try:
        build_meta_network(architecture, weights, height)(torch.empty(2, *shape, device="meta"))
    except (RuntimeError, AssertionError, ValueError) as error:
        reason = (str(error) or type(error).__name__).splitlines()[0]
        return f"cannot take images of {height} x {width} pixels ({reason})"
    return None
