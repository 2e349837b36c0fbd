"""eps-SupInfoNCE (FairKL paper: Barbano et al., "Unbiased supervised contrastive learning")."""

from collections.abc import Iterator
from typing import Annotated, Any, Literal

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid
from typing_extensions import Doc

from study.knobs import Searched
from study.losses.batched import BatchedFunction, Scalar, add_product_, is_zero, log, plus
from study.losses.catalogue import loss
from study.losses.pairs import (
    NOTHING,
    cosines,
    log_sum_exp,
    rescaled,
    same,
    sample_labels,
    softmax_,
    softplus,
    without_self,
    without_self_,
)
from study.losses.ranges import BaseTemperature, Guard, Margin, SupervisedTemperature

# A sum over all (positive, negative) pairs of each row, a few rows at a time: memory does not grow with n cubed.


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


# The rows of eps-SupInfoNCE's form "c", value and gradient in a few passes over the matrix.


def margin_rows(cosine: Tensor, weight: Tensor, scale: Scalar, epsilon: Scalar, guard: Scalar) -> Tensor:
    """sum over rows and their positives i of weight_i * log(e^-epsilon + e^-s_i * sum over negatives j of e^s_j).

    s is scale * cosine.

    Args:
        cosine: shape (n, n).
        weight: those of each row's positives, 0 for its negatives and on the diagonal, shape (n, n).
        scale: one over the temperature.
        epsilon: margin.
        guard: added to the negatives' sum, as a share of the row's largest exponential, a constant for the gradient.

    Returns:
        A scalar.
    """
    added = None if is_zero(guard) else cosine.detach().amax(-1) * scale + log(guard)
    if isinstance(scale, Tensor):
        cosine, scale = cosine * scale, 1.0
    value: Tensor = _MarginRows.apply(cosine, weight, scale, epsilon, added)[0]
    return value


class _MarginRows(BatchedFunction):
    """With S the log-sum of the negatives and v = s_i - S - epsilon, the sum of -weight * (logsigmoid(v) + epsilon).

    Further outputs: the softmax of the negatives, the share that they have of S beside what is added, and
    weight * sigmoid(-v). A row without negatives has an S far below everything, so that its terms and slopes are 0.
    """

    @staticmethod
    def forward(
        cosine: Tensor, weight: Tensor, scale: float, epsilon: Scalar, added: Tensor | None
    ) -> tuple[Tensor, ...]:
        negatives = (cosine * scale).add_(weight, alpha=NOTHING)
        negatives.diagonal(0, -2, -1).fill_(NOTHING)
        log_sum = softmax_(negatives)
        share = torch.ones_like(log_sum)
        if added is not None:
            everything = torch.logaddexp(log_sum, added)
            share, log_sum = (log_sum - everything).exp_(), everything
        if isinstance(epsilon, Tensor):
            epsilon = epsilon[..., None]
        gap = torch.add(-(log_sum + epsilon)[..., None], cosine, alpha=scale)
        term, buffer = torch.ops.aten.log_sigmoid_forward(gap)
        slope = torch.ops.aten.log_sigmoid_backward(weight, gap, buffer)
        term = term.add_(epsilon[..., None] if isinstance(epsilon, Tensor) else epsilon).mul_(weight)
        return -term.sum((-2, -1)), negatives, share, slope

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        ctx.save_for_backward(inputs[1], *output[1:])
        ctx.scale = inputs[2]
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(
        ctx: Any,
        of_value: Tensor | None,
        of_negatives: Tensor | None,
        of_share: Tensor | None,
        of_slope: Tensor | None,
    ) -> tuple[Tensor | None, ...]:
        weight, negatives, share, slope = ctx.saved_tensors
        pull = torch.zeros_like(share[..., :1]) if of_value is None else of_value[..., None]
        of_level = slope.sum(-1) * pull
        of_epsilon = None
        if ctx.needs_input_grad[3]:
            of_epsilon = of_level.sum(-1) - weight.sum((-2, -1)) * pull[..., 0]
        further = None
        if of_slope is not None:  # the derivative of weight * p by v is that of p = sigmoid(-v): -weight * p (1 - p)
            further = of_slope * slope * (slope / weight.where(weight > 0, 1.0) - 1)
            of_level = of_level - further.sum(-1)
            if of_epsilon is not None:
                of_epsilon = of_epsilon - further.sum((-2, -1))
        of_log_sum = share * of_level
        of_added = (1 - share) * of_level if ctx.needs_input_grad[4] else None
        if of_share is not None:
            moved = of_share * share * (1 - share)
            of_log_sum = of_log_sum + moved
            of_added = None if of_added is None else of_added - moved
        if of_negatives is not None:
            weighted = of_negatives * negatives
            of_log_sum = of_log_sum - weighted.sum(-1)
            further = weighted if further is None else further + weighted
        of_cosine = negatives * (of_log_sum * ctx.scale)[..., None]
        of_cosine = add_product_(of_cosine, slope, (-pull * ctx.scale)[..., None])
        if further is not None:
            of_cosine = of_cosine + further * ctx.scale
        return of_cosine, None, None, of_epsilon, of_added


