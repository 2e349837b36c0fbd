"""WCL's two losses (WCL paper: Jang and Wang, "Difficulty-based sampling for debiased contrastive ... learning")."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Literal

from typing_extensions import Doc

from study.losses import pairs
from study.losses.debiased_info_nce import log_debiased_negative
from study.losses.hyperparameter_types import BaseTemperature, ClassPrior, DebiasedTemperature
from study.losses.lazy_torch import torch
from study.losses.loss_catalogue import pair_loss

if TYPE_CHECKING:
    from torch import Tensor

WclForm = Annotated[
    Literal["sum", "per_negative"],
    Doc(
        "sum: DCL's form, one sum over the negatives, as in the paper's experiments; "
        "per_negative: the equation as printed, one term for each negative, averaged"
    ),
]


@pair_loss
def difficulty_weighted_info_nce(
    views: Tensor,
    *,
    biased_views: Tensor,
    similarity: Tensor | None = None,
    temperature: DebiasedTemperature = 0.5,
    base_temperature: BaseTemperature = None,
    tau_plus: ClassPrior = 0.1,
    form: WclForm = "sum",
    floor: bool = True,
    weight_gradient: bool = False,
) -> Tensor:
    """WCL's loss for the debiased encoder (section 5.2): DCL whose negatives weigh w = 1 + Dd / (Dd + Db).

    D is the distance of anchor and negative in each encoder, divided by its largest in the batch. "sum" mirrors DCL
    with N = 2B - 2 negatives, as the paper's experiments do; "per_negative" is the equation as printed, one term for
    each negative, averaged. The print has no floor under g (`floor=False`; then it can be nan) and does not say that w
    is a constant for the gradient.

    Args:
        views: unit embeddings of the debiased encoder, shape (2, B, D).
        biased_views: the same samples' unit embeddings by the biased encoder, shape (2, B, D').
        similarity: `gram_matrix(views)`, if the caller has it.
        floor: keep g at least at e^(-1/temperature) per negative, as DCL does.
        weight_gradient: let the gradient through the weights w, into both encoders.

    Returns:
        The loss, a scalar.

    Raises:
        ValueError: not two views, or a single sample.
    """
    positive, cosine = pairs.other_view_similarity(views) / temperature, pairs.cosine_matrix(views, similarity)
    samples, scale = views.shape[1], 1 / temperature
    count = 2 * pairs.count_other_samples(views)
    negative = 1 - torch.eye(samples, dtype=cosine.dtype, device=views.device).repeat(2, 2)
    weight = _difficulty_weights(cosine, pairs.gram_matrix(biased_views), negative)
    term = cosine * scale + (weight if weight_gradient else weight.detach()).log()
    if form == "sum":
        log_sum = pairs.log_sum_exp(term, 1.0, views=2)
        per_row = _debiased_log_ratio(log_sum, positive, count, tau_plus, math.log(count) - scale if floor else None)
    else:
        per_pair = _debiased_log_ratio(term, positive[:, None], 1, tau_plus, -scale if floor else None)
        per_row = per_pair.where(negative > 0, 0.0).sum(1) / count
    return pairs.rescale_by_temperature(per_row.mean(), temperature, base_temperature)


@pair_loss
def biased_triplet(views: Tensor, *, tau_plus: ClassPrior = 0.0) -> Tensor:
    """WCL's loss for the biased encoder: squared distance to the other view less the mean one to negatives (Eq. 5).

    The mean takes class sums and no matrix of pairs. With tau_plus the mean over negatives is debiased as in DCL.

    Args:
        views: unit embeddings of the biased encoder, shape (2, B, D).
        tau_plus: probability that two samples share their class; 0 is Eq. 5 itself.

    Returns:
        The loss, a scalar.

    Raises:
        ValueError: not two views, or a single sample.
    """
    positive = 2 - 2 * pairs.other_view_similarity(views)
    others = views.sum((0, 1)) - views.sum(0)
    mean_cosine = (views * others).sum(-1).flatten() / (2 * pairs.count_other_samples(views))
    negative = 2 - 2 * mean_cosine
    return (positive - (negative - tau_plus * positive) / (1 - tau_plus)).mean()


def _debiased_log_ratio(negative: Tensor, positive: Tensor, count: int, tau_plus: float, floor: float | None) -> Tensor:
    """Return -log(pos / (pos + g)) for g = (e^negative - tau_plus * count * pos) / (1 - tau_plus), at least e^floor."""
    if floor is None:
        return torch.log1p(((negative - positive).exp() - tau_plus * count) / (1 - tau_plus))
    return pairs.softplus(log_debiased_negative(negative, positive, count, tau_plus, floor)[0] - positive)


def _difficulty_weights(cosine: Tensor, biased_cosine: Tensor, negative: Tensor) -> Tensor:
    """Return w, shape (n, n): 1 for a pair that coincides in the debiased encoder, 2 if in the biased one."""
    distance, biased_distance = (_divide_by_largest_distance(each, negative) for each in (cosine, biased_cosine))
    both = distance + biased_distance
    return 1 + distance / both.where(both > 0, 1.0)


def _divide_by_largest_distance(cosine: Tensor, negative: Tensor) -> Tensor:
    """Divide distances by the largest between anchor and negative; 0 (without gradient) for pairs that coincide."""
    squared = (2 - 2 * cosine) * negative
    apart = squared > 0
    distance = squared.where(apart, 1.0).sqrt().where(apart, 0.0)
    largest = distance.amax()
    return distance / largest.where(largest > 0, 1.0)
