"""The part of the data that a method sees."""

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True)
class BatchLabels:
    """Labels of some training samples.

    Attributes:
        target: classes, (B,), `UNKNOWN_LABEL` for an unlabelled sample.
        bias: bias classes, (B,), `UNKNOWN_LABEL` where unknown; None: the data have none.
        condition: continuous attributes, (B, K), or None.
        bias_features: of a bias-capturing model, (B, F), or None where labels are used.
        weight: of each in the loss of a classifier, (B,), see `study.methods.sample_weights`; None: all weigh 1.
    """

    target: Tensor
    bias: Tensor | None = None
    condition: Tensor | None = None
    bias_features: Tensor | None = None
    weight: Tensor | None = None

    def loss_tensors_by_name(self) -> dict[str, Tensor | None]:
        """Return the tensors that a loss may ask for by name: the bias is either classes or features."""
        bias = self.bias if self.bias_features is None else None
        return {"target": self.target, "bias": bias, "bias_features": self.bias_features}

    def select_samples(self, index: Tensor) -> "BatchLabels":
        """Select the labels of the samples at these positions."""
        return self.map_tensors(lambda tensor: tensor[index])

    def map_tensors(self, function: Callable[[Tensor], Tensor]) -> "BatchLabels":
        """Apply a function to each tensor."""
        tensors = (self.target, self.bias, self.condition, self.bias_features, self.weight)
        return BatchLabels(*(None if tensor is None else function(tensor) for tensor in tensors))  # type: ignore[arg-type]


@dataclass(frozen=True)
class Batch:
    """Samples of one step.

    Attributes:
        views: normalised inputs, (V, B, ...).
        labels: of the samples.
        index: their positions in the training split, (B,).
        host_index: a copy of `index` on the host, from which shapes can follow without a wait for the device; None:
            unknown.
    """

    views: Tensor
    labels: BatchLabels
    index: Tensor
    host_index: Tensor | None = None
