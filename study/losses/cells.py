"""The four cells that pairs of samples fall into: of one class or two, aligned in their bias or conflicting."""

from typing import Any

import torch
from torch import Tensor

from study.losses.batched import BatchedFunction


def cells(one_class: Tensor, aligned: Tensor) -> Tensor:
    """How much each pair belongs to each cell, a constant, shape (2, 2, n, n).

    The first index is 0 for pairs of one class and 1 for pairs of two, the second 0 for aligned and 1 for conflicting.

    Args:
        one_class: 1 for pairs of one class, 0 for others, shape (n, n).
        aligned: 1 for pairs that share the bias, 0 for others; soft: how much they share it. Shape (n, n).
    """
    masks: Tensor = _Cells.apply(one_class, aligned)
    return masks


class _Cells(BatchedFunction):
    """Without a gradient: what it does is to write all four into one tensor, also under `torch.vmap`."""

    @staticmethod
    def forward(one_class: Tensor, aligned: Tensor) -> Tensor:
        masks = one_class.new_empty(*one_class.shape[:-2], 2, 2, *one_class.shape[-2:])
        (positive, crossed), (negative, apart) = ((side[..., 0, :, :], side[..., 1, :, :]) for side in masks.unbind(-4))
        torch.mul(one_class, aligned, out=positive)
        torch.sub(one_class, positive, out=crossed)
        torch.sub(aligned, positive, out=negative)
        torch.sub(1 - one_class, negative, out=apart)
        return masks

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor], output: Tensor) -> None:
        ctx.mark_non_differentiable(output)
