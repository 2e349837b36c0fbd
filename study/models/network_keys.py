"""Keys of the `model` section that several networks have, and which data suit a network; without PyTorch."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from typing_extensions import Doc

from study.data.dataset import Facts
from study.knobs import Range
from study.models import published_weights


def why_not_images(facts: Facts) -> str | None:
    """Say why the data do not suit a network of images; None if they do."""
    return f"takes images, not rows of {facts.shape[0]} numbers" if facts.is_table else None


def why_not_rows(facts: Facts) -> str | None:
    """Say why the data do not suit a network of a table's rows; None if they do."""
    return None if facts.is_table else f"takes the rows of a table, not images of {image_size_in_words(facts)} pixels"


def image_size_in_words(facts: Facts) -> str:
    """Write height and width of the images in words."""
    return " x ".join(str(side) for side in facts.shape[1:])


LayerWidth = Annotated[int, Range(low=1)]


@dataclass(frozen=True)
class HeadOptions:
    """Keys of the `model` section that every network has.

    Attributes:
        head: projection head: `none` (the loss sees the features), `linear`, or `mlp` with one hidden layer of
            `head_hidden` units.
        head_hidden: units of the hidden layer of an `mlp` head.
        head_features: width of the embeddings.
        head_norm: batch normalisation in the head: `hidden`: of the hidden layer; `both`: also of the embeddings, there
            without scale and shift.
    """

    head: Literal["none", "linear", "mlp"] = "none"
    head_hidden: LayerWidth = 128
    head_features: LayerWidth = 128
    head_norm: Literal["none", "hidden", "both"] = "none"


EARLY_LAYER_MODULES: Mapping[str, tuple[str, int]] = {
    "efficientnet_lite0": ("_blocks.4", 40),
    **dict.fromkeys(("resnet18", "resnet34"), ("layer1", 64)),
    **dict.fromkeys(("resnet50", "resnet101", "resnet152"), ("layer1", 256)),
}
"""Module of each architecture whose output, averaged over the image, is the features of its early layers, and its
channels; at an eighth of the sides of an image, or at a quarter.
"""

LATE_STAGE_MODULES: Mapping[str, tuple[tuple[str, int], ...]] = {
    "efficientnet_lite0": (("_blocks.7", 80), ("_blocks.10", 112), ("_blocks.14", 192), ("_blocks.15", 320))
}
"""Modules and channels of each architecture's last stages before the features, which `joined` can join to them."""

LAST_FROZEN_LAYERS: Mapping[str, Mapping[str, tuple[str, int]]] = {
    "efficientnet_lite0": {"last": ("_blocks.14", 192), "last_two": ("_blocks.10", 112)},
    **{f"resnet{depth}": {"last": ("layer3", 256), "last_two": ("layer2", 128)} for depth in (18, 34)},
    **{f"resnet{depth}": {"last": ("layer3", 1024), "last_two": ("layer2", 512)} for depth in (50, 101, 152)},
}
"""Module and channels of each architecture whose maps (B, C, H, W) its trained stages take, by `trained_stages`."""


def late_stages_width(model: Mapping[str, Any], stages: int) -> int:
    """Return the number of features of the last `stages` of `LATE_STAGE_MODULES`."""
    known = LATE_STAGE_MODULES.get(published_weights.architecture_name(model), ())
    return sum(width for _, width in known[len(known) - stages :])


def early_layers_width(model: Mapping[str, Any]) -> int:
    """Return the number of early features in a row of a `model` section's network; 0: it has no known ones."""
    return EARLY_LAYER_MODULES.get(published_weights.architecture_name(model), ("", 0))[1]


def n_columns_before_features(model: Mapping[str, Any]) -> int:
    """Return the columns of a row before the features: of early layers and of all known late stages."""
    late = LATE_STAGE_MODULES.get(published_weights.architecture_name(model), ())
    return early_layers_width(model) + sum(width for _, width in late)


