"""Hyperparameters as numbers, and as tensors without dimensions, which `torch.vmap` runs over many values at once."""

import math

import torch
from torch import Tensor

Scalar = float | Tensor


def is_zero(value: Scalar) -> bool:
    """Whether a hyperparameter is the number 0, for which a shorter way is taken.

    A tensor is never asked: under `torch.vmap` it stands for many values, and on a GPU the question would wait.
    """
    return not isinstance(value, Tensor) and value == 0


def log(value: Scalar) -> Scalar:
    """The logarithm; -inf for a tensor that is 0."""
    return value.log() if isinstance(value, Tensor) else math.log(value)


def plus(base: Tensor, value: Tensor, factor: Scalar) -> Tensor:
    """base + factor * value, without a matrix in between where the factor is a number."""
    return base + factor * value if isinstance(factor, Tensor) else torch.add(base, value, alpha=factor)
