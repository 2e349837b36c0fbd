"""Sums over the four cells of FairKL's released function, value and gradient in a few passes over the matrix."""

from typing import Any

import torch
from torch import Tensor


def cell_sums(cosine: Tensor, positive: Tensor, aligned: Tensor) -> tuple[Tensor, Tensor]:
    """Sum and sum of squares of cosine * weight over all entries, for four weights; each of shape (4,).

    The weights: positive * aligned, positive * (1 - aligned), (1 - positive) * aligned, (1 - positive) * (1 - aligned).

    Args:
        cosine: shape (n, n).
        positive: 0 or 1, shape (n, n), a constant.
        aligned: usually 0 or 1, shape (n, n), a constant.
    """
    sums, squares = _CellSums.apply(cosine, positive, aligned)
    return sums, squares


class _CellSums(torch.autograd.Function):
    # Weights are applied by multiplication and matrices are used again: `where`, and fresh memory, take several times
    # as long on a CPU.
    @staticmethod
    def forward(ctx: Any, cosine: Tensor, positive: Tensor, aligned: Tensor) -> tuple[Tensor, Tensor]:
        ctx.save_for_backward(cosine, positive, aligned)
        cells = []
        part = cosine * positive
        near = part * aligned
        cells += [_sums(near), _sums(part.sub_(near))]
        torch.mul(cosine, positive, out=part)
        torch.sub(cosine, part, out=part)
        torch.mul(part, aligned, out=near)
        cells += [_sums(near), _sums(part.sub_(near))]
        sums, squares = zip(*cells, strict=True)
        return torch.stack(sums), torch.stack(squares)

    @staticmethod
    def backward(ctx: Any, of_sums: Tensor, of_squares: Tensor) -> tuple[Tensor, None, None]:
        cosine, positive, aligned = ctx.saved_tensors
        near, far = aligned * aligned, (1 - aligned).square_()
        gradient = _spread(2 * of_squares, positive, near, far).mul_(cosine)
        torch.sub(1, aligned, out=far)
        return gradient.add_(_spread(of_sums, positive, aligned, far)), None, None


def _sums(cell: Tensor) -> tuple[Tensor, Tensor]:
    return cell.sum(), torch.linalg.vector_norm(cell, dim=1).square().sum()


def _spread(value: Tensor, positive: Tensor, near: Tensor, far: Tensor) -> Tensor:
    """The matrix that holds each cell's value times its weight."""
    positive_near, positive_far, negative_near, negative_far = value.unbind()
    matrix = near * (positive_near - negative_near)
    part = far * (positive_far - negative_far)
    matrix.add_(part).mul_(positive)
    for weight, level in ((near, negative_near), (far, negative_far)):
        matrix.add_(torch.mul(weight, level, out=part))
    return matrix
