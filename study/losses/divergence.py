"""Differences between the distances of bias-aligned and of bias-conflicting pairs (FairKL paper, section 3.1)."""

from collections.abc import Callable

import torch
from torch import Tensor

from study.losses.cells import cells

Difference = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]


def divergence(
    cosine: Tensor,
    one_class: Tensor,
    aligned: Tensor,
    variant: str,
    *,
    soft: bool,
    pooled: bool,
    min_count: int,
    floor: float,
) -> Tensor:
    """The variant's difference between aligned and conflicting pairs, averaged over anchors unless pooled, shape (2,).

    First for pairs of one class, the row with itself left out, then for pairs of two. 0 where too few pairs are there
    to compare.

    Args:
        cosine: cosines, shape (n, n).
        one_class: 1 for pairs of one class, 0 for others, shape (n, n).
        aligned: 1 for the pairs that share the bias, 0 for others; soft: how much they share it. Shape (n, n).
        variant: a name of `fair_kl`, "reference" excepted.
        soft, pooled, min_count: as for `fair_kl`.
        floor: its variance_floor.
    """
    value = _value(cosine, variant, floor)
    if soft:
        near = value * aligned
        values, weights = torch.stack([near, value - near]), torch.stack([one_class, 1 - one_class])[:, None]
    else:
        values, weights = value, cells(one_class, aligned)
    weights[0].diagonal(0, -2, -1).zero_()
    mean, variance, count = _moments(values, weights, pooled)
    if variant not in ("moments", "mean", "mean_similarity"):
        variance = variance.clamp(min=floor)
    difference = _DIFFERENCES[variant](mean[:, 0], variance[:, 0], mean[:, 1], variance[:, 1])
    enough = (count >= min_count).all(1)
    return difference.where(enough, 0.0).sum(1) / enough.sum(1).clamp(min=1)


def _value(cosine: Tensor, variant: str, floor: float) -> Tensor:
    if variant == "mean_similarity":
        return cosine.abs()
    distance = torch.rsub(cosine, 2.0, alpha=2.0)
    return distance.clamp(min=floor).log() if variant == "kl_lognormal" else distance


def _moments(values: Tensor, weights: Tensor, pooled: bool) -> tuple[Tensor, Tensor, Tensor]:
    """Mean, mean squared deviation (the mean subtracted first: exact also where the spread is small) and count.

    Args:
        values: shape (n, n), or (2, n, n) where aligned and conflicting pairs have values of their own.
        weights: how much each counts, shape (2, 2, n, n) or (2, 1, n, n): pairs of one class and of two, and of these
            the aligned and the conflicting ones.

    Returns:
        Each of the shape (2, 2, 1), or (2, 2, n) of each anchor; the count (2, 1, ...) for weights of that shape.
    """
    dims = (-2, -1) if pooled else (-1,)
    count = weights.sum(dims, keepdim=True)
    some = count.clamp(min=1)
    mean = (values * weights).sum(dims, keepdim=True) / some
    variance = ((values - mean).square() * weights).sum(dims, keepdim=True) / some
    return mean.flatten(2), variance.flatten(2), count.flatten(2)


def _kl(mean: Tensor, variance: Tensor, other_mean: Tensor, other_variance: Tensor) -> Tensor:
    ratio = variance / other_variance
    return ((mean - other_mean).square() / other_variance + ratio - ratio.log() - 1) / 2


def _kl_reverse(mean: Tensor, variance: Tensor, other_mean: Tensor, other_variance: Tensor) -> Tensor:
    return _kl(other_mean, other_variance, mean, variance)


def _jeffreys(mean: Tensor, variance: Tensor, other_mean: Tensor, other_variance: Tensor) -> Tensor:
    return _kl(mean, variance, other_mean, other_variance) + _kl_reverse(mean, variance, other_mean, other_variance)


def _mean(mean: Tensor, variance: Tensor, other_mean: Tensor, other_variance: Tensor) -> Tensor:
    return (mean - other_mean).square()


def deviation(variance: Tensor) -> Tensor:
    """The root of a variance; one of 0 is lifted to what leaves the root's derivatives finite, its gradient is 0."""
    return variance.clamp(min=torch.finfo(variance.dtype).tiny ** 0.5).sqrt()


def _both_moments(mean: Tensor, variance: Tensor, other_mean: Tensor, other_variance: Tensor) -> Tensor:
    return (mean - other_mean).square() + (deviation(variance) - deviation(other_variance)).square()


_DIFFERENCES: dict[str, Difference] = {
    "kl": _kl,
    "kl_reverse": _kl_reverse,
    "jeffreys": _jeffreys,
    "kl_lognormal": _kl,
    "moments": _both_moments,
    "mean": _mean,
    "mean_similarity": _mean,
}
