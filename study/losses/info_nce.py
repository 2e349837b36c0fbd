"""InfoNCE and its margin version (FairKL paper: Barbano et al., "Unbiased supervised contrastive learning")."""

from __future__ import annotations

from typing import TYPE_CHECKING

from study.losses.hyperparameter_types import BaseTemperature, EpsilonMargin, Temperature
from study.losses.lazy_torch import torch
from study.losses.loss_catalogue import pair_loss
from study.losses.pairs import cosine_matrix, log_sum_exp, rescale_by_temperature, softplus

if TYPE_CHECKING:
    from torch import Tensor


@pair_loss
def eps_info_nce(
    views: Tensor,
    *,
    similarity: Tensor | None = None,
    temperature: Temperature = 0.1,
    base_temperature: BaseTemperature = None,
    epsilon: EpsilonMargin = 0.0,
) -> Tensor:
    """eps-InfoNCE (FairKL paper Eq. 2): positives are a sample's other views, negatives the other samples' rows.

    Mean over positives (one with two views), then over rows. epsilon to infinity is InfoL1O (Eq. 3).

    Args:
        views: unit embeddings, shape (V, B, D), V >= 2.
        similarity: `gram_matrix(views)`, if the caller has it.

    Returns:
        The loss, a scalar.

    Raises:
        ValueError: fewer than two views.
    """
    if len(views) < 2:
        raise ValueError(f"eps_info_nce needs two views of each sample or more, got {len(views)}")
    negative = log_sum_exp(cosine_matrix(views, similarity), 1 / temperature, views=len(views)).view(len(views), -1)
    positive = (views[:, None] * views[None]).sum(-1) / temperature
    term = softplus(negative[:, None] + epsilon - positive) - epsilon
    other = ~torch.eye(len(views), dtype=torch.bool, device=views.device)[:, :, None]
    per_row = term.where(other, 0.0).sum(1) / (len(views) - 1)
    return rescale_by_temperature(per_row.mean(), temperature, base_temperature)


@pair_loss
def info_nce(
    views: Tensor,
    *,
    similarity: Tensor | None = None,
    temperature: Temperature = 0.1,
    base_temperature: BaseTemperature = None,
) -> Tensor:
    """InfoNCE, SimCLR's loss: `eps_info_nce` with margin 0.

    Arguments, result and errors as for `eps_info_nce`.
    """
    return eps_info_nce(
        views, similarity=similarity, temperature=temperature, base_temperature=base_temperature, epsilon=0.0
    )
