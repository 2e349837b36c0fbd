"""eps-SupInfoNCE (FairKL paper: Barbano et al., "Unbiased supervised contrastive learning")."""

import math
from typing import Annotated, Any, Literal

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid
from typing_extensions import Doc

from study.knobs import Searched
from study.losses.loss_catalogue import loss
from study.losses.pairs import (
    NOTHING,
    cosines,
    log_sum_exp,
    once,
    rescaled,
    same,
    sample_labels,
    softmax_,
    softplus,
    without_self,
    without_self_,
)
from study.losses.ranges import BaseTemperature, Guard, Margin, SupervisedTemperature


def pair_softplus(scaled: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
    """Sum log(1 + e^(s_j - s_i)) over i in positive and j in negative, for each row of `scaled`.

    A few rows at a time, so that memory does not grow with n cubed.

    Args:
        scaled: similarities over temperature, shape (n, n).
        positive, negative: disjoint boolean masks, shape (n, n).

    Returns:
        The sums, shape (n,).
    """
    total: Tensor = _PairSoftplus.apply(scaled, positive, negative)
    return total


PAIRS = 2**24
"""Pairs per step on devices other than a CPU: 64 MiB in float32, all of a batch of 256."""


class _PairSoftplus(torch.autograd.Function):
    """Each row's sum; its gradient comes with the value."""

    @staticmethod
    def forward(ctx: Any, scaled: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        total, gradient = _sums(scaled, positive, negative)
        ctx.save_for_backward(gradient)
        return total

    @staticmethod
    @once
    def backward(ctx: Any, of_total: Tensor) -> tuple[Tensor, None, None]:
        (gradient,) = ctx.saved_tensors
        return gradient * of_total[:, None], None, None


# An operator of its own, so that torch.compile sees one node and not n iterations.
@torch.library.custom_op("study::pair_softplus", mutates_args=())
def _sums(scaled: Tensor, positive: Tensor, negative: Tensor) -> tuple[Tensor, Tensor]:
    if scaled.is_cpu:  # there reading the number of pairs back is free; it would wait for any other device
        rows = [picked_pairs(*row) for row in zip(scaled, positive, negative, strict=True)]
        totals, gradients = zip(*rows, strict=True)
        return torch.stack(totals), torch.stack(gradients)
    few = max(PAIRS // scaled.shape[-1] ** 2, 1)  # so many rows that their pairs are at most `PAIRS`
    parts = zip(scaled.split(few), positive.split(few), negative.split(few), strict=True)
    totals, gradients = zip(*(masked_pairs(*rows) for rows in parts), strict=True)
    return torch.cat(totals), torch.cat(gradients)


@_sums.register_fake
def _(scaled: Tensor, positive: Tensor, negative: Tensor) -> tuple[Tensor, Tensor]:
    return scaled.new_empty(len(scaled)), torch.empty_like(scaled)


def picked_pairs(row: Tensor, positive: Tensor, negative: Tensor) -> tuple[Tensor, Tensor]:
    """Compute the sum for one row and its gradient, over the row's pairs alone."""
    gap = row[negative] - row[positive, None]
    pull, gradient = gap.sigmoid(), torch.zeros_like(row)
    gradient[negative], gradient[positive] = pull.sum(0), -pull.sum(1)
    return -logsigmoid(-gap).sum(), gradient


def masked_pairs(rows: Tensor, positive: Tensor, negative: Tensor) -> tuple[Tensor, Tensor]:
    """Compute sums and gradients of rows, (R, n), over all n x n pairs; excluded ones are infinitely far apart."""
    gap = rows.where(negative, -torch.inf)[:, None, :] - rows.where(positive, torch.inf)[:, :, None]
    pull = gap.sigmoid()
    return -logsigmoid(-gap).sum((-2, -1)), pull.sum(-2) - pull.sum(-1)


def margin_rows(cosine: Tensor, weight: Tensor, scale: float, epsilon: float, guard: float) -> Tensor:
    """Sum weight_i * log(e^-epsilon + e^-s_i * sum over negatives j of e^s_j) over rows and their positives i.

    s is scale * cosine. This is form "c" of eps-SupInfoNCE, value and gradient in a few passes over the matrix.

    Args:
        cosine: shape (n, n).
        weight: those of each row's positives, 0 for its negatives and on the diagonal, shape (n, n).
        scale: one over the temperature.
        epsilon: margin.
        guard: added to the negatives' sum, as a share of the row's largest exponential, a constant for the gradient.

    Returns:
        A scalar.
    """
    added = None if guard == 0 else cosine.detach().amax(-1) * scale + math.log(guard)
    value: Tensor = _MarginRows.apply(cosine, weight, scale, epsilon, added)
    return value


class _MarginRows(torch.autograd.Function):
    """With S the log-sum of the negatives and v = s_i - S - epsilon, the sum of -weight * (logsigmoid(v) + epsilon).

    Kept for the gradient: the softmax of the negatives, the share that they have of S beside what is added, and
    weight * sigmoid(-v). A row without negatives has an S far below everything, so that its terms and slopes are 0.
    """

    @staticmethod
    def forward(ctx: Any, cosine: Tensor, weight: Tensor, scale: float, epsilon: float, added: Tensor | None) -> Tensor:
        negatives = (cosine * scale).add_(weight, alpha=NOTHING)
        negatives.diagonal().fill_(NOTHING)
        log_sum = softmax_(negatives)
        share = torch.ones_like(log_sum)
        if added is not None:
            everything = torch.logaddexp(log_sum, added)
            share, log_sum = (log_sum - everything).exp_(), everything
        gap = torch.add(-(log_sum + epsilon)[:, None], cosine, alpha=scale)
        term, buffer = torch.ops.aten.log_sigmoid_forward(gap)
        slope = torch.ops.aten.log_sigmoid_backward(weight, gap, buffer)
        ctx.save_for_backward(negatives, share, slope)
        ctx.scale = scale
        return -term.add_(epsilon).mul_(weight).sum((-2, -1))

    @staticmethod
    @once
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None, None, None]:
        negatives, share, slope = ctx.saved_tensors
        of_log_sum = share * (slope.sum(-1) * gradient)
        of_cosine = negatives * (of_log_sum * ctx.scale)[:, None]
        return of_cosine.addcmul_(slope, -gradient * ctx.scale), None, None, None, None


@loss
def eps_sup_info_nce(
    views: Tensor,
    *,
    target: Tensor | None = None,
    similarity: Tensor | None = None,
    temperature: SupervisedTemperature = 0.1,
    base_temperature: BaseTemperature = None,
    epsilon: Annotated[Margin, Searched(0.0, 0.5, paper=(0.5, 0.25))] = 0.0,
    form: Annotated[
        Literal["a", "b", "c", "d"], Doc("which of Eq. 17's extensions to several positives; c is the paper's loss")
    ] = "c",
    reduction: Annotated[
        Literal["mean", "sum"],
        Doc("over the positives, in form c: mean, as in the released code, or sum, as Eq. 4 is printed"),
    ] = "mean",
    guard: Annotated[
        Guard, Doc("added to the denominator, as a share of the row's largest exponential; form c only")
    ] = 0.0,
) -> Tensor:
    """eps-SupInfoNCE (FairKL paper Eq. 4 and, for the other forms, Eq. 17), mean over rows.

    With s = cosine / temperature and, for an anchor, positives i and negatives j:
    a: log(e^-eps + sum_ij e^(s_j - s_i)); b: sum_j log(e^-eps + sum_i e^(s_j - s_i));
    c: mean_i log(e^-eps + sum_j e^(s_j - s_i)); d: sum_ij log(e^-eps + e^(s_j - s_i)).
    A row without positives counts 0 and stays in the mean. Form "d" takes time V*B times that of the others.
    The released code adds 1e-6 to the denominator after subtracting the row's maximum: `guard=1e-6`. It takes the mean
    over positives where Eq. 4 as printed has the sum: `reduction="sum"`.

    Args:
        views: unit embeddings, shape (V, B, D).
        target: classes, shape (B,); None: a sample's positives are its other views.
        similarity: `gram(views)`, if the caller has it.

    Returns:
        The loss, a scalar.
    """
    cosine, scale = cosines(views, similarity), 1 / temperature
    same_label = same(sample_labels(views, target), views)
    positive = without_self_(same_label) if form == "c" else without_self(same_label)
    positives = positive.sum(-1)
    if form == "c":
        share = positive.div_(positives.clamp(min=1)[:, None]) if reduction == "mean" else positive
        return rescaled(margin_rows(cosine, share, scale, epsilon, guard) / len(cosine), temperature, base_temperature)
    if form == "d":
        apart = 1 - same_label
        per_row = pair_softplus(torch.add(cosine * scale, apart, alpha=epsilon), positive > 0, apart > 0)
        per_row = per_row - epsilon * positives * (len(cosine) - 1 - positives)
    else:
        attraction = log_sum_exp(cosine, -scale, drop=1 - positive) + epsilon
        if form == "a":
            per_row = softplus(log_sum_exp(cosine, scale, drop=same_label) + attraction) - epsilon
        else:
            gap = torch.add(-attraction[:, None], cosine, alpha=-scale)
            per_row = torch.linalg.vecdot(-logsigmoid(gap) - epsilon, 1 - same_label)
        per_row = per_row.where(positives > 0, 0.0)
    return rescaled(per_row.mean(), temperature, base_temperature)
