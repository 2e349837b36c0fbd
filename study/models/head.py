"""Projection heads: between an encoder's features, which are kept, and the embeddings that a loss sees."""

from dataclasses import dataclass
from typing import Annotated, Literal

from torch import Tensor, nn
from typing_extensions import Doc

from study.knobs import Range
from study.models.encoder import Encoder

Width = Annotated[int, Range(low=1)]


@dataclass(frozen=True)
class HeadOptions:
    """Keys of the `model` section that every network has."""

    head: Annotated[
        Literal["none", "linear", "mlp"],
        Doc(
            "projection head: `none`: the loss sees the features themselves; `linear`; `mlp`: one hidden "
            "layer of `head_hidden` units"
        ),
    ] = "none"
    head_hidden: Annotated[Width, Doc("units of the hidden layer of an `mlp` head")] = 128
    head_features: Annotated[Width, Doc("width of the embeddings")] = 128
    head_norm: Annotated[
        Literal["none", "hidden", "both"],
        Doc(
            "batch normalisation in the head: `none`; `hidden`: of the hidden layer (the layer before has no "
            "bias); `both`: also of the embeddings, there without scale and shift"
        ),
    ] = "none"


def build(options: HeadOptions, features: int) -> nn.Module:
    """The head for features of this width, (B, features) to (B, head_features)."""
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
        head: see `build`.
    """

    def __init__(self, encoder: Encoder, options: HeadOptions) -> None:
        super().__init__()
        self.encoder = encoder
        self.head = build(options, encoder.features)

    @property
    def has_head(self) -> bool:
        """Whether the embeddings are other than the features."""
        return not isinstance(self.head, nn.Identity)

    def forward(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        """Features (B, features) and embeddings (B, head_features), neither normalised."""
        features = self.encoder(inputs)
        return features, self.head(features)
