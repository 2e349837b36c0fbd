"""Gradients of our own that go on working under `torch.func`, `torch.vmap` and second derivatives."""

import inspect
import math
from typing import Any

import torch
from torch import Tensor

# Hyperparameters as numbers, and as tensors without dimensions, which `torch.vmap` runs over many values at once.

Scalar = float | Tensor


def is_zero(value: Scalar) -> bool:
    """Return whether a hyperparameter is the number 0, for which a shorter way is taken.

    A tensor is never asked: under `torch.vmap` it stands for many values, and on a GPU the question would wait.
    """
    return not isinstance(value, Tensor) and value == 0


def log(value: Scalar) -> Scalar:
    """The logarithm; -inf for a tensor that is 0."""
    return value.log() if isinstance(value, Tensor) else math.log(value)


def plus(base: Tensor, value: Tensor, factor: Scalar) -> Tensor:
    """base + factor * value, without a matrix in between where the factor is a number."""
    return base + factor * value if isinstance(factor, Tensor) else torch.add(base, value, alpha=factor)


class BatchedFunction(torch.autograd.Function):
    """A function written once for tensors with any leading dimensions; `torch.vmap` adds one to all of them.

    What `forward` computes beside its value and `backward` needs is an output, too, and `backward` takes gradients of
    all outputs: each derivative of a derivative is then right. `backward` is made of operations that can themselves be
    differentiated: without `out=`, and in place on new tensors only. A gradient is None where it is not asked for.
    """

    def __init_subclass__(cls) -> None:
        # PyTorch asks for it at each call; worked out anew it takes a third of a call's overhead.
        cls.forward.__signature__ = inspect.signature(cls.forward)  # type: ignore[attr-defined]

    @classmethod
    def vmap(cls, info: Any, in_dims: tuple[int | None, ...], *inputs: Any) -> tuple[Any, int | None]:
        """The function of the inputs with the batch in front; inputs without one are repeated, without a copy, and
        where none has one neither has the value."""
        if all(dim is None for dim in in_dims):
            return cls.apply(*inputs), None
        batched = [_with_batch(value, dim, info.batch_size) for value, dim in zip(inputs, in_dims, strict=True)]
        return cls.apply(*batched), 0


def add_product_(matrix: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """matrix + x * y, in the memory of a new matrix; in memory of its own where the sum is to be differentiated.

    For the sum in place PyTorch has no rule under `torch.vmap`, whose gradients are always differentiable.
    """
    return matrix + x * y if torch.is_grad_enabled() else matrix.addcmul_(x, y)


def _with_batch(value: Any, dim: int | None, size: int) -> Any:
    if not isinstance(value, Tensor):
        return value
    return value.expand(size, *value.shape) if dim is None else value.movedim(dim, 0)
