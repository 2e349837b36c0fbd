"""The base class of every network of this package, and projection heads."""

from dataclasses import dataclass
from typing import Annotated, Literal

from torch import Tensor, nn
from typing_extensions import Doc

from study.data.dataset import Facts
from study.knobs import Range


def not_images(facts: Facts) -> str | None:
    """Say why the data do not suit a network of images; None if they do."""
    return f"takes images, not rows of {facts.shape[0]} numbers" if facts.is_table else None


def not_rows(facts: Facts) -> str | None:
    """Say why the data do not suit a network of a table's rows; None if they do."""
    return None if facts.is_table else f"takes the rows of a table, not images of {size(facts)} pixels"


def size(facts: Facts) -> str:
    """Write height and width of the images in words."""
    return " x ".join(str(side) for side in facts.shape[1:])


class Encoder(nn.Module):
    """A module from normalised images (B, C, H, W), or rows of a table (B, F), to features (B, `features`).

    Attributes:
        lr_factor: its parameters' learning rate, as a multiple of the trial's.
        decays: whether `train.weight_decay` holds for its parameters.
    """

    features: int
    lr_factor: float = 1.0
    decays: bool = True


def kaiming(module: nn.Module) -> None:
    """Draw the weights of every convolution anew, as He et al. 2015 by the number of outputs (fan-out)."""
    for part in module.modules():
        if isinstance(part, nn.Conv2d):
            nn.init.kaiming_normal_(part.weight, mode="fan_out", nonlinearity="relu")


Width = Annotated[int, Range(low=1)]


@dataclass(frozen=True)
class HeadOptions:
    """Keys of the `model` section that every network has."""

    head: Annotated[
        Literal["none", "linear", "mlp"],
        Doc(
            "projection head: `none` (the loss sees the features), `linear`, or `mlp` with one hidden layer of "
            "`head_hidden` units"
        ),
    ] = "none"
    head_hidden: Annotated[Width, Doc("units of the hidden layer of an `mlp` head")] = 128
    head_features: Annotated[Width, Doc("width of the embeddings")] = 128
    head_norm: Annotated[
        Literal["none", "hidden", "both"],
        Doc(
            "batch normalisation in the head: `hidden`: of the hidden layer; `both`: also of the embeddings,"
            " there without scale and shift"
        ),
    ] = "none"


def build_head(options: HeadOptions, features: int) -> nn.Module:
    """Build the projection head for features of this width, (B, features) to (B, head_features).

    It is between an encoder's features, which are kept, and the embeddings that a loss sees.
    """
    if options.head == "none":
        return nn.Identity()
    hidden_norm, output_norm = options.head_norm != "none", options.head_norm == "both"
    layers: list[nn.Module] = []
    if options.head == "mlp":
        layers.append(nn.Linear(features, options.head_hidden, bias=not hidden_norm))
        layers += [nn.BatchNorm1d(options.head_hidden)] if hidden_norm else []
        layers.append(nn.ReLU())
        features = options.head_hidden
    layers.append(nn.Linear(features, options.head_features, bias=not output_norm))
    layers += [nn.BatchNorm1d(options.head_features, affine=False)] if output_norm else []
    return nn.Sequential(*layers)


class Network(nn.Module):
    """An encoder with a projection head.

    Attributes:
        encoder: its features are what a classifier is trained on.
        head: see `build_head`.
    """

    def __init__(self, encoder: Encoder, options: HeadOptions) -> None:
        super().__init__()
        self.encoder = encoder
        self.head = build_head(options, encoder.features)

    def forward(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        """Return features (B, features) and embeddings (B, head_features), neither normalised."""
        features = self.encoder(inputs)
        return features, self.head(features)