ArchitectureKey = Annotated[str, Doc("which network, as torchvision names it: `study models list`")]

WEIGHTS_FILE_SUFFIXES = (".safetensors", ".pth", ".pt")


@dataclass(frozen=True)
class BackboneOptions:
    """Keys of the `model` section of a network that can begin from weights.

    Attributes:
        weights: weights to begin from: `imagenet` or another name that they are published by, fetched by `study models
            prepare`; or a file (.safetensors, .pth); null: random ones.
        frozen: the network stays as its `weights` are: its features of each picture are computed once and kept, and
            trials train on these rows, as on a table.
        joined: stages before the last of a `frozen` network whose features, averaged over the picture, are joined to
            it.
        adapter: fully connected layers that are trained on the features of a `frozen` network.
        adapter_width: units of each layer of the `adapter`.
        trained_stages: last stages of a `frozen` network that are trained beside what follows it, without weight decay
            and with batch norm as it is: the maps before them are kept too; of `efficientnet_lite0` and ResNets, and
            square pictures.
        lr_factor: learning rate of the network without its head, or of its `trained_stages`, as a multiple of
            `train.learning_rate`.
        normalisation: pixels are normalised as the published `weights` want it, or as the `data` set says; without
            weights always the latter.
    """

    weights: str | None = None
    frozen: bool = False
    joined: Annotated[int, Range(low=0)] = 0
    adapter: Annotated[int, Range(low=0)] = 0
    adapter_width: LayerWidth = 128
    trained_stages: Literal["none", "last", "last_two"] = "none"
    lr_factor: Annotated[float, Range(above=0.0)] = 1.0
    normalisation: Literal["weights", "data"] = "weights"


@dataclass(frozen=True)
class ResNetOptions(BackboneOptions):
    """Keys of the `model` section.

    Attributes:
        stem: first layers: `imagenet` shrinks an image fourfold, `cifar` (3 x 3, stride 1, no pooling) does not; with
            `weights` the default is `imagenet`.
    """

    stem: Literal["cifar", "imagenet"] = "cifar"


def is_weights_file(weights: str) -> bool:
    """Tell whether the value of `model.weights` names a file, not published weights."""
    return weights.endswith(WEIGHTS_FILE_SUFFIXES)


def why_wrong_weights(architecture: str, options: BackboneOptions, facts: Facts) -> str | None:
    """Say what is wrong with the keys of `BackboneOptions`, ready to show after the network's name; None: nothing.

    Whether the file is there, and fits, is seen when it is read.
    """
    if options.joined > (stages := len(LATE_STAGE_MODULES.get(architecture, ()))):
        return f"has {stages} stages that model.joined can join, {options.joined} given"
    if options.trained_stages != "none":
        if architecture not in LAST_FROZEN_LAYERS:
            return f"has no stages that model.trained_stages knows. Networks that have: {', '.join(LAST_FROZEN_LAYERS)}"
        if facts.shape[1] != facts.shape[2]:
            size = image_size_in_words(facts)
            return f"trains stages on square images, not on those of {size} pixels: model.trained_stages"
    if options.weights is not None and not is_weights_file(options.weights):
        if options.weights not in (names := published_weights.weights_names_of(architecture)):
            return f"has no weights {options.weights!r}. {published_weights.allowed_weights_text(names)}"
        if facts.shape[0] != 3:
            return f"with weights {options.weights} takes colour images, not those of {facts.shape[0]} channels"
    return None


def why_unsuited_resnet(name: str, options: ResNetOptions, facts: Facts) -> str | None:
    """Say why the data or keys do not suit: data must be images, weights need their own stem."""
    if (problem := why_not_images(facts)) is not None:
        return problem
    if options.weights is not None and not is_weights_file(options.weights) and options.stem != "imagenet":
        return f"with weights {options.weights} needs model.stem: imagenet, not {options.stem}"
    return why_wrong_weights(name, options, facts)
