"""The networks that `model.name` may name: the keys of each, which data suit it, and how it is built.

Each is a row of `NETWORKS`: a function that builds it, whose name and docstring are the network's, its keys, and a
function that says why data do not suit it. Those that need PyTorch are imported where they are built. A network can
also be a module of this package, or of another distribution, with `Options`, `why_unsuited` and `build`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal

from study.data.dataset import Facts
from study.errors import UserError
from study.knobs import Range
from study.models import network_keys

if TYPE_CHECKING:
    from study.models.encoder import Encoder

LENET_SIDE = 32
"""Pixels of a side of the images that LeNet sees; smaller ones get a margin."""


@dataclass(frozen=True)
class CatalogueNetwork:
    """A network, of the form that `study.models` asks of a module.

    Attributes:
        build: builds its encoder for data of these facts, with these options.
        Options: its keys.
        why_unsuited: says why data do not suit it, ready to show; None if they do.
    """

    build: "Callable[[Any, Facts], Encoder]"
    Options: type
    why_unsuited: Callable[[Any, Facts], str | None]

    def __post_init__(self) -> None:
        object.__setattr__(self, "__doc__", self.build.__doc__)


@dataclass(frozen=True)
class NoOptions:
    """Keys of the `model` section: there are none."""


def lenet(options: NoOptions, facts: Facts) -> "Encoder":
    """lenet: LeNet-5 with tanh, the CCL-K paper's network for ColorMNIST (protocol 2)."""
    from study.models.small_networks import LeNet

    return LeNet(facts.shape[0], LENET_SIDE)


def why_unsuited_lenet(options: NoOptions, facts: Facts) -> str | None:
    """Say why the data do not suit: they must be images of 28 or 32 pixels a side, with any number of channels."""
    if (problem := network_keys.why_not_images(facts)) is not None:
        return problem
    if all(side in (28, LENET_SIDE) for side in facts.shape[1:]):
        return None
    given = network_keys.image_size_in_words(facts)
    return f"takes images of 28 x 28 or {LENET_SIDE} x {LENET_SIDE} pixels, not of {given}"


@dataclass(frozen=True)
class LinearOptions:
    """Keys of the `model` section.

    Attributes:
        features: width of the features.
    """

    features: Annotated[int, Range(low=1)] = 128


def linear(options: LinearOptions, facts: Facts) -> "Encoder":
    """linear: one fully connected layer for tables; with a classifier behind it a logistic regression."""
    from study.models.small_networks import Linear

    return Linear(facts.shape[0], options.features)


@dataclass(frozen=True)
class MLPOptions:
    """Keys of the `model` section.

    Attributes:
        depth: number of layers.
        width: units of each layer but the last.
        features: units of the last layer.
    """

    depth: Annotated[int, Range(low=1)] = 2
    width: network_keys.LayerWidth = 128
    features: network_keys.LayerWidth = 128


def mlp(options: MLPOptions, facts: Facts) -> "Encoder":
    """mlp: fully connected layers for tables, as the WCL paper's section 6.2 has them."""
    from study.models.small_networks import MLP

    return MLP(facts.shape[0], options.depth, options.width, options.features)


@dataclass(frozen=True)
class SimpleConvNetOptions:
    """Keys of the `model` section.

    Attributes:
        activation: activation after the last convolution; in the protocol tanh without a projection head, relu with
            one.
    """

    activation: Literal["tanh", "relu"] = "tanh"


def simple_conv_net(options: SimpleConvNetOptions, facts: Facts) -> "Encoder":
    """simple_conv_net: four 7 x 7 convolutions, the FairKL paper's network for Biased-MNIST (protocol 1)."""
    from study.models.small_networks import SimpleConvNet

    return SimpleConvNet(facts.shape[0], options.activation)


@dataclass(frozen=True)
class SmallConvNetOptions:
    """Keys of the `model` section.

    Attributes:
        width: channels of the first convolution, doubled at each of the next two; a quarter of the features.
    """

    width: Annotated[int, Range(low=1)] = 16


def small_conv_net(options: SmallConvNetOptions, facts: Facts) -> "Encoder":
    """small_conv_net: 3 x 3 convolutions and a linear layer, for trials of seconds on a CPU and images of any size."""
    from study.models.small_networks import SmallConvNet

    return SmallConvNet(facts.shape, options.width)


@dataclass(frozen=True)
class BagNetOptions:
    """Keys of the `model` section.

    Attributes:
        receptive_field: side of the patches, in pixels.
        width: channels of the first stage, doubled in each of the three further ones.
    """

    receptive_field: Literal[9, 17, 33] = 17
    width: Annotated[int, Range(low=1)] = 64


