"""FairKL as released: its two terms, value and gradient in a few passes over the matrix."""

from typing import Any

import torch
from torch import Tensor

from study.losses.batched import BatchedFunction, add_product_
from study.losses.scalars import Scalar


def released_terms(cosine: Tensor, positive: Tensor, aligned: Tensor, *, soft: bool, kld: Scalar) -> Tensor:
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
    terms: Tensor = _Terms.apply(cosine, positive, aligned, pairs.clamp(min=1).view(2, 2), kld, soft)[0]
    return terms


class _Terms(BatchedFunction):
    """The terms, the sums and sums of squares of the cells; and, without a gradient, their means and deviations."""

    # Weights are applied by multiplication and matrices are used again: `where`, and fresh memory, take several times
    # as long on a CPU. In the small tensors rows are pairs of one class and of two, columns aligned and conflicting.
    @staticmethod
    def forward(
        cosine: Tensor, positive: Tensor, aligned: Tensor, pairs: Tensor, kld: Scalar, soft: bool
    ) -> tuple[Tensor, ...]:
        part = cosine * positive
        near = part * aligned
        cells = [_sums(near), _sums(part.sub_(near))]
        torch.mul(cosine, positive, out=part)
        torch.sub(cosine, part, out=part)
        torch.mul(part, aligned, out=near)
        cells += [_sums(near), _sums(part.sub_(near))]
        sums, squares = (torch.stack(values, -1).unflatten(-1, (2, 2)) for values in zip(*cells, strict=True))

        mean, deviation = _moments(sums, squares, pairs, cosine)
        mean_gap, deviation_gap = mean[..., 0] - mean[..., 1], deviation[..., 0] - deviation[..., 1]
        terms = mean_gap.square() + _column(kld) * deviation_gap.square()
        return terms + torch.stack([-mean[..., 0, 1], mean[..., 1, 0]], -1), sums, squares, mean, deviation

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        cosine, positive, aligned, pairs, kld, ctx.soft = inputs
        ctx.kld = None if isinstance(kld, Tensor) else kld
        further = [kld] if isinstance(kld, Tensor) else []
        ctx.save_for_backward(cosine, positive, aligned, pairs, *output[1:], *further)
        ctx.mark_non_differentiable(*output[3:])
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(
        ctx: Any, of_terms: Tensor | None, of_sums: Tensor | None, of_squares: Tensor | None, *_: None
    ) -> tuple[Tensor | None, ...]:
        cosine, positive, aligned, pairs, sums, squares, mean, deviation, *further = ctx.saved_tensors
        kld = further[0] if further else ctx.kld
        if torch.is_grad_enabled():
            mean, deviation = _moments(sums, squares, pairs, cosine)
        level = torch.zeros_like(sums) if of_sums is None else of_sums
        slope = torch.zeros_like(sums) if of_squares is None else 2 * of_squares
        of_kld = None
        if of_terms is not None:
            gap = 2 * (mean[..., 0] - mean[..., 1])
            of_mean = torch.stack([gap, -gap], -1)
            of_mean[..., 0, 1] -= 1
            of_mean[..., 1, 0] += 1
            gap = deviation[..., 0] - deviation[..., 1]
            if ctx.needs_input_grad[4]:
                of_kld = (of_terms * gap.square()).sum(-1)
            entries, some = _entries(cosine), ~(deviation <= 0)
            gap = gap * of_terms * _column(kld) * (2 / max(entries - 1, 1))
            of_variance = torch.stack([gap, -gap], -1).where(some, 0.0) / deviation.where(some, 1.0)
            slope = slope + of_variance
            level = level + of_mean * of_terms[..., None] / pairs - of_variance * sums / entries

        apart = 1 - aligned
        of_cosine = _spread(level, positive, aligned, apart)
        if ctx.soft:
            aligned, apart = aligned.square(), apart.square()
        of_cosine = add_product_(of_cosine, _spread(slope, positive, aligned, apart), cosine)
        return of_cosine, None, None, None, of_kld, None


def _column(value: Scalar) -> Scalar:
    return value[..., None] if isinstance(value, Tensor) else value


def _entries(cosine: Tensor) -> int:
    return cosine.shape[-2] * cosine.shape[-1]


def _sums(cell: Tensor) -> tuple[Tensor, Tensor]:
    return cell.sum((-2, -1)), torch.linalg.vector_norm(cell, dim=-1).square().sum(-1)


def _moments(sums: Tensor, squares: Tensor, pairs: Tensor, cosine: Tensor) -> tuple[Tensor, Tensor]:
    """Means and deviations of the cells; the derivative of a deviation that is 0 is 0."""
    entries = _entries(cosine)
    variance = (squares - sums.square() / entries) / max(entries - 1, 1)
    some = ~(variance <= 0)  # a nan stays one
    return sums / pairs, variance.where(some, 1.0).sqrt().where(some, 0.0)


def _spread(value: Tensor, positive: Tensor, near: Tensor, far: Tensor) -> Tensor:
    """The matrix that holds each cell's value times its weight."""
    values = value[..., None, None]
    positive_near, positive_far = values[..., 0, 0, :, :], values[..., 0, 1, :, :]
    negative_near, negative_far = values[..., 1, 0, :, :], values[..., 1, 1, :, :]
    matrix = add_product_(near * (positive_near - negative_near), far, positive_far - negative_far).mul_(positive)
    return add_product_(add_product_(matrix, near, negative_near), far, negative_far)
