"""FairKL as released: its two terms, value and gradient in a few passes over the matrix."""

from typing import Any

import torch
from torch import Tensor


def released_terms(cosine: Tensor, positive: Tensor, aligned: Tensor, *, soft: bool, kld: float) -> Tensor:
    """The terms for pairs of one class and for pairs of two, shape (2,).

    A term is the squared difference of the means of aligned and conflicting pairs, plus `kld` times that of their
    deviations; minus the mean of the conflicting pairs of one class, and plus that of the aligned pairs of two. A
    deviation is taken over the whole matrix, entries outside the cell being 0; one of 0 has gradient 0.

    Args:
        cosine: shape (n, n).
        positive: 1 for pairs of one class, 0 for others, a constant, shape (n, n).
        aligned: 1 for pairs that share the bias, 0 for others; soft: how much they share it. A constant, shape (n, n).
        soft: divide by the pairs of the term and not by those of the cell.
        kld: weight of the deviations.
    """
    entries, one_class = positive.numel(), positive.sum()
    if soft:
        pairs = torch.stack([one_class, one_class, entries - one_class, entries - one_class])
    else:
        both, one_bias = torch.dot(positive.flatten(), aligned.flatten()), aligned.sum()
        pairs = torch.stack([both, one_class - both, one_bias - both, entries - one_class - one_bias + both])
    terms: Tensor = _Terms.apply(cosine, positive, aligned, pairs.clamp(min=1).view(2, 2), kld)
    return terms


class _Terms(torch.autograd.Function):
    # Weights are applied by multiplication and matrices are used again: `where`, and fresh memory, take several times
    # as long on a CPU. In the small tensors rows are pairs of one class and of two, columns aligned and conflicting.
    @staticmethod
    def forward(ctx: Any, cosine: Tensor, positive: Tensor, aligned: Tensor, pairs: Tensor, kld: float) -> Tensor:
        part = cosine * positive
        near = part * aligned
        cells = [_sums(near), _sums(part.sub_(near))]
        torch.mul(cosine, positive, out=part)
        torch.sub(cosine, part, out=part)
        torch.mul(part, aligned, out=near)
        cells += [_sums(near), _sums(part.sub_(near))]
        sums, squares = (torch.stack(values).view(2, 2) for values in zip(*cells, strict=True))

        entries = cosine.numel()
        mean = sums / pairs
        deviation = ((squares - sums.square() / entries) / max(entries - 1, 1)).clamp(min=0).sqrt()
        mean_gap, deviation_gap = mean[:, 0] - mean[:, 1], deviation[:, 0] - deviation[:, 1]
        ctx.save_for_backward(cosine, positive, aligned, pairs, sums, deviation, mean_gap, deviation_gap)
        ctx.kld = kld
        return mean_gap.square() + kld * deviation_gap.square() + torch.stack([-mean[0, 1], mean[1, 0]])

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None, None, None]:
        cosine, positive, aligned, pairs, sums, deviation, mean_gap, deviation_gap = ctx.saved_tensors
        entries = cosine.numel()
        of_mean = torch.stack([2 * mean_gap, -2 * mean_gap], 1)
        of_mean[0, 1] -= 1
        of_mean[1, 0] += 1
        of_deviation = ctx.kld * torch.stack([2 * deviation_gap, -2 * deviation_gap], 1)
        slope = torch.where(deviation > 0, of_deviation / deviation, 0.0) * gradient[:, None] / max(entries - 1, 1)
        level = of_mean * gradient[:, None] / pairs - slope * sums / entries

        near, far = aligned * aligned, (1 - aligned).square_()
        of_cosine = _spread(slope, positive, near, far).mul_(cosine)
        torch.sub(1, aligned, out=far)
        return of_cosine.add_(_spread(level, positive, aligned, far)), None, None, None, None


def _sums(cell: Tensor) -> tuple[Tensor, Tensor]:
    return cell.sum(), torch.linalg.vector_norm(cell, dim=1).square().sum()


def _spread(value: Tensor, positive: Tensor, near: Tensor, far: Tensor) -> Tensor:
    """The matrix that holds each cell's value times its weight."""
    positive_near, positive_far, negative_near, negative_far = value.flatten().unbind()
    matrix = near * (positive_near - negative_near)
    part = far * (positive_far - negative_far)
    matrix.add_(part).mul_(positive)
    for weight, level in ((near, negative_near), (far, negative_far)):
        matrix.add_(torch.mul(weight, level, out=part))
    return matrix
