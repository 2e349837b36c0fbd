"""A sum over all (positive, negative) pairs of each row, a few rows at a time: memory does not grow with n cubed."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from study.losses.batched import BatchedFunction


def pair_softplus(scaled: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
    """sum over i in positive, j in negative of log(1 + e^(s_j - s_i)), for each row of `scaled`.

    Args:
        scaled: similarities over temperature, shape (n, n).
        positive, negative: disjoint boolean masks, shape (n, n).

    Returns:
        The sums, shape (n,).
    """
    total: Tensor = _PairSoftplus.apply(scaled, positive, negative)[0]
    return total


PAIRS = 2**24
"""Pairs that are worked on at a time elsewhere than on a CPU: 64 MiB in float32, all of a batch of 256."""


class _PairSoftplus(BatchedFunction):
    """Each row's sum and its gradient, which comes with the value."""

    @staticmethod
    def forward(scaled: Tensor, positive: Tensor, negative: Tensor) -> tuple[Tensor, Tensor]:
        total, gradient = _sums(*(matrix.flatten(0, -2) for matrix in (scaled, positive, negative)))
        return total.view(scaled.shape[:-1]), gradient.view(scaled.shape)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, ...], output: tuple[Tensor, Tensor]) -> None:
        ctx.save_for_backward(*inputs, output[1])
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx: Any, of_total: Tensor | None, of_gradient: Tensor | None) -> tuple[Tensor | None, None, None]:
        scaled, positive, negative, gradient = ctx.saved_tensors
        of_scaled = None if of_total is None else gradient * of_total[..., None]
        if of_gradient is not None:
            bend = _Bend.apply(scaled, positive, negative, of_gradient)
            of_scaled = bend if of_scaled is None else of_scaled + bend
        return of_scaled, None, None


class _Bend(BatchedFunction):
    """The second and each further derivative of each row's sum: the gradient's own along one direction or several."""

    @staticmethod
    def forward(scaled: Tensor, positive: Tensor, negative: Tensor, *directions: Tensor) -> Tensor:
        flat = [matrix.flatten(0, -2) for matrix in (scaled, positive, negative)]
        return _bends(*flat, [direction.flatten(0, -2) for direction in directions]).view(scaled.shape)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        """A derivative is the same in whichever order its directions are taken."""
        scaled, positive, negative, *directions = ctx.saved_tensors
        needs_scaled, _, _, *needed = ctx.needs_input_grad

        def along(*others: Tensor) -> Tensor:
            bend: Tensor = _Bend.apply(scaled, positive, negative, *others, gradient)
            return bend

        of_directions = [
            along(*directions[:place], *directions[place + 1 :]) if is_needed else None
            for place, is_needed in enumerate(needed)
        ]
        return along(*directions) if needs_scaled else None, None, None, *of_directions


# Operators of their own, so that torch.compile sees one node and not n iterations.
@torch.library.custom_op("study::pair_softplus", mutates_args=())
def _sums(scaled: Tensor, positive: Tensor, negative: Tensor) -> tuple[Tensor, Tensor]:
    if scaled.is_cpu:  # there reading the number of pairs back is free; it would wait for any other device
        rows = [picked_pairs(*row) for row in zip(scaled, positive, negative, strict=True)]
        totals, gradients = zip(*rows, strict=True)
        return torch.stack(totals), torch.stack(gradients)
    totals, gradients = zip(*(masked_pairs(*rows) for rows in _few_rows(scaled, positive, negative)), strict=True)
    return torch.cat(totals), torch.cat(gradients)


@torch.library.custom_op("study::pair_bend", mutates_args=())
def _bends(scaled: Tensor, positive: Tensor, negative: Tensor, directions: list[Tensor]) -> Tensor:
    return torch.cat([bend(*rows) for rows in _few_rows(scaled, positive, negative, *directions)])


def _few_rows(*matrices: Tensor) -> Iterator[tuple[Tensor, ...]]:
    """The same rows of each, so many that their pairs are at most `PAIRS`; on a CPU, whose cache is small, one."""
    columns = matrices[0].shape[-1]
    rows = 1 if matrices[0].is_cpu else max(PAIRS // columns**2, 1)
    return zip(*(matrix.split(rows) for matrix in matrices), strict=True)


@_sums.register_fake
def _(scaled: Tensor, positive: Tensor, negative: Tensor) -> tuple[Tensor, Tensor]:
    return scaled.new_empty(len(scaled)), torch.empty_like(scaled)


@_bends.register_fake
def _(scaled: Tensor, positive: Tensor, negative: Tensor, directions: list[Tensor]) -> Tensor:
    return torch.empty_like(scaled)


def picked_pairs(row: Tensor, positive: Tensor, negative: Tensor) -> tuple[Tensor, Tensor]:
    """The sum for one row and its gradient, over the row's pairs alone."""
    gap = row[negative] - row[positive, None]
    pull, gradient = gap.sigmoid(), torch.zeros_like(row)
    gradient[negative], gradient[positive] = pull.sum(0), -pull.sum(1)
    return -logsigmoid(-gap).sum(), gradient


def masked_pairs(rows: Tensor, positive: Tensor, negative: Tensor) -> tuple[Tensor, Tensor]:
    """The same for several rows, (R, n), over all n x n pairs: those that do not count are infinitely far apart."""
    gap = _gaps(rows, positive, negative)
    pull = gap.sigmoid()
    return -logsigmoid(-gap).sum((-2, -1)), pull.sum(-2) - pull.sum(-1)


def bend(rows: Tensor, positive: Tensor, negative: Tensor, *directions: Tensor) -> Tensor:
    """The derivative of each row's gradient along each of these directions in turn, over all n x n pairs.

    With p = 1 / (1 + e^-x), the k-th derivative of p by x is p (1 - p) Q_k(p), where Q_1 = 1 and
    Q_(k+1) = (1 - 2p) Q_k + p (1 - p) Q_k': its coefficient of p^m is m + 1 times that of Q_k less the one before.
    """
    pull, coefficients = _gaps(rows, positive, negative).sigmoid(), [1.0]
    for _ in directions[1:]:
        pairs = zip([*coefficients, 0.0], [0.0, *coefficients], strict=True)
        coefficients = [power * (here - before) for power, (here, before) in enumerate(pairs, 1)]
    bent = torch.zeros_like(pull)
    for coefficient in reversed(coefficients):
        bent = bent * pull + coefficient
    bent = bent * pull * (1 - pull)
    for direction in directions:
        bent = bent * (direction[..., None, :] - direction[..., :, None])
    return bent.sum(-2) - bent.sum(-1)


def _gaps(rows: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
    return rows.where(negative, -torch.inf)[..., None, :] - rows.where(positive, torch.inf)[..., :, None]