def bagnet(options: BagNetOptions, facts: Facts) -> "Encoder":
    """bagnet: a network that sees small patches only (Brendel & Bethge 2019), to capture a bias such as texture.

    It has 8 * width features. With the blocks of ResNet-18 it is the bias-capturing model of the FairKL paper (appendix
    B.2.4) and of SoftCon.
    """
    from study.models.small_networks import BagNet

    return BagNet(facts.shape[0], options.receptive_field, options.width)


def why_unsuited_bagnet(options: BagNetOptions, facts: Facts) -> str | None:
    """Say why the data do not suit: they must be images with room for one patch."""
    if (problem := network_keys.why_not_images(facts)) is not None:
        return problem
    if min(facts.shape[1:]) >= options.receptive_field:
        return None
    size = network_keys.image_size_in_words(facts)
    return f"with receptive_field {options.receptive_field} takes images of at least that, not of {size} pixels"


def resnet18(options: network_keys.ResNetOptions, facts: Facts) -> "Encoder":
    """resnet18: the FSCL paper's network (cifar stem; protocol 3) and the WCL paper's for CelebA and Waterbirds."""
    from study.models.backbone_network import build_resnet

    return build_resnet("resnet18", options, facts)


def resnet50(options: network_keys.ResNetOptions, facts: Facts) -> "Encoder":
    """resnet50: the network of DCL, HCL and WCL (cifar stem; protocol 4) and of the CCL-K paper."""
    from study.models.backbone_network import build_resnet

    return build_resnet("resnet50", options, facts)


def efficientnet_lite0(options: network_keys.BackboneOptions, facts: Facts) -> "Encoder":
    """efficientnet_lite0: EfficientNet-Lite0, for two cores; its weights of ImageNet come as a Python package."""
    from study.models.backbone_network import Backbone
    from study.models.efficientnet import EfficientNetLite0

    return Backbone(EfficientNetLite0(), "efficientnet_lite0", options, facts)


def why_unsuited_efficientnet(options: network_keys.BackboneOptions, facts: Facts) -> str | None:
    """Say why the data do not suit: they must be colour images."""
    if (problem := network_keys.why_not_images(facts)) is not None:
        return problem
    if facts.shape[0] != 3:
        return f"takes colour images, not those of {facts.shape[0]} channels"
    return network_keys.why_wrong_weights("efficientnet_lite0", options, facts)


@dataclass(frozen=True)
class TorchvisionOptions(network_keys.BackboneOptions):
    """Keys of the `model` section."""

    architecture: network_keys.ArchitectureKey = "convnext_tiny"


def torchvision(options: TorchvisionOptions, facts: Facts) -> "Encoder":
    """torchvision: any classification network of torchvision, ConvNeXt, EfficientNet, Swin, ViT and others, by name."""
    from study.models.backbone_network import Backbone, build_classifier

    net = build_classifier(options.architecture, options.weights, facts.shape[1])
    return Backbone(net, options.architecture, options, facts)


def why_unsuited_torchvision(options: TorchvisionOptions, facts: Facts) -> str | None:
    """Say why the data or keys do not suit: data must be colour images as large as the network needs."""
    from study.models.backbone_network import why_backbone_unsuited

    return why_backbone_unsuited(options.architecture, options, facts)


def none(options: NoOptions, facts: Facts) -> "Encoder":
    """none: no network, for a training function of the user's own."""
    raise UserError("none: is no network")


def why_unsuited_none(options: NoOptions, facts: Facts) -> str:
    """Say why no data suit: there is no network."""
    return "is the network of a training function of one's own (method.name: own_function), which brings its own"


NETWORKS = {
    row.build.__name__: row
    for row in (
        CatalogueNetwork(bagnet, BagNetOptions, why_unsuited_bagnet),
        CatalogueNetwork(efficientnet_lite0, network_keys.BackboneOptions, why_unsuited_efficientnet),
        CatalogueNetwork(lenet, NoOptions, why_unsuited_lenet),
        CatalogueNetwork(linear, LinearOptions, lambda _, facts: network_keys.why_not_rows(facts)),
        CatalogueNetwork(mlp, MLPOptions, lambda _, facts: network_keys.why_not_rows(facts)),
        CatalogueNetwork(none, NoOptions, why_unsuited_none),
        CatalogueNetwork(resnet18, network_keys.ResNetOptions, partial(network_keys.why_unsuited_resnet, "resnet18")),
        CatalogueNetwork(resnet50, network_keys.ResNetOptions, partial(network_keys.why_unsuited_resnet, "resnet50")),
        CatalogueNetwork(simple_conv_net, SimpleConvNetOptions, lambda _, facts: network_keys.why_not_images(facts)),
        CatalogueNetwork(small_conv_net, SmallConvNetOptions, lambda _, facts: network_keys.why_not_images(facts)),
        CatalogueNetwork(torchvision, TorchvisionOptions, why_unsuited_torchvision),
    )
}
"""Networks by name."""
