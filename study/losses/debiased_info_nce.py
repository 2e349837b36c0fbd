"""Debiased InfoNCE (DCL: Chuang et al.) and with hard negatives (HCL: Robinson et al.; WCL paper 4.2), in log space."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated

from study.knobs import Range, SearchRange
from study.losses import pairs
from study.losses.hyperparameter_types import BaseTemperature, ClassPrior, DebiasedTemperature
from study.losses.lazy_torch import torch
from study.losses.loss_catalogue import compute_in_full_precision, pair_loss

if TYPE_CHECKING:
    from torch import Tensor


@pair_loss
def debiased_info_nce(
    views: Tensor,
    *,
    similarity: Tensor | None = None,
    extra_positives: Tensor | None = None,
    negatives: Tensor | None = None,
    temperature: DebiasedTemperature = 0.5,
    base_temperature: BaseTemperature = None,
    tau_plus: ClassPrior = 0.1,
) -> Tensor:
    """DCL: of the negatives' sum the share `tau_plus` is taken off that the anchor's own class is expected to give.

    Mean of -log(pos / (pos + N g)) with g(x, u, v) = max((mean_u - tau_plus * mean_v) / (1 - tau_plus), e^(-1/t));
    where the floor is taken, no gradient flows. The u are the N = 2B - 2 rows of other samples, the v the other view
    alone or `extra_positives`. tau_plus 0 is InfoNCE.

    Args:
        views: unit embeddings, shape (2, B, D).
        similarity: `gram_matrix(views)`, if the caller has it.
        extra_positives: unit embeddings of M more views, shape (M, B, D); the v, for both views of a sample.
        negatives: unit embeddings of each sample's own N negatives, shape (N, B, D), instead of the batch's; the
            first view alone is then the anchor.

    Returns:
        The loss, a scalar.

    Raises:
        ValueError: not two views, a single sample without `negatives`, or empty `negatives` or `extra_positives`.
    """
    positive, unbiased, _ = _loss_terms(views, similarity, extra_positives, negatives, temperature, tau_plus, beta=None)
    return pairs.rescale_by_temperature(pairs.softplus(unbiased - positive).mean(), temperature, base_temperature)


@pair_loss
def hard_negative_info_nce(
    views: Tensor,
    *,
    similarity: Tensor | None = None,
    temperature: DebiasedTemperature = 0.5,
    base_temperature: BaseTemperature = None,
    tau_plus: ClassPrior = 0.1,
    beta: Annotated[float, Range(low=0.0), SearchRange(0.0, 2.0, paper=(1.0,))] = 1.0,
) -> Tensor:
    """HCL: DCL whose negatives weigh e^(beta s) / its mean (WCL paper 4.2.2), with the gradient through the weights.

    Args:
        views, similarity: as for `debiased_info_nce`.
        beta: concentration on hard negatives; 0 is DCL.

    Returns:
        The loss, a scalar.

    Raises:
        ValueError: not two views, or a single sample.
    """
    positive, unbiased, _ = _loss_terms(views, similarity, None, None, temperature, tau_plus, beta)
    return pairs.rescale_by_temperature(pairs.softplus(unbiased - positive).mean(), temperature, base_temperature)


@compute_in_full_precision
def share_of_floored_rows(
    views: Tensor,
    *,
    similarity: Tensor | None = None,
    extra_positives: Tensor | None = None,
    temperature: float = 0.5,
    tau_plus: float = 0.1,
    beta: float | None = None,
) -> Tensor:
    """Compute the share of rows whose negatives are at the floor without gradient, for DCL (beta None) and HCL.

    At temperature 0.1 it nears 1 once the views agree.
    """
    _, _, floored = _loss_terms(views, similarity, extra_positives, None, temperature, tau_plus, beta)
    return floored.to(views.dtype).mean()


def log_debiased_negative(
    negative: Tensor, positive: Tensor, count: int, tau_plus: float, floor: float
) -> tuple[Tensor, Tensor]:
    """Return log max((e^negative - tau_plus count e^positive) / (1 - tau_plus), e^floor), and where it is the floor."""
    if tau_plus == 0:
        return negative, negative < floor
    gap = positive + math.log(tau_plus * count) - negative
    inside = torch.log(-torch.expm1(gap.where(gap < 0, -1.0)))
    value = (negative + inside - math.log(1 - tau_plus)).where(gap < 0, -torch.inf)
    floored = value < floor
    return value.where(~floored, floor), floored


def _loss_terms(
    views: Tensor,
    similarity: Tensor | None,
    extra_positives: Tensor | None,
    negatives: Tensor | None,
    temperature: float,
    tau_plus: float,
    beta: float | None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return for each anchor the positive's similarity, the logarithm of N g, and whether it is the floor."""
    positive, scale = pairs.other_view_similarity(views) / temperature, 1 / temperature
    own = positive
    if extra_positives is not None:
        _check_not_empty("extra_positives", extra_positives)
        own = (views * extra_positives[:, None]).sum(-1) * scale
        own = (own.logsumexp(0) - math.log(len(extra_positives))).flatten()
    if negatives is not None:
        _check_not_empty("negatives", negatives)
        count, anchors = len(negatives), views.shape[1]
        negative = ((views[0] * negatives).sum(-1) * scale).logsumexp(0)
        positive, own = positive[:anchors], own[:anchors]
    else:
        count, cosine = 2 * pairs.count_other_samples(views), pairs.cosine_matrix(views, similarity)
        if beta is None:
            negative = pairs.log_sum_exp(cosine, scale, views=2)
        else:
            negative = pairs.log_sum_exp(cosine, (1 + beta) * scale, views=2)
            if beta != 0:
                negative = negative - pairs.log_sum_exp(cosine, beta * scale, views=2) + math.log(count)
    unbiased, floored = log_debiased_negative(negative, own, count, tau_plus, math.log(count) - scale)
    return positive, unbiased, floored


def _check_not_empty(name: str, rows: Tensor) -> None:
    if len(rows) == 0:
        raise ValueError(f"{name} is empty: leave it out, or give one or more rows of each sample")
