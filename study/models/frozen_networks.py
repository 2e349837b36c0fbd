"""Frozen networks: features of images that are computed once, and the layers that are trained on them."""

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from study.knobs import to_options
from study.models.backbone_network import Backbone, ResNetStages, TrainedStages
from study.models.efficientnet import EfficientNetStages
from study.models.encoder import Encoder
from study.models.network_keys import BackboneOptions, late_stages_width, n_columns_before_features
from study.models.small_networks import MLP


def underlying_network_section(model: Mapping[str, Any]) -> dict[str, Any]:
    """Return the `model` section of the network itself, without what is trained on its features."""
    left_out = {"frozen", "joined", "adapter", "adapter_width", "lr_factor"}
    left_out |= {"trained_stages"} if model.get("trained_stages") == "none" else set()
    return {key: value for key, value in model.items() if key not in left_out and not key.startswith("head")}


ROWS_PER_CHUNK = 4096
"""Rows that are looked at at a time."""


class LayersOnFrozenNetwork(Encoder):
    """Layers on the features of a frozen network: its last stages if they are trained, a scaling, an adapter if any.

    It takes rows that end in features (B, E + F), before them the maps of trained stages. The network that made the
    rows is no part of it, see `study.training.features`.

    Args:
        width: of the features, F: the last columns of a row.
        layers: the trained ones.
        columns: of a row, without the maps of trained stages, which come first.
        stages: that are trained; the features before them stay as they are in a row.
    """

    def __init__(self, width: int, layers: BackboneOptions, columns: int, stages: TrainedStages | None = None) -> None:
        super().__init__()
        self.mean: Tensor
        self.deviation: Tensor
        self._width = width
        self.register_buffer("mean", torch.zeros(width))
        self.register_buffer("deviation", torch.ones(width))
        self.stages, self.columns = stages, columns
        own = layers.adapter_width
        self.adapter: nn.Module = MLP(width, layers.adapter, own, own) if layers.adapter else nn.Identity()
        self.features = own if layers.adapter else width

    def forward(self, inputs: Tensor) -> Tensor:
        rows = inputs[:, -self._width :].float()
        if self.stages is not None:
            channels, maps = self.stages.channels, inputs[:, : -self.columns].float()
            side = math.isqrt(maps.shape[1] // channels)
            trained = self.stages(maps.unflatten(1, (channels, side, side)))
            rows = torch.cat([rows[:, : -trained.shape[1]], trained], 1)[:, -self._width :]
        features: Tensor = self.adapter((rows - self.mean) / self.deviation)
        return features

    @torch.no_grad()
    def fit_scaling(self, inputs: Tensor) -> None:
        """Fit means and scales to these rows (N, E + F).

        The scale of a feature is the geometric mean of its own standard deviation and the mean one of all, so that what
        varies more counts more, and the mean variance is 1. A constant feature is only centred. (With its own scale for
        each, a classifier was up to 3 points worse: `tests/benchmarks/results/photographs.md`.)
        """
        parts = inputs[:, -self._width :].split(ROWS_PER_CHUNK)
        mean = sum(part.double().sum(0) for part in parts) / len(inputs)
        squares = sum(((part.double() - mean) ** 2).sum(0) for part in parts) / len(inputs)
        self.mean.copy_(mean)
        own, varies = squares.sqrt(), squares > 0
        self.deviation.copy_((own * own[varies].mean()).sqrt().where(varies, 1.0))

    def feature_rows(self, inputs: Tensor) -> Tensor:
        """Return all features of rows, without maps, float32 (B, E + L + F)."""
        return inputs[:, -self.columns :].float()


def build_layers_on_frozen_network(
    model: Mapping[str, Any], last: int, trunk: Backbone | None
) -> LayersOnFrozenNetwork:
    """Build the trained layers of a `model` section.

    Args:
        last: features of the network's last layer.
        trunk: the network whose last stages are trained; None: none are.
    """
    layers, stages = to_options(BackboneOptions, model), None
    if trunk is not None:
        of = EfficientNetStages if trunk.architecture == "efficientnet_lite0" else ResNetStages
        stages = of(trunk, layers.trained_stages, layers.lr_factor)
    width = late_stages_width(model, layers.joined) + last
    return LayersOnFrozenNetwork(width, layers, n_columns_before_features(model) + last, stages)
