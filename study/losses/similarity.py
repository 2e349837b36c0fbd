"""The n x n matrix of cosines and sums over its rows: the part of every loss that costs time and memory."""

import math
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from study.losses.catalogue import full_precision


@full_precision
def gram(views: Tensor) -> Tensor:
    """Dot products of all rows, shape (V*B, V*B), rows view-major. Its gradient takes one product instead of two.

    Args:
        views: embeddings, shape (V, B, D).
    """
    return _Gram.apply(views.flatten(0, 1))


# What is left out of a sum of exponentials lies this far down: its exponential is 0, its own value is lost in rounding.
NOTHING = -1e30


def cosines(views: Tensor, similarity: Tensor | None) -> Tensor:
    """The caller's similarity matrix, or the one of `views` if it gave none."""
    return gram(views) if similarity is None else similarity


def log_sum_exp(similarity: Tensor, scale: float, *, drop: Tensor | None = None, views: int = 1) -> Tensor:
    """log of the sum of exp(scale * similarity) over a part of each row; -inf (without gradient) for an empty part.

    Args:
        similarity: shape (n, n).
        scale: one over the temperature.
        drop: 1 for what to leave out, 0 for the rest, shape (n, n). None: leave out the diagonal.
        views: with `drop` None, leave out the diagonal of each of the views x views blocks (all rows of one sample).
    """
    return _LogSumExp.apply(similarity, scale, drop, views)


def between_views(views: Tensor) -> Tensor:
    """Dot product of each row with the same sample's other view, shape (2*B,). ValueError unless V is 2."""
    if len(views) != 2:
        raise ValueError(f"this loss pairs two views of each sample, got {len(views)}")
    return (views[0] * views[1]).sum(-1).repeat(2)


def other_samples(views: Tensor) -> int:
    """How many samples besides its own each row has, B - 1. ValueError: none."""
    if views.shape[1] < 2:
        raise ValueError(f"this loss compares different samples: it needs two or more, got {views.shape[1]}")
    return views.shape[1] - 1


def softplus(x: Tensor) -> Tensor:
    """log(1 + e^x), exact (PyTorch's own is the identity above 20), and without an exponential in its gradient."""
    return -logsigmoid(-x)


def guarded(log_sum: Tensor, similarity: Tensor, scale: float, guard: float) -> Tensor:
    """The logarithm of a sum to which released code adds `guard` times the row's largest exponential, a constant."""
    if guard == 0.0:
        return log_sum
    largest = similarity.detach().amax(1) * scale
    return torch.logaddexp(log_sum, largest + math.log(guard))


def rescaled(loss: Tensor, temperature: float, base_temperature: float | None) -> Tensor:
    """The loss times temperature / base_temperature, as in SupCon's code; None: the loss itself."""
    return loss if base_temperature is None else loss * (temperature / base_temperature)


class _Gram(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor) -> Tensor:
        ctx.save_for_backward(rows)
        return rows @ rows.T

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        (rows,) = ctx.saved_tensors
        both = gradient.T.clone(memory_format=torch.contiguous_format).add_(gradient)
        return both @ rows


class _LogSumExp(torch.autograd.Function):
    # In place on one new matrix, kept for the gradient: on a CPU a fresh matrix costs more than a pass over an old one.
    @staticmethod
    def forward(ctx: Any, similarity: Tensor, scale: float, drop: Tensor | None, views: int) -> Tensor:
        x = similarity * scale
        if drop is None:
            samples = len(x) // views
            x.view(views, samples, views, samples).diagonal(0, 1, 3).fill_(NOTHING)
        else:
            x.add_(drop, alpha=NOTHING)
        log_sum = softmax_(x)
        ctx.save_for_backward(x, log_sum)
        ctx.scale = scale
        return log_sum

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None, None]:
        probability, log_sum = ctx.saved_tensors
        return probability * torch.where(log_sum == -torch.inf, 0.0, gradient * ctx.scale)[:, None], None, None, None


def softmax_(x: Tensor) -> Tensor:
    """Turn x into the softmax of its rows, and return their log-sum-exp: -inf for a row of NOTHING, nan with a nan."""
    largest = x.amax(1)
    torch.softmax(x, 1, out=x)
    return torch.where(largest <= NOTHING / 2, -torch.inf, largest - x.amax(1).log())
