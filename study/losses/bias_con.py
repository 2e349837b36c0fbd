"""BiasCon and SoftCon (Hong and Yang, "Unbiased classification through bias-contrastive ... learning")."""

from __future__ import annotations

from typing import TYPE_CHECKING

from study.losses.hyperparameter_types import BaseTemperature, DenominatorGuard, Temperature
from study.losses.lazy_torch import functional
from study.losses.loss_catalogue import loss
from study.losses.pairs import (
    add_guard_to_log_sum,
    cosine_matrix,
    log_sum_exp,
    rescale_by_temperature,
)

if TYPE_CHECKING:
    from torch import Tensor


@loss
def bias_con(
    views: Tensor,
    *,
    target: Tensor,
    bias: Tensor,
    similarity: Tensor | None = None,
    temperature: Temperature = 0.07,
    base_temperature: BaseTemperature = None,
    guard: DenominatorGuard = 0.0,
) -> Tensor:
    """BiasCon (FairKL paper Eq. 13): SupCon whose positives are of the same class and another bias.

    The denominator holds everything but the row itself. A row without positives counts 0 and stays in the mean.
    The released code adds 1e-9 to the denominator after subtracting the row's maximum: `guard=1e-9`.

    Args:
        views: unit embeddings, shape (V, B, D).
        target, bias: classes and bias classes, shape (B,).
        similarity: `gram_matrix(views)`, if the caller has it.

    Returns:
        The loss, a scalar.
    """
    weight = (target[:, None] == target[None, :]) & (bias[:, None] != bias[None, :])
    per_row = _log_sum_minus_mean_positive(views, cosine_matrix(views, similarity), weight, temperature, guard)
    return rescale_by_temperature(per_row.mean(), temperature, base_temperature)


@loss
def soft_con(
    views: Tensor,
    *,
    target: Tensor,
    bias_features: Tensor,
    similarity: Tensor | None = None,
    temperature: Temperature = 0.07,
    base_temperature: BaseTemperature = None,
    guard: DenominatorGuard = 0.0,
) -> Tensor:
    """SoftCon: SupCon whose positives weigh 1 - cosine of the bias features, for a bias without labels.

    Args:
        views, target, similarity: as for `bias_con`.
        bias_features: a bias-capturing model's features, shape (B, K).

    Returns:
        The loss, a scalar. A row whose positives weigh nothing counts 0.
    """
    features = functional.normalize(bias_features, dim=-1)
    weight = (1 - features @ features.T).clamp(min=0) * (target[:, None] == target[None, :])
    per_row = _log_sum_minus_mean_positive(views, cosine_matrix(views, similarity), weight, temperature, guard)
    return rescale_by_temperature(per_row.mean(), temperature, base_temperature)


def _log_sum_minus_mean_positive(
    views: Tensor, cosine: Tensor, weight: Tensor, temperature: float, guard: float
) -> Tensor:
    """Return log sum over all others minus the weighted mean over positives, per row; 0 where all weights are 0.

    `weight` is (B, B) between samples: the mean of views under it costs one product of a V*V-th of the size.
    """
    weight = weight.to(views.dtype)
    scale, own = 1 / temperature, weight.diagonal()
    total = weight.sum(1) * len(views) - own
    attraction = (views * (weight @ views.sum(0) - own[:, None] * views)).sum(-1).flatten()
    everyone = add_guard_to_log_sum(log_sum_exp(cosine, scale), cosine, scale, guard)
    total = total.repeat(len(views))
    some = total > 0
    return (everyone - attraction * scale / total.where(some, 1.0)).where(some, 0.0)
