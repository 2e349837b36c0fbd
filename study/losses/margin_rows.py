"""The rows of eps-SupInfoNCE's form "c", value and gradient in a few passes over the matrix."""

from typing import Any

import torch
from torch import Tensor

from study.losses.batched import BatchedFunction, add_product_
from study.losses.scalars import Scalar, is_zero, log
from study.losses.similarity import NOTHING, softmax_


def margin_rows(cosine: Tensor, positive: Tensor, scale: Scalar, epsilon: Scalar, guard: Scalar) -> Tensor:
    """sum over positives i of log(1 + e^(epsilon - s_i) * sum over negatives j of e^s_j), for each row.

    s is scale * cosine.

    Args:
        cosine: shape (n, n).
        positive: 1 for the row's positives, else 0, diagonal 0, shape (n, n). All others but the row are negatives.
        scale: one over the temperature.
        epsilon: margin.
        guard: added to the negatives' sum, as a share of the row's largest exponential, a constant for the gradient.

    Returns:
        Shape (n,).
    """
    added = None if is_zero(guard) else cosine.detach().amax(-1) * scale + log(guard)
    if isinstance(scale, Tensor):
        cosine, scale = cosine * scale, 1.0
    rows: Tensor = _MarginRows.apply(cosine, positive, scale, epsilon, added)[0]
    return rows


class _MarginRows(BatchedFunction):
    """With S the log-sum of the negatives and v = s_i - S - epsilon, a row is the sum of -logsigmoid(v).

    Further outputs: the softmax of the negatives, the share that they have of S beside what is added, and sigmoid(-v)
    of the positives.
    """

    @staticmethod
    def forward(
        cosine: Tensor, positive: Tensor, scale: float, epsilon: Scalar, added: Tensor | None
    ) -> tuple[Tensor, ...]:
        negatives = (cosine * scale).add_(positive, alpha=NOTHING)
        negatives.diagonal(0, -2, -1).fill_(NOTHING)
        log_sum = softmax_(negatives)
        share = (log_sum != -torch.inf).to(cosine.dtype)
        if added is not None:
            everything = torch.logaddexp(log_sum, added)
            share, log_sum = share * (log_sum - everything).exp(), everything
        level = log_sum + (epsilon[..., None] if isinstance(epsilon, Tensor) else epsilon)
        gap = torch.add(-level[..., None], cosine, alpha=scale)
        term, buffer = torch.ops.aten.log_sigmoid_forward(gap)
        slope = torch.ops.aten.log_sigmoid_backward(positive, gap, buffer)
        return -term.mul_(positive).sum(-1), negatives, share, slope

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        ctx.save_for_backward(*output[1:])
        ctx.scale = inputs[2]
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(
        ctx: Any,
        of_rows: Tensor | None,
        of_negatives: Tensor | None,
        of_share: Tensor | None,
        of_slope: Tensor | None,
    ) -> tuple[Tensor | None, ...]:
        negatives, share, slope = ctx.saved_tensors
        pull = torch.zeros_like(share) if of_rows is None else of_rows
        of_level = slope.sum(-1) * pull
        further = None
        if of_slope is not None:
            further = of_slope * slope * (slope - 1)
            of_level = of_level - further.sum(-1)
        of_log_sum = share * of_level
        of_added = (1 - share) * of_level if ctx.needs_input_grad[4] else None
        if of_share is not None:
            moved = of_share * share * (1 - share)
            of_log_sum = of_log_sum + moved
            of_added = None if of_added is None else of_added - moved
        if of_negatives is not None:
            weighted = of_negatives * negatives
            of_log_sum = of_log_sum - weighted.sum(-1)
            further = weighted if further is None else further + weighted
        of_cosine = negatives * (of_log_sum * ctx.scale)[..., None]
        of_cosine = add_product_(of_cosine, slope, (-pull * ctx.scale)[..., None])
        if further is not None:
            of_cosine = of_cosine + further * ctx.scale
        of_epsilon = of_level.sum(-1) if ctx.needs_input_grad[3] else None
        return of_cosine, None, None, of_epsilon, of_added
