"""The objective of a contrastive method with a debiasing regulariser."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

from torch import Tensor

from study.knobs import Range
from study.losses.similarity import gram


@dataclass(frozen=True)
class Weights:
    """alpha: weight of the contrastive term; lambda: weight of the regulariser (FairKL paper Eq. 11)."""

    alpha: Annotated[float, Range(low=0.0)] = 1.0
    lambda_: Annotated[float, Range(low=0.0)] = 0.0


@dataclass(frozen=True)
class Objective:
    """alpha * loss + lambda * regulariser, alpha applied once (FairKL paper Eq. 11).

    Attributes:
        loss, regulariser: functions of (views, target=, bias=), their hyperparameters already given.
    """

    loss: Callable[..., Tensor]
    regulariser: Callable[..., Tensor] | None
    weights: Weights

    def __call__(self, embeddings: Tensor, features: Tensor, *, target: Tensor, bias: Tensor | None) -> Tensor:
        """The value to minimise, a scalar.

        Args:
            embeddings: what the contrastive term sees, unit rows, (V, B, D).
            features: what the regulariser sees, the encoder's output of the first view, unit rows, (1, B, F); the same
                tensor as `embeddings` where there is one view and no projection head.
            target, bias: labels, (B,).
        """
        labels = {"target": target, "bias": bias}
        if self.regulariser is None or self.weights.lambda_ == 0.0:
            return self.weights.alpha * self.loss(embeddings, **labels)
        shared = {"similarity": gram(embeddings)} if features is embeddings else {}
        contrast = self.loss(embeddings, **labels, **shared)
        return self.weights.alpha * contrast + self.weights.lambda_ * self.regulariser(features, **labels, **shared)
