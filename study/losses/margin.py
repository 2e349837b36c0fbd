"""Margin losses with several positives (FairKL paper: Barbano et al., "Unbiased supervised contrastive learning")."""

from typing import Annotated

import torch
from torch import Tensor

from study.knobs import Range
from study.losses.catalogue import loss


@loss
def eps_sup_info_nce(
    views: Tensor,
    *,
    target: Tensor,
    bias: Tensor | None = None,
    temperature: Annotated[float, Range(above=0.0)] = 0.1,
    base_temperature: Annotated[float, Range(above=0.0)] | None = None,
    epsilon: Annotated[float, Range(low=0.0)] = 0.0,
) -> Tensor:
    """eps-SupInfoNCE (FairKL paper Eq. 4), mean over positives, then over rows.

    A row without positives counts 0 and stays in the mean.

    Args:
        views: unit embeddings, shape (V, B, D).
        target: classes, shape (B,).
        bias: not used.
        temperature: divides the cosine similarities.
        base_temperature: the loss is multiplied by temperature / base_temperature; None: no factor.
        epsilon: margin, in units of similarity / temperature.

    Returns:
        The loss, a scalar.
    """
    rows = views.flatten(0, 1).float()
    label = target.repeat(len(views))
    similarity = rows @ rows.T / temperature
    same = label[:, None] == label[None, :]
    positive = same.clone().fill_diagonal_(False)
    negative = similarity.masked_fill(same, -torch.inf).logsumexp(dim=1, keepdim=True)
    term = torch.logaddexp(similarity - epsilon, negative) - similarity
    per_row = term.where(positive, 0.0).sum(1) / positive.sum(1).clamp(min=1)
    return per_row.mean() * (1.0 if base_temperature is None else temperature / base_temperature)
