"""A sum over all (positive, negative) pairs of each row, one row at a time: memory stays at a few n x n matrices."""

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid


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
    # Reading the number of pairs back is free on a CPU and would wait for any other device.
    pairs = picked_pairs if scaled.is_cpu else masked_pairs
    rows = [pairs(*row, epsilon) for row in zip(scaled, positive, negative, strict=True)]
    totals, gradients = zip(*rows, strict=True)
    return torch.stack(totals), torch.stack(gradients)


@_pair_softplus.register_fake
def _(scaled: Tensor, positive: Tensor, negative: Tensor, epsilon: float) -> tuple[Tensor, Tensor]:
    return scaled.new_empty(len(scaled)), torch.empty_like(scaled)


def _keep(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    ctx.save_for_backward(output[1])


def _gradient(ctx: Any, of_total: Tensor, of_gradient: Tensor | None) -> tuple[Tensor, None, None, None]:
    (gradient,) = ctx.saved_tensors
    return gradient * of_total[:, None], None, None, None


_pair_softplus.register_autograd(_gradient, setup_context=_keep)


def picked_pairs(row: Tensor, positive: Tensor, negative: Tensor, epsilon: float) -> tuple[Tensor, Tensor]:
    """The sum for one row and its gradient, over the row's pairs alone."""
    gap = row[negative] - row[positive, None] + epsilon
    pull, gradient = gap.sigmoid(), torch.zeros_like(row)
    gradient[negative], gradient[positive] = pull.sum(0), -pull.sum(1)
    return -logsigmoid(-gap).sum(), gradient


def masked_pairs(row: Tensor, positive: Tensor, negative: Tensor, epsilon: float) -> tuple[Tensor, Tensor]:
    """The same over all n x n pairs: those that do not count are infinitely far apart."""
    gap = row.where(negative, -torch.inf) - row.where(positive, torch.inf)[:, None] + epsilon
    pull = gap.sigmoid()
    return -logsigmoid(-gap).sum(), pull.sum(0) - pull.sum(1)
