"""The n x n matrix of cosines and sums over its rows: the part of every loss that costs time and memory."""

import math
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from study.losses.batched import BatchedFunction, Scalar, is_zero
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


def log_sum_exp(similarity: Tensor, scale: Scalar, *, drop: Tensor | None = None, views: int = 1) -> Tensor:
    """log of the sum of exp(scale * similarity) over a part of each row; -inf (without gradient) for an empty part.

    Args:
        similarity: shape (n, n).
        scale: one over the temperature.
        drop: 1 for what to leave out, 0 for the rest, shape (n, n). None: leave out the diagonal.
        views: with `drop` None, leave out the diagonal of each of the views x views blocks (all rows of one sample).
    """
    if isinstance(scale, Tensor):
        similarity, scale = similarity * scale, 1.0
    log_sum: Tensor = _LogSumExp.apply(similarity, scale, drop, views)[0]
    return log_sum


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


def log_add(x: Tensor, y: Tensor) -> Tensor:
    """log(e^x + e^y) for y above -inf; its derivatives are finite, too, where x is -inf (PyTorch's own are nan)."""
    return y + softplus(x - y)


def guarded(log_sum: Tensor, similarity: Tensor, scale: Scalar, guard: Scalar) -> Tensor:
    """The logarithm of a sum to which released code adds `guard` times the row's largest exponential, a constant."""
    if is_zero(guard):
        return log_sum
    largest = similarity.detach().amax(-1) * scale
    if not isinstance(guard, Tensor):
        return log_add(log_sum, largest + math.log(guard))
    some = guard > 0
    return log_add(log_sum, largest + guard.where(some, 1.0).log()).where(some, log_sum)


def rescaled(loss: Tensor, temperature: Scalar, base_temperature: Scalar | None) -> Tensor:
    """The loss times temperature / base_temperature, as in SupCon's code; None: the loss itself."""
    return loss if base_temperature is None else loss * (temperature / base_temperature)


class _Gram(BatchedFunction):
    @staticmethod
    def forward(rows: Tensor) -> Tensor:
        return rows @ rows.mT

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor], output: Tensor) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        (rows,) = ctx.saved_tensors
        both = gradient.mT.clone(memory_format=torch.contiguous_format).add_(gradient)
        return both @ rows


class _LogSumExp(BatchedFunction):
    """The log-sum-exp of each row, and the softmax that is its gradient."""

    # In place on one new matrix, kept for the gradient: on a CPU a fresh matrix costs more than a pass over an old one.
    @staticmethod
    def forward(similarity: Tensor, scale: float, drop: Tensor | None, views: int) -> tuple[Tensor, Tensor]:
        x = similarity * scale
        if drop is None:
            samples = x.shape[-1] // views
            blocks = x.view(*x.shape[:-2], views, samples, views, samples)
            blocks.diagonal(0, -3, -1).fill_(NOTHING)
        else:
            x.add_(drop, alpha=NOTHING)
        return softmax_(x), x

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
        ctx.save_for_backward(*output)
        ctx.scale = inputs[1]
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(
        ctx: Any, of_log_sum: Tensor | None, of_probability: Tensor | None
    ) -> tuple[Tensor | None, None, None, None]:
        log_sum, probability = ctx.saved_tensors
        factor = None if of_log_sum is None else of_log_sum * ctx.scale
        weighted = None
        if of_probability is not None:
            weighted = probability * of_probability * ctx.scale
            spent = weighted.sum(-1)
            factor = -spent if factor is None else factor - spent
        if factor is None:
            return None, None, None, None
        empty = log_sum == -torch.inf
        of_similarity = probability * torch.where(empty, 0.0, factor)[..., None]
        if weighted is not None:
            of_similarity = of_similarity + weighted.where(~empty[..., None], 0.0)
        return of_similarity, None, None, None


def softmax_(x: Tensor) -> Tensor:
    """Turn x into the softmax of its rows, and return their log-sum-exp: -inf for a row of NOTHING, nan with a nan."""
    largest = x.amax(-1)
    torch.softmax(x, -1, out=x)
    return torch.where(largest <= NOTHING / 2, -torch.inf, largest - x.amax(-1).log())
