"""The named tensors that a contrastive loss may ask for, made from a batch's labels and the network's features."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from study.methods.batch import Batch, Labels
from study.methods.contrastive_keys import REPRESENTATION_AS_CONDITION, required
from study.methods.per_sample import PerSample


class Inputs(nn.Module):
    """Gives a loss its tensors.

    Args:
        method: a complete, checked `method` section.
        bias_classes: of the data set, if it has bias labels.
    """

    def __init__(self, method: Mapping[str, Any], bias_classes: int | None) -> None:
        super().__init__()
        self.on_representation = method["name"] in REPRESENTATION_AS_CONDITION
        self.asks_features = "bias_features" in required(method["name"])
        self.bias_classes = bias_classes or 1
        self.clusters = int(method.get("clusters", 0))
        self.use_target = bool(method.get("use_target", True))
        self.cluster_of = PerSample(0)

    def begin(self, train: Labels) -> None:
        """Find the clusters of the whole training split, where they are asked for."""
        if self.clusters and train.condition is not None:
            from sklearn.cluster import KMeans

            values = train.condition.cpu().numpy()
            fitted = KMeans(min(self.clusters, len(values)), n_init=1, random_state=0).fit(values)
            self.cluster_of.values = torch.as_tensor(fitted.labels_, dtype=torch.long, device=train.target.device)

    def forward(self, batch: Batch, features: Tensor) -> dict[str, Tensor | None]:
        """The tensors by name; `features` are the encoder's, (V, B, F)."""
        labels = batch.labels
        inputs = labels.named() | {"condition": features if self.on_representation else labels.condition}
        if not self.use_target:
            inputs["target"] = None
        if len(self.cluster_of.values):
            inputs["bias"] = self.cluster_of.values[batch.index]
        if self.asks_features and labels.bias_features is None and labels.bias is not None:
            inputs["bias_features"] = functional.one_hot(labels.bias, self.bias_classes).float()
        return inputs
