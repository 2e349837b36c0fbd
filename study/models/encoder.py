"""The base class of every network of this package, and projection heads."""

from torch import Tensor, nn

from study.models.network_keys import HeadOptions


class Encoder(nn.Module):
    """A module from normalised images (B, C, H, W), or rows of a table (B, F), to features (B, `features`).

    Attributes:
        lr_factor: its parameters' learning rate, as a multiple of the trial's.
        uses_weight_decay: whether `train.weight_decay` holds for its parameters.
    """

    features: int
    lr_factor: float = 1.0
    uses_weight_decay: bool = True


def init_kaiming(module: nn.Module) -> None:
    """Draw the weights of every convolution anew, as He et al. 2015 by the number of outputs (fan-out)."""
    for part in module.modules():
        if isinstance(part, nn.Conv2d):
            nn.init.kaiming_normal_(part.weight, mode="fan_out", nonlinearity="relu")


def build_projection_head(options: HeadOptions, features: int) -> nn.Module:
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
        head: see `build_projection_head`.
    """

    def __init__(self, encoder: Encoder, options: HeadOptions) -> None:
        super().__init__()
        self.encoder = encoder
        self.head = build_projection_head(options, encoder.features)

    def forward(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        """Return features (B, features) and embeddings (B, head_features), neither normalised."""
        features = self.encoder(inputs)
        return features, self.head(features)
