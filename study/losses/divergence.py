"""Differences between the distances of bias-aligned and of bias-conflicting pairs (FairKL paper, section 3.1)."""

from collections.abc import Callable

import torch
from torch import Tensor

Difference = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]


def divergence(
    cosine: Tensor,
    pairs: Tensor,
    aligned: Tensor,
    variant: str,
    *,
    soft: bool,
    pooled: bool,
    min_count: int,
    floor: float,
) -> Tensor:
    """The variant's difference between aligned and conflicting pairs, averaged over anchors unless pooled.

    0 where too few pairs are there to compare.

    Args:
        cosine: cosines, shape (n, n).
        pairs: 1 for the pairs that take part, 0 for others, shape (n, n).
        aligned: 1 for the pairs that share the bias, 0 for others; soft: how much they share it. Shape (n, n).
        variant: a name of `fair_kl`, "reference" excepted.
        soft, pooled, min_count: as for `fair_kl`.
        floor: its variance_floor.
    """
    value = _value(cosine, variant, floor)
    if soft:
        sides = [(value * aligned, pairs), (value - value * aligned, pairs)]
    else:
        shared = pairs * aligned
        sides = [(value, shared), (value, pairs - shared)]
    (near, near_variance, near_count), (far, far_variance, far_count) = (_moments(*side, pooled) for side in sides)
    enough = (near_count >= min_count) & (far_count >= min_count)
    if variant not in ("moments", "mean", "mean_similarity"):
        near_variance, far_variance = near_variance.clamp(min=floor), far_variance.clamp(min=floor)
    difference = _DIFFERENCES[variant](near, near_variance, far, far_variance)
    return difference.where(enough, 0.0).sum() / enough.sum().clamp(min=1)


def _value(cosine: Tensor, variant: str, floor: float) -> Tensor:
    if variant == "mean_similarity":
        return cosine.abs()
    distance = 2 - 2 * cosine
    return distance.clamp(min=floor).log() if variant == "kl_lognormal" else distance


def _moments(value: Tensor, weight: Tensor, pooled: bool) -> tuple[Tensor, Tensor, Tensor]:
    """Mean, mean squared deviation (the mean subtracted first: exact also where the spread is small) and count."""
    dims = (0, 1) if pooled else (1,)
    count = weight.sum(dims, keepdim=True)
    mean = (value * weight).sum(dims, keepdim=True) / count.clamp(min=1)
    variance = ((value - mean).square() * weight).sum(dims, keepdim=True) / count.clamp(min=1)
    return mean, variance, count


def _kl(mean: Tensor, variance: Tensor, other_mean: Tensor, other_variance: Tensor) -> Tensor:
    ratio = variance / other_variance
    return ((mean - other_mean).square() / other_variance + ratio - ratio.log() - 1) / 2


def _kl_reverse(mean: Tensor, variance: Tensor, other_mean: Tensor, other_variance: Tensor) -> Tensor:
    return _kl(other_mean, other_variance, mean, variance)


def _jeffreys(mean: Tensor, variance: Tensor, other_mean: Tensor, other_variance: Tensor) -> Tensor:
    return _kl(mean, variance, other_mean, other_variance) + _kl_reverse(mean, variance, other_mean, other_variance)


def _mean(mean: Tensor, variance: Tensor, other_mean: Tensor, other_variance: Tensor) -> Tensor:
    return (mean - other_mean).square()


def _deviation(variance: Tensor) -> Tensor:
    return torch.where(variance > 0, variance.where(variance > 0, 1.0).sqrt(), 0.0)


def _both_moments(mean: Tensor, variance: Tensor, other_mean: Tensor, other_variance: Tensor) -> Tensor:
    return (mean - other_mean).square() + (_deviation(variance) - _deviation(other_variance)).square()


_DIFFERENCES: dict[str, Difference] = {
    "kl": _kl,
    "kl_reverse": _kl_reverse,
    "jeffreys": _jeffreys,
    "kl_lognormal": _kl,
    "moments": _both_moments,
    "mean": _mean,
    "mean_similarity": _mean,
}
