"""What a method sees of the data."""

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

UNKNOWN = -1
"""A label that a sample does not have."""


@dataclass(frozen=True)
class Labels:
    """What is known of some training samples besides their inputs.

    Attributes:
        target: classes, (B,), `UNKNOWN` for an unlabelled sample.
        bias: bias classes, (B,), `UNKNOWN` where a sample's is not known; None: the data have none.
        condition: continuous attributes, (B, K), or None.
        bias_features: of a bias-capturing model, (B, F), or None where labels are used.
    """

    target: Tensor
    bias: Tensor | None = None
    condition: Tensor | None = None
    bias_features: Tensor | None = None

    def named(self) -> dict[str, Tensor | None]:
        """What a function of labels may ask for by name: the bias is either classes or features."""
        bias = self.bias if self.bias_features is None else None
        return {"target": self.target, "bias": bias, "bias_features": self.bias_features}

    def at(self, index: Tensor) -> "Labels":
        """Those of the samples at these positions."""
        return self.map(lambda tensor: tensor[index])

    def map(self, function: Callable[[Tensor], Tensor]) -> "Labels":
        """With what a function makes of each tensor."""
        tensors = (self.target, self.bias, self.condition, self.bias_features)
        return Labels(*(None if tensor is None else function(tensor) for tensor in tensors))  # type: ignore[arg-type]


@dataclass(frozen=True)
class Batch:
    """One step's samples.

    Attributes:
        views: normalised inputs, (V, B, ...).
        labels: theirs.
        index: their positions in the training split, (B,).
        host_index: the same on the host, where shapes can follow from it without a wait for the device; None: unknown.
    """

    views: Tensor
    labels: Labels
    index: Tensor
    host_index: Tensor | None = None
