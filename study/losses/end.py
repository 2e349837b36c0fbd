"""EnD (Tartaglione et al., "EnD: entangling and disentangling deep representations for bias correction")."""

from __future__ import annotations

from typing import TYPE_CHECKING

from study.losses.hyperparameter_types import NonNegativeWeight
from study.losses.lazy_torch import torch
from study.losses.loss_catalogue import regulariser
from study.losses.pairs import cosine_matrix, index_label_groups, same_label_mask

if TYPE_CHECKING:
    from torch import Tensor


@regulariser
def end(
    views: Tensor,
    *,
    target: Tensor,
    bias: Tensor,
    similarity: Tensor | None = None,
    disentangling: NonNegativeWeight = 1.0,
    entangling: NonNegativeWeight = 1.0,
    all_pairs: bool = True,
) -> Tensor:
    """EnD as the BiasCon authors run it as a baseline, over unordered pairs of rows (cf. FairKL paper Eq. 29).

    Disentangling: sum over bias values of |sum of the cosines of the pairs that share it|, divided by the number of
    pairs that share their bias. Entangling: 1 - mean of (1 + cosine)/2 over the pairs of one class and two biases.
    Without pairs a term is 0.

    Args:
        views: unit embeddings, shape (V, B, D).
        target, bias: classes and bias classes, shape (B,).
        similarity: `gram_matrix(views)`, if the caller has it.
        disentangling: weight of the disentangling term (alpha of the EnD paper).
        entangling: weight of the entangling term (beta of the EnD paper).
        all_pairs: false: as in the released code, only pairs whose later row has the smaller bias value count for
            entangling, so the order of the samples matters.

    Returns:
        The regulariser, a scalar.
    """
    cosine, count = cosine_matrix(views, similarity).clamp(-1, 1), len(views)
    below = torch.ones_like(cosine).tril(-1)
    same_bias = same_label_mask(bias, views)
    shared = same_bias * below
    index = index_label_groups(bias).repeat(count)
    by_value = torch.zeros_like(cosine[0]).index_add(0, index, (cosine * shared).sum(1))
    disentangled = by_value.abs().sum() / shared.sum().clamp(min=1)

    crossed = below - shared
    if not all_pairs:
        value = bias.repeat(count)
        crossed = crossed * (value[:, None] < value[None, :])
    crossed = crossed * same_label_mask(target, views)
    pairs = crossed.sum()
    entangled = torch.where(pairs > 0, 1 - ((1 + cosine) / 2 * crossed).sum() / pairs.clamp(min=1), 0.0)
    return disentangling * disentangled + entangling * entangled
