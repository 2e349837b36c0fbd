"""The rows of eps-SupInfoNCE's form "c", value and gradient in a few passes over the matrix."""

import math
from typing import Any

import torch
from torch import Tensor

from study.losses.similarity import NOTHING, softmax_


def margin_rows(cosine: Tensor, positive: Tensor, scale: float, epsilon: float, guard: float) -> Tensor:
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
    rows: Tensor = _MarginRows.apply(cosine, positive, scale, epsilon, guard)
    return rows


class _MarginRows(torch.autograd.Function):
    """With S the log-sum of the negatives and v = s_i - S - epsilon, a row is the sum of -logsigmoid(v)."""

    @staticmethod
    def forward(ctx: Any, cosine: Tensor, positive: Tensor, scale: float, epsilon: float, guard: float) -> Tensor:
        negatives = (cosine * scale).add_(positive, alpha=NOTHING).fill_diagonal_(NOTHING)
        log_sum = softmax_(negatives)
        share = (log_sum != -torch.inf).to(cosine.dtype)
        if guard > 0:
            guarded = torch.logaddexp(log_sum, cosine.amax(1) * scale + math.log(guard))
            share, log_sum = share * (log_sum - guarded).exp(), guarded
        gap = torch.add(-(log_sum + epsilon)[:, None], cosine, alpha=scale)
        term, buffer = torch.ops.aten.log_sigmoid_forward(gap)
        slope = torch.ops.aten.log_sigmoid_backward(positive, gap, buffer)
        ctx.save_for_backward(negatives, share, slope)
        ctx.scale = scale
        return -term.mul_(positive).sum(1)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None, None, None]:
        negatives, share, slope = ctx.saved_tensors
        gradient = gradient * ctx.scale
        of_cosine = negatives * (share * slope.sum(1) * gradient)[:, None]
        return of_cosine.addcmul_(slope, gradient[:, None], value=-1), None, None, None, None