@loss
def eps_sup_info_nce(
    views: Tensor,
    *,
    target: Tensor | None = None,
    similarity: Tensor | None = None,
    temperature: SupervisedTemperature = 0.1,
    base_temperature: BaseTemperature = None,
    epsilon: Annotated[Margin, Searched(0.0, 0.5, paper=(0.5, 0.25))] = 0.0,
    form: Annotated[
        Literal["a", "b", "c", "d"], Doc("which of Eq. 17's extensions to several positives; c is the paper's loss")
    ] = "c",
    reduction: Annotated[
        Literal["mean", "sum"],
        Doc("over the positives, in form c: mean, as in the released code, or sum, as Eq. 4 is printed"),
    ] = "mean",
    guard: Annotated[
        Guard, Doc("added to the denominator, as a share of the row's largest exponential; form c only")
    ] = 0.0,
) -> Tensor:
    """eps-SupInfoNCE (FairKL paper Eq. 4 and, for the other forms, Eq. 17), mean over rows.

    With s = cosine / temperature and, for an anchor, positives i and negatives j:
    a: log(e^-eps + sum_ij e^(s_j - s_i)); b: sum_j log(e^-eps + sum_i e^(s_j - s_i));
    c: mean_i log(e^-eps + sum_j e^(s_j - s_i)); d: sum_ij log(e^-eps + e^(s_j - s_i)).
    A row without positives counts 0 and stays in the mean. Form "d" takes time V*B times that of the others.
    The released code adds 1e-6 to the denominator after subtracting the row's maximum: `guard=1e-6`. It takes the mean
    over positives where Eq. 4 as printed has the sum: `reduction="sum"`.

    Args:
        views: unit embeddings, shape (V, B, D).
        target: classes, shape (B,); None: a sample's positives are its other views.
        similarity: `gram(views)`, if the caller has it.

    Returns:
        The loss, a scalar.
    """
    cosine, scale = cosines(views, similarity), 1 / temperature
    same_label = same(sample_labels(views, target), views)
    positive = without_self_(same_label) if form == "c" else without_self(same_label)
    positives = positive.sum(-1)
    if form == "c":
        share = positive.div_(positives.clamp(min=1)[:, None]) if reduction == "mean" else positive
        return rescaled(margin_rows(cosine, share, scale, epsilon, guard) / len(cosine), temperature, base_temperature)
    if form == "d":
        apart = 1 - same_label
        per_row = pair_softplus(plus(cosine * scale, apart, epsilon), positive > 0, apart > 0)
        per_row = per_row - epsilon * positives * (len(cosine) - 1 - positives)
    else:
        attraction = log_sum_exp(cosine, -scale, drop=1 - positive) + epsilon
        if form == "a":
            per_row = softplus(log_sum_exp(cosine, scale, drop=same_label) + attraction) - epsilon
        else:
            gap = plus(-attraction[:, None], cosine, -scale)
            per_row = torch.linalg.vecdot(-logsigmoid(gap) - epsilon, 1 - same_label)
        per_row = per_row.where(positives > 0, 0.0)
    return rescaled(per_row.mean(), temperature, base_temperature)
