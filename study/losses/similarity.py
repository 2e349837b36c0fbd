"""The n x n matrix of cosines and sums over its rows: the part of every loss that costs time and memory."""

import math
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import softplus as _softplus

from study.losses.catalogue import full_precision


@full_precision
def gram(views: Tensor) -> Tensor:
    """Dot products of all rows, shape (V*B, V*B), rows view-major. Its gradient takes one product instead of two.

    Args:
        views: embeddings, shape (V, B, D).
    """
    return _Gram.apply(views.flatten(0, 1))


def cosines(views: Tensor, similarity: Tensor | None) -> Tensor:
    """The caller's similarity matrix, or the one of `views` if it gave none."""
    return gram(views) if similarity is None else similarity


def log_sum_exp(similarity: Tensor, scale: float, *, keep: Tensor | None = None, views: int = 1) -> Tensor:
    """log of the sum of exp(scale * similarity) over a part of each row; -inf (without gradient) for an empty part.

    Args:
        similarity: shape (n, n).
        scale: one over the temperature.
        keep: boolean, broadcastable to (n, n), the part. None: everything but the diagonal.
        views: with `keep` None, leave out the diagonal of each of the views x views blocks (all rows of one sample).
    """
    return _LogSumExp.apply(similarity, scale, keep, views)


def between_views(views: Tensor) -> Tensor:
    """Dot product of each row with the same sample's other view, shape (2*B,). ValueError unless V is 2."""
    if len(views) != 2:
        raise ValueError(f"this loss pairs two views of each sample, got {len(views)}")
    return (views[0] * views[1]).sum(-1).repeat(2)


def softplus(x: Tensor) -> Tensor:
    """log(1 + e^x), exact in float64 (PyTorch's default switches to the identity at 20, an error of 2e-9)."""
    return _softplus(x, threshold=40.0)


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
    """One softmax serves value and gradient: log-sum-exp = largest - log(largest probability)."""

    @staticmethod
    def forward(ctx: Any, similarity: Tensor, scale: float, keep: Tensor | None, views: int) -> Tensor:
        lowest = torch.finfo(similarity.dtype).min
        x = similarity * scale
        if keep is None:
            samples = len(x) // views
            x.view(views, samples, views, samples).diagonal(0, 1, 3).fill_(lowest)
        else:
            x = torch.where(keep, x, lowest)
        largest = x.amax(1)
        some = largest > lowest
        probability = x.softmax(1)
        ctx.save_for_backward(probability, some)
        ctx.scale = scale
        return torch.where(some, largest - probability.amax(1).log(), -torch.inf)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None, None]:
        probability, some = ctx.saved_tensors
        return probability * torch.where(some, gradient * ctx.scale, 0.0)[:, None], None, None, None
