"""The rows of eps-SupInfoNCE's form "c", value and gradient in a few passes over the matrix."""

from typing import Any

import torch
from torch import Tensor

from study.losses.batched import BatchedFunction, Scalar, add_product_, is_zero, log
from study.losses.similarity import NOTHING, softmax_


def margin_rows(cosine: Tensor, weight: Tensor, scale: Scalar, epsilon: Scalar, guard: Scalar) -> Tensor:
    """sum over rows and their positives i of weight_i * log(e^-epsilon + e^-s_i * sum over negatives j of e^s_j).

    s is scale * cosine.

    Args:
        cosine: shape (n, n).
        weight: those of each row's positives, 0 for its negatives and on the diagonal, shape (n, n).
        scale: one over the temperature.
        epsilon: margin.
        guard: added to the negatives' sum, as a share of the row's largest exponential, a constant for the gradient.

    Returns:
        A scalar.
    """
    added = None if is_zero(guard) else cosine.detach().amax(-1) * scale + log(guard)
    if isinstance(scale, Tensor):
        cosine, scale = cosine * scale, 1.0
    value: Tensor = _MarginRows.apply(cosine, weight, scale, epsilon, added)[0]
    return value


class _MarginRows(BatchedFunction):
    """With S the log-sum of the negatives and v = s_i - S - epsilon, the sum of -weight * (logsigmoid(v) + epsilon).

    Further outputs: the softmax of the negatives, the share that they have of S beside what is added, and
    weight * sigmoid(-v). A row without negatives has an S far below everything, so that its terms and slopes are 0.
    """

    @staticmethod
    def forward(
        cosine: Tensor, weight: Tensor, scale: float, epsilon: Scalar, added: Tensor | None
    ) -> tuple[Tensor, ...]:
        negatives = (cosine * scale).add_(weight, alpha=NOTHING)
        negatives.diagonal(0, -2, -1).fill_(NOTHING)
        log_sum = softmax_(negatives)
        share = torch.ones_like(log_sum)
        if added is not None:
            everything = torch.logaddexp(log_sum, added)
            share, log_sum = (log_sum - everything).exp_(), everything
        if isinstance(epsilon, Tensor):
            epsilon = epsilon[..., None]
        gap = torch.add(-(log_sum + epsilon)[..., None], cosine, alpha=scale)
        term, buffer = torch.ops.aten.log_sigmoid_forward(gap)
        slope = torch.ops.aten.log_sigmoid_backward(weight, gap, buffer)
        term = term.add_(epsilon[..., None] if isinstance(epsilon, Tensor) else epsilon).mul_(weight)
        return -term.sum((-2, -1)), negatives, share, slope

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        ctx.save_for_backward(inputs[1], *output[1:])
        ctx.scale = inputs[2]
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(
        ctx: Any,
        of_value: Tensor | None,
        of_negatives: Tensor | None,
        of_share: Tensor | None,
        of_slope: Tensor | None,
    ) -> tuple[Tensor | None, ...]:
        weight, negatives, share, slope = ctx.saved_tensors
        pull = torch.zeros_like(share[..., :1]) if of_value is None else of_value[..., None]
        of_level = slope.sum(-1) * pull
        of_epsilon = None
        if ctx.needs_input_grad[3]:
            of_epsilon = of_level.sum(-1) - weight.sum((-2, -1)) * pull[..., 0]
        further = None
        if of_slope is not None:  # the derivative of weight * p by v is that of p = sigmoid(-v): -weight * p (1 - p)
            further = of_slope * slope * (slope / weight.where(weight > 0, 1.0) - 1)
            of_level = of_level - further.sum(-1)
            if of_epsilon is not None:
                of_epsilon = of_epsilon - further.sum((-2, -1))
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
        return of_cosine, None, None, of_epsilon, of_added
