"""FairKL as released: its two terms, by the sums of each cell's entries."""

from typing import Any

import torch
from torch import Tensor

from study.losses.batched import BatchedFunction, Scalar, add_product_
from study.losses.cells import cells
from study.losses.divergence import deviation


def released_terms(
    cosine: Tensor, one_class: Tensor, aligned: Tensor, *, soft: bool, kld: Scalar
) -> tuple[Tensor, Tensor]:
    """The terms for pairs of one class and for pairs of two, scalars.

    A term is the squared difference of the means of aligned and conflicting pairs, plus `kld` times that of their
    deviations; minus the mean of the conflicting pairs of one class, and plus that of the aligned pairs of two. A
    deviation is taken over the whole matrix, entries outside the cell being 0; one of 0 has gradient 0.

    Args:
        cosine: shape (n, n).
        one_class: 1 for pairs of one class, 0 for others, a constant, shape (n, n).
        aligned: 1 for pairs that share the bias, 0 for others; soft: how much they share it. A constant, shape (n, n).
        soft: divide by the pairs of the term and not by those of the cell.
        kld: weight of the deviations.
    """
    entries = cosine.numel()
    sums, squares, pairs = _Sums.apply(cosine, one_class, aligned, soft)
    if soft:
        pairs = pairs.sum(-1, keepdim=True)
    mean = sums / pairs.clamp(min=1)
    variance = torch.sub(squares, sums.square(), alpha=1 / entries) / max(entries - 1, 1)
    aligned_side, conflicting_side = torch.stack([mean, deviation(variance)]).unbind(-1)
    of_means, of_deviations = (aligned_side - conflicting_side).square().unbind(0)
    positive_term, negative_term = (of_means + kld * of_deviations).unbind(0)
    _, conflicting_positives, aligned_negatives, _ = mean.flatten().unbind(0)
    return positive_term - conflicting_positives, negative_term + aligned_negatives


class _Sums(BatchedFunction):
    """The sum of each cell's entries, that of their squares, and that of its masks without a gradient, all (2, 2).

    In two ways, as `tests/losses/test_limits.py` holds: by products of matrices, a few launches on a device; and on a
    CPU, where fresh memory costs more than a pass over an old matrix, one cell after the other.
    """

    @staticmethod
    def forward(cosine: Tensor, one_class: Tensor, aligned: Tensor, soft: bool) -> tuple[Tensor, ...]:
        if cosine.is_cpu:
            return sums_in_turn(cosine, one_class, aligned)
        return sums_by_products(cosine, one_class, aligned, soft)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        *matrices, ctx.soft = inputs
        ctx.save_for_backward(*matrices)
        ctx.mark_non_differentiable(output[2])

    @staticmethod
    def backward(ctx: Any, of_sums: Tensor, of_squares: Tensor, _: None) -> tuple[Tensor | None, ...]:
        cosine, one_class, aligned = ctx.saved_tensors
        spread = spread_in_turn if cosine.is_cpu else spread_by_products
        return spread(cosine, one_class, aligned, of_sums, 2 * of_squares, ctx.soft), None, None, None


def sums_by_products(cosine: Tensor, one_class: Tensor, aligned: Tensor, soft: bool) -> tuple[Tensor, Tensor, Tensor]:
    """The sums, sums of squares and sums of masks of the cells."""
    masks = cells(one_class, aligned)
    of_squares = masks.square() if soft else masks
    products = _rows(masks) @ cosine.flatten(-2)[..., None], _rows(of_squares) @ cosine.square().flatten(-2)[..., None]
    sums, squares = (product.squeeze(-1).unflatten(-1, (2, 2)) for product in products)
    return sums, squares, masks.sum((-2, -1))


def spread_by_products(
    cosine: Tensor, one_class: Tensor, aligned: Tensor, level: Tensor, slope: Tensor, soft: bool
) -> Tensor:
    """The gradient of each entry: the `level` of its cell plus the entry times the cell's `slope`, both (2, 2)."""
    masks, rows = cells(one_class, aligned), [matrix.flatten(-2)[..., None, :] for matrix in (level, slope)]
    if soft:
        levels, slopes = rows[0] @ _rows(masks), rows[1] @ _rows(masks.square())
    else:
        levels, slopes = (torch.cat(rows, -2) @ _rows(masks)).split(1, -2)
    return torch.addcmul(levels.squeeze(-2), slopes.squeeze(-2), cosine.flatten(-2)).unflatten(-1, cosine.shape[-2:])


def _rows(masks: Tensor) -> Tensor:
    """One row for each cell, (4, entries)."""
    return masks.flatten(-4, -3).flatten(-2)


def sums_in_turn(cosine: Tensor, one_class: Tensor, aligned: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """As `sums_by_products`, in two matrices used again."""
    part = cosine * one_class
    near = part * aligned
    parts = [_sum(near), _sum(part.sub_(near))]
    torch.mul(cosine, one_class, out=part)
    torch.sub(cosine, part, out=part)
    torch.mul(part, aligned, out=near)
    parts += [_sum(near), _sum(part.sub_(near))]
    sums, squares = (torch.stack(values, -1).unflatten(-1, (2, 2)) for values in zip(*parts, strict=True))

    entries = cosine.shape[-2] * cosine.shape[-1]
    both = torch.linalg.vecdot(one_class.flatten(-2), aligned.flatten(-2))
    of_class, of_bias = one_class.sum((-2, -1)), aligned.sum((-2, -1))
    pairs = [both, of_class - both, of_bias - both, entries - of_class - of_bias + both]
    return sums, squares, torch.stack(pairs, -1).unflatten(-1, (2, 2))


def _sum(cell: Tensor) -> tuple[Tensor, Tensor]:
    return cell.sum((-2, -1)), torch.linalg.vector_norm(cell, dim=-1).square().sum(-1)


def spread_in_turn(
    cosine: Tensor, one_class: Tensor, aligned: Tensor, level: Tensor, slope: Tensor, soft: bool
) -> Tensor:
    """As `spread_by_products`."""
    apart = 1 - aligned
    levels = _spread(level, one_class, aligned, apart)
    if soft:
        aligned, apart = aligned.square(), apart.square()
    return add_product_(levels, _spread(slope, one_class, aligned, apart), cosine)


def _spread(value: Tensor, one_class: Tensor, near: Tensor, far: Tensor) -> Tensor:
    """The matrix that holds each cell's value times its weight."""
    values = value[..., None, None]
    positive_near, positive_far = values[..., 0, 0, :, :], values[..., 0, 1, :, :]
    negative_near, negative_far = values[..., 1, 0, :, :], values[..., 1, 1, :, :]
    matrix = add_product_(near * (positive_near - negative_near), far, positive_far - negative_far).mul_(one_class)
    return add_product_(add_product_(matrix, near, negative_near), far, negative_far)
