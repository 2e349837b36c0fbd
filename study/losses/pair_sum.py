"""A sum over all (positive, negative) pairs of each row, one row at a time: memory stays at a few n x n matrices."""

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import softplus


def pair_softplus(scaled: Tensor, positive: Tensor, negative: Tensor, epsilon: float) -> Tensor:
    """sum over i in positive, j in negative of log(1 + e^(s_j - s_i + epsilon)), for each row of `scaled`.

    Args:
        scaled: similarities over temperature, shape (n, n).
        positive, negative: disjoint boolean masks, shape (n, n).
        epsilon: margin.

    Returns:
        The sums, shape (n,).
    """
    total: Tensor = _pair_softplus(scaled, positive, negative, epsilon)[0]
    return total


# An operator of its own, so that torch.compile sees one node and not n iterations. The gradient comes with the value.
@torch.library.custom_op("study::pair_softplus", mutates_args=())
def _pair_softplus(scaled: Tensor, positive: Tensor, negative: Tensor, epsilon: float) -> tuple[Tensor, Tensor]:
    totals, gradient = [], torch.zeros_like(scaled)
    for row, above, below, slope in zip(scaled, negative, positive, gradient, strict=True):
        if scaled.is_cpu:  # elsewhere reading the number of pairs back would wait for the device
            gap = row[above] - row[below, None] + epsilon
            pull = gap.sigmoid()
            slope[above], slope[below] = pull.sum(0), -pull.sum(1)
        else:
            gap = row.where(above, -torch.inf) - row.where(below, torch.inf)[:, None] + epsilon
            pull = gap.sigmoid()
            slope.copy_(pull.sum(0) - pull.sum(1))
        totals.append(softplus(gap, threshold=40.0).sum())
    return torch.stack(totals), gradient


@_pair_softplus.register_fake
def _(scaled: Tensor, positive: Tensor, negative: Tensor, epsilon: float) -> tuple[Tensor, Tensor]:
    return scaled.new_empty(len(scaled)), torch.empty_like(scaled)


def _keep(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    ctx.save_for_backward(output[1])


def _gradient(ctx: Any, of_total: Tensor, of_gradient: Tensor | None) -> tuple[Tensor, None, None, None]:
    (gradient,) = ctx.saved_tensors
    return gradient * of_total[:, None], None, None, None


_pair_softplus.register_autograd(_gradient, setup_context=_keep)
