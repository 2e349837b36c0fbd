"""Functions whose gradients are written by hand: a few passes over one matrix, kept for the gradient."""

import functools
import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

# Added to what is left out of a sum of exponentials: its exponential becomes 0, its own value is lost in rounding.
LOG_ZERO = -1e30


def refuse_second_derivative(backward: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a gradient of our own to refuse to be differentiated again: that derivative would be wrong.

    PyTorch's `once_differentiable` does not see it where what comes in is a constant.
    """

    @functools.wraps(backward)
    def of_constants(ctx: Any, *gradients: Tensor) -> Any:
        if torch.is_grad_enabled() and not torch.compiler.is_compiling():
            raise RuntimeError("the losses of study can be differentiated once: call without create_graph")
        return backward(ctx, *gradients)

    return of_constants


class GramMatrix(torch.autograd.Function):
    """The dot products of all rows (n, D), shape (n, n)."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor) -> Tensor:
        ctx.save_for_backward(rows)
        return rows @ rows.mT

    @staticmethod
    @refuse_second_derivative
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        (rows,) = ctx.saved_tensors
        both = gradient.mT.clone(memory_format=torch.contiguous_format).add_(gradient)
        return both @ rows


class RowLogSumExp(torch.autograd.Function):
    """The log-sum-exp of each row; its gradient is the softmax."""

    # In place on one new matrix, kept for the gradient: on a CPU a fresh matrix costs more than a pass over an old one.
    @staticmethod
    def forward(ctx: Any, similarity: Tensor, scale: float, drop: Tensor | None, views: int) -> Tensor:
        x = similarity * scale
        if drop is None:
            samples = len(x) // views
            x.view(views, samples, views, samples).diagonal(0, 1, 3).fill_(LOG_ZERO)
        else:
            x.add_(drop, alpha=LOG_ZERO)
        log_sum = softmax_rows_and_log_sum_(x)
        ctx.save_for_backward(log_sum, x)
        ctx.scale = scale
        return log_sum

    @staticmethod
    @refuse_second_derivative
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None, None]:
        log_sum, probability = ctx.saved_tensors
        factor = torch.where(log_sum == -torch.inf, 0.0, gradient * ctx.scale)
        return probability * factor[:, None], None, None, None


def softmax_rows_and_log_sum_(x: Tensor) -> Tensor:
    """Turn x into the softmax of its rows, and return their log-sum-exp: -inf for a row of NOTHING, nan with a nan."""
    largest = x.amax(-1)
    torch.softmax(x, -1, out=x)
    return torch.where(largest <= LOG_ZERO / 2, -torch.inf, largest - x.amax(-1).log())


