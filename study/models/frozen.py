"""Frozen networks: features of images that are computed once, and the layers that are trained on them."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from study.knobs import options
from study.models.backbone import Backbone, BackboneOptions
from study.models.encoder import Encoder
from study.models.mlp import MLP
from study.models.mlp import Options as Layers


def trunk_section(model: Mapping[str, Any]) -> dict[str, Any]:
    """Return the `model` section of the network itself, without what is trained on its features."""
    left_out = ("frozen", "joined", "adapter", "adapter_width", "lr_factor")
    return {key: value for key, value in model.items() if key not in left_out and not key.startswith("head")}


PART = 4096
"""Rows that are looked at at a time."""


class Frozen(Encoder):
    """Layers on the features of a frozen network: a scaling, then an adapter if there is one.

    It takes rows that end in features (B, E + F), or images (B, C, H, W) where the network is available. The network is
    no part of its state and has no gradient.

    Args:
        width: of the features, F: the last columns of a row.
        layers: the trained ones.
        trunk: the network with its weights; None: only rows are taken.
    """

    def __init__(self, width: int, layers: BackboneOptions, trunk: Backbone | None) -> None:
        super().__init__()
        self.mean: Tensor
        self.deviation: Tensor
        self._width = width
        self.register_buffer("mean", torch.zeros(width))
        self.register_buffer("deviation", torch.ones(width))
        own = Layers(depth=layers.adapter, width=layers.adapter_width, features=layers.adapter_width)
        self.adapter: nn.Module = MLP(width, own) if layers.adapter else nn.Identity()
        self.features = layers.adapter_width if layers.adapter else width
        self._trunk = None if trunk is None else (trunk.eval(),)  # in a tuple, which a module does not look into

    def forward(self, inputs: Tensor) -> Tensor:
        features: Tensor = self.adapter((self.rows(inputs) - self.mean) / self.deviation)
        return features

    @torch.no_grad()
    def fit(self, inputs: Tensor) -> None:
        """Fit means and scales to these rows (N, E + F).

        The scale of a feature is the geometric mean of its own standard deviation and the mean one of all, so that what
        varies more counts more, and the mean variance is 1. A constant feature is only centred. (With its own scale for
        each, a classifier was up to 3 points worse: `tests/benchmarks/results/photographs.md`.)
        """
        parts = inputs[:, -self._width :].split(PART)
        mean = sum(part.double().sum(0) for part in parts) / len(inputs)
        squares = sum(((part.double() - mean) ** 2).sum(0) for part in parts) / len(inputs)
        self.mean.copy_(mean)
        own, varies = squares.sqrt(), squares > 0
        self.deviation.copy_((own * own[varies].mean()).sqrt().where(varies, 1.0))

    @torch.no_grad()
    def rows(self, images: Tensor) -> Tensor:
        """Return the network's features of images, or rows as they are, float32 (B, F)."""
        if images.ndim == 2:
            return images[:, -self._width :].float()
        assert self._trunk is not None, "the network was built for rows alone"
        trunk = self._trunk[0].to(images.device)
        return stored(trunk.rows(images)).float()[:, -self._width :]


def stored(features: Tensor) -> Tensor:
    """Convert features to the form in which they are kept: float16, none of them infinite."""
    most = torch.finfo(torch.float16).max
    return features.float().clamp(-most, most).half()


def build(model: Mapping[str, Any], width: int, trunk: Backbone | None) -> Frozen:
    """Build the trained layers of a `model` section on features of this width."""
    return Frozen(width, options(BackboneOptions, model), trunk)