def pair_softplus_row_sums(scaled: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
    """Sum log(1 + e^(s_j - s_i)) over i in positive and j in negative, for each row of `scaled`.

    A few rows at a time, so that memory does not grow with n cubed.

    Args:
        scaled: similarities over temperature, shape (n, n).
        positive, negative: disjoint boolean masks, shape (n, n).

    Returns:
        The sums, shape (n,).
    """
    return _PairSoftplus.apply(scaled, positive, negative)


PAIRS_PER_CHUNK = 2**24
"""Pairs per chunk on devices other than a CPU: 64 MiB in float32, all of a batch of 256."""


class _PairSoftplus(torch.autograd.Function):
    """Each row's sum; its gradient comes with the value."""

    @staticmethod
    def forward(ctx: Any, scaled: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        total, gradient = _pair_softplus_sums(scaled, positive, negative)
        ctx.save_for_backward(gradient)
        return total

    @staticmethod
    @refuse_second_derivative
    def backward(ctx: Any, of_total: Tensor) -> tuple[Tensor, None, None]:
        (gradient,) = ctx.saved_tensors
        return gradient * of_total[:, None], None, None


# An operator of its own, so that torch.compile sees one node and not n iterations.
@torch.library.custom_op("study::pair_softplus", mutates_args=())
def _pair_softplus_sums(scaled: Tensor, positive: Tensor, negative: Tensor) -> tuple[Tensor, Tensor]:
    if scaled.is_cpu:  # there reading the number of pairs back is free; it would wait for any other device
        rows = [pair_softplus_of_row(*row) for row in zip(scaled, positive, negative, strict=True)]
        totals, gradients = zip(*rows, strict=True)
        return torch.stack(totals), torch.stack(gradients)
    few = max(PAIRS_PER_CHUNK // scaled.shape[-1] ** 2, 1)  # rows that have at most `PAIRS_PER_CHUNK` pairs
    parts = zip(scaled.split(few), positive.split(few), negative.split(few), strict=True)
    totals, gradients = zip(*(pair_softplus_of_masked_rows(*rows) for rows in parts), strict=True)
    return torch.cat(totals), torch.cat(gradients)


@_pair_softplus_sums.register_fake
def _(scaled: Tensor, positive: Tensor, negative: Tensor) -> tuple[Tensor, Tensor]:
    return scaled.new_empty(len(scaled)), torch.empty_like(scaled)


def pair_softplus_of_row(row: Tensor, positive: Tensor, negative: Tensor) -> tuple[Tensor, Tensor]:
    """Compute the sum for one row and its gradient, over the row's pairs alone."""
    gap = row[negative] - row[positive, None]
    pull, gradient = gap.sigmoid(), torch.zeros_like(row)
    gradient[negative], gradient[positive] = pull.sum(0), -pull.sum(1)
    return -logsigmoid(-gap).sum(), gradient


def pair_softplus_of_masked_rows(rows: Tensor, positive: Tensor, negative: Tensor) -> tuple[Tensor, Tensor]:
    """Compute sums and gradients of rows, (R, n), over all n x n pairs; excluded ones are infinitely far apart."""
    gap = rows.where(negative, -torch.inf)[:, None, :] - rows.where(positive, torch.inf)[:, :, None]
    pull = gap.sigmoid()
    return -logsigmoid(-gap).sum((-2, -1)), pull.sum(-2) - pull.sum(-1)


def margin_loss_sum(cosine: Tensor, weight: Tensor, scale: float, epsilon: float, guard: float) -> Tensor:
    """Sum weight_i * log(e^-epsilon + e^-s_i * sum over negatives j of e^s_j) over rows and their positives i.

    s is scale * cosine. This is form "c" of eps-SupInfoNCE, value and gradient in a few passes over the matrix.

    Args:
        cosine: shape (n, n).
        weight: those of each row's positives, 0 for its negatives and on the diagonal, shape (n, n).
        scale: one over the temperature.
        epsilon: margin.
        guard: added to the negatives' sum, as a share of the row's largest exponential, a constant for the gradient.

    Returns:
        A scalar.
    """
    added = None if guard == 0 else cosine.detach().amax(-1) * scale + math.log(guard)
    return _MarginLossSum.apply(cosine, weight, scale, epsilon, added)


class _MarginLossSum(torch.autograd.Function):
    """With S the log-sum of the negatives and v = s_i - S - epsilon, the sum of -weight * (logsigmoid(v) + epsilon).

    Kept for the gradient: the softmax of the negatives, the share that they have of S beside what is added, and
    weight * sigmoid(-v). A row without negatives has an S far below everything, so that its terms and slopes are 0.
    """

    @staticmethod
    def forward(ctx: Any, cosine: Tensor, weight: Tensor, scale: float, epsilon: float, added: Tensor | None) -> Tensor:
        negatives = (cosine * scale).add_(weight, alpha=LOG_ZERO)
        negatives.diagonal().fill_(LOG_ZERO)
        log_sum = softmax_rows_and_log_sum_(negatives)
        share = torch.ones_like(log_sum)
        if added is not None:
            everything = torch.logaddexp(log_sum, added)
            share, log_sum = (log_sum - everything).exp_(), everything
        gap = torch.add(-(log_sum + epsilon)[:, None], cosine, alpha=scale)
        term, buffer = torch.ops.aten.log_sigmoid_forward(gap)
        slope = torch.ops.aten.log_sigmoid_backward(weight, gap, buffer)
        ctx.save_for_backward(negatives, share, slope)
        ctx.scale = scale
        return -term.add_(epsilon).mul_(weight).sum((-2, -1))

    @staticmethod
    @refuse_second_derivative
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None, None, None]:
        negatives, share, slope = ctx.saved_tensors
        of_log_sum = share * (slope.sum(-1) * gradient)
        of_cosine = negatives * (of_log_sum * ctx.scale)[:, None]
        return of_cosine.addcmul_(slope, -gradient * ctx.scale), None, None, None, None


def pair_cell_masks(one_class: Tensor, aligned: Tensor) -> Tensor:
    """Return how much each pair belongs to each of four cells, a constant, shape (2, 2, n, n).

    The first index is 0 for pairs of one class and 1 for pairs of two, the second 0 for aligned and 1 for conflicting.

    Args:
        one_class: 1 for pairs of one class, 0 for others, shape (n, n).
        aligned: 1 for pairs that share the bias, 0 for others; soft: how much they share it. Shape (n, n).
    """
    masks = one_class.new_empty(2, 2, *one_class.shape)
    with torch.no_grad():
        torch.mul(one_class, aligned, out=masks[0, 0])
        torch.sub(one_class, masks[0, 0], out=masks[0, 1])
        torch.sub(aligned, masks[0, 0], out=masks[1, 0])
        torch.sub(1 - one_class, masks[1, 0], out=masks[1, 1])
    return masks


class PairCellSums(torch.autograd.Function):
    """The sum of each cell's entries, that of their squares, and that of its masks without a gradient, all (2, 2).

    Computed in two ways, which `tests/losses/test_limits.py` compares: on a device by products of matrices, a few
    launches; on a CPU, where fresh memory costs more than a pass over an old matrix, one cell after the other.
    """

    @staticmethod
    def forward(ctx: Any, cosine: Tensor, one_class: Tensor, aligned: Tensor, soft: bool) -> tuple[Tensor, ...]:
        ctx.save_for_backward(cosine, one_class, aligned)
        ctx.soft = soft
        if cosine.is_cpu:
            sums, squares, pairs = cell_sums_one_by_one(cosine, one_class, aligned)
        else:
            sums, squares, pairs = cell_sums_by_matmul(cosine, one_class, aligned, soft)
        ctx.mark_non_differentiable(pairs)
        return sums, squares, pairs

    @staticmethod
    @refuse_second_derivative
    def backward(ctx: Any, of_sums: Tensor, of_squares: Tensor, _: None) -> tuple[Tensor | None, ...]:
        cosine, one_class, aligned = ctx.saved_tensors
        spread = entry_gradients_one_by_one if cosine.is_cpu else entry_gradients_by_matmul
        return spread(cosine, one_class, aligned, of_sums, 2 * of_squares, ctx.soft), None, None, None


def cell_sums_by_matmul(
    cosine: Tensor, one_class: Tensor, aligned: Tensor, soft: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the sums, sums of squares and sums of masks of the cells."""
    masks = pair_cell_masks(one_class, aligned)
    of_squares = masks.square() if soft else masks
    column = cosine.flatten(-2)[..., None]
    products = _flatten_masks(masks) @ column, _flatten_masks(of_squares) @ column.square()
    sums, squares = (product.squeeze(-1).unflatten(-1, (2, 2)) for product in products)
    return sums, squares, masks.sum((-2, -1))


def entry_gradients_by_matmul(
    cosine: Tensor, one_class: Tensor, aligned: Tensor, level: Tensor, slope: Tensor, soft: bool
) -> Tensor:
    """Return the gradient of each entry: its cell's `level` plus the entry times its cell's `slope`, both (2, 2)."""
    masks, rows = pair_cell_masks(one_class, aligned), [matrix.flatten(-2)[..., None, :] for matrix in (level, slope)]
    if soft:
        levels, slopes = rows[0] @ _flatten_masks(masks), rows[1] @ _flatten_masks(masks.square())
    else:
        levels, slopes = (torch.cat(rows, -2) @ _flatten_masks(masks)).split(1, -2)
    return torch.addcmul(levels.squeeze(-2), slopes.squeeze(-2), cosine.flatten(-2)).unflatten(-1, cosine.shape[-2:])


def _flatten_masks(masks: Tensor) -> Tensor:
    """Flatten masks to one row for each cell, (4, entries)."""
    return masks.flatten(-4, -3).flatten(-2)


def cell_sums_one_by_one(cosine: Tensor, one_class: Tensor, aligned: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return what `cell_sums_by_matmul` does, in two matrices used again."""
    part = cosine * one_class
    near = part * aligned
    parts = [_sums_of_cell(near), _sums_of_cell(part.sub_(near))]
    torch.mul(cosine, one_class, out=part)
    torch.sub(cosine, part, out=part)
    torch.mul(part, aligned, out=near)
    parts += [_sums_of_cell(near), _sums_of_cell(part.sub_(near))]
    sums, squares = (torch.stack(values, -1).unflatten(-1, (2, 2)) for values in zip(*parts, strict=True))

    entries = cosine.shape[-2] * cosine.shape[-1]
    both = torch.linalg.vecdot(one_class.flatten(-2), aligned.flatten(-2))
    of_class, of_bias = one_class.sum((-2, -1)), aligned.sum((-2, -1))
    pairs = [both, of_class - both, of_bias - both, entries - of_class - of_bias + both]
    return sums, squares, torch.stack(pairs, -1).unflatten(-1, (2, 2))


def _sums_of_cell(cell: Tensor) -> tuple[Tensor, Tensor]:
    return cell.sum((-2, -1)), torch.linalg.vector_norm(cell, dim=-1).square().sum(-1)


def entry_gradients_one_by_one(
    cosine: Tensor, one_class: Tensor, aligned: Tensor, level: Tensor, slope: Tensor, soft: bool
) -> Tensor:
    """Return what `entry_gradients_by_matmul` does, in fewer new matrices."""
    apart = 1 - aligned
    levels = _broadcast_cell_values(level, one_class, aligned, apart)
    if soft:
        aligned, apart = aligned.square(), apart.square()
    return levels.addcmul_(_broadcast_cell_values(slope, one_class, aligned, apart), cosine)


def _broadcast_cell_values(value: Tensor, one_class: Tensor, near: Tensor, far: Tensor) -> Tensor:
    """Build the matrix that holds each cell's value times its weight."""
    (positive_near, positive_far), (negative_near, negative_far) = value
    matrix = (near * (positive_near - negative_near)).addcmul_(far, positive_far - negative_far).mul_(one_class)
    return matrix.addcmul_(near, negative_near).addcmul_(far, negative_far)
