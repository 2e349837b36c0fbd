"""FairKL, the debiasing regulariser (FairKL paper: Barbano et al., "Unbiased supervised contrastive learning")."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from study.losses.hyperparameter_types import NonNegativeWeight, PositiveCount, PositiveNumber
from study.losses.lazy_torch import functional, torch
from study.losses.loss_catalogue import regulariser
from study.losses.pairs import cosine_matrix, same_label_mask

if TYPE_CHECKING:
    from torch import Tensor

VariantName = Literal["reference", "kl", "kl_reverse", "jeffreys", "kl_lognormal", "moments", "mean", "mean_similarity"]


def aligned_conflicting_divergence(
    cosine: Tensor,
    one_class: Tensor,
    aligned: Tensor,
    variant: VariantName,
    *,
    soft: bool,
    pooled: bool,
    min_count: int,
    floor: float,
) -> Tensor:
    """Compute the variant's difference of aligned and conflicting pairs, averaged over anchors or pooled, (2,).

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
    from study.losses.own_gradients import pair_cell_masks

    value = _pair_values(cosine, variant, floor)
    if soft:
        near = value * aligned
        values, weights = torch.stack([near, value - near]), torch.stack([one_class, 1 - one_class])[:, None]
    else:
        values, weights = value, pair_cell_masks(one_class, aligned)
    weights[0].diagonal(0, -2, -1).zero_()
    mean, variance, count = _moments_of_pairs(values, weights, pooled)
    if variant not in ("moments", "mean", "mean_similarity"):
        variance = variance.clamp(min=floor)
    difference = _difference_of_moments(variant, (mean[:, 0], variance[:, 0]), (mean[:, 1], variance[:, 1]))
    enough = (count >= min_count).all(1)
    return difference.where(enough, 0.0).sum(1) / enough.sum(1).clamp(min=1)


def _pair_values(cosine: Tensor, variant: VariantName, floor: float) -> Tensor:
    if variant == "mean_similarity":
        return cosine.abs()
    distance = torch.rsub(cosine, 2.0, alpha=2.0)
    return distance.clamp(min=floor).log() if variant == "kl_lognormal" else distance


def _moments_of_pairs(values: Tensor, weights: Tensor, pooled: bool) -> tuple[Tensor, Tensor, Tensor]:
    """Return mean, mean squared deviation and count; the mean is subtracted first, as small spreads need it.

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


def _difference_of_moments(variant: VariantName, one: tuple[Tensor, Tensor], other: tuple[Tensor, Tensor]) -> Tensor:
    """Return by how much two kinds of pairs differ, each given by mean and variance."""
    if variant in ("kl", "kl_lognormal"):
        return _kl_of_gaussians(*one, *other)
    if variant == "kl_reverse":
        return _kl_of_gaussians(*other, *one)
    if variant == "jeffreys":
        return _kl_of_gaussians(*one, *other) + _kl_of_gaussians(*other, *one)
    of_means = (one[0] - other[0]).square()
    if variant != "moments":
        return of_means
    deviation, other_deviation = (differentiable_standard_deviation(variance) for _, variance in (one, other))
    return of_means + (deviation - other_deviation).square()


def _kl_of_gaussians(mean: Tensor, variance: Tensor, other_mean: Tensor, other_variance: Tensor) -> Tensor:
    ratio = variance / other_variance
    return ((mean - other_mean).square() / other_variance + ratio - ratio.log() - 1) / 2


def differentiable_standard_deviation(variance: Tensor) -> Tensor:
    """Take the root of a variance; 0 is lifted so that the root's derivatives stay finite, and its gradient is 0."""
    return variance.clamp(min=torch.finfo(variance.dtype).tiny ** 0.5).sqrt()


def released_fair_kl_terms(
    cosine: Tensor, one_class: Tensor, aligned: Tensor, *, soft: bool, kld: float
) -> tuple[Tensor, Tensor]:
    """Compute FairKL as released: its terms for pairs of one class and for pairs of two, scalars.

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
    from study.losses.own_gradients import PairCellSums

    entries = cosine.numel()
    sums, squares, pairs = PairCellSums.apply(cosine, one_class, aligned, soft)
    if soft:
        pairs = pairs.sum(-1, keepdim=True)
    mean = sums / pairs.clamp(min=1)
    variance = torch.sub(squares, sums.square(), alpha=1 / entries) / max(entries - 1, 1)
    aligned_side, conflicting_side = torch.stack([mean, differentiable_standard_deviation(variance)]).unbind(-1)
    of_means, of_deviations = (aligned_side - conflicting_side).square().unbind(0)
    positive_term, negative_term = (of_means + kld * of_deviations).unbind(0)
    _, conflicting_positives, aligned_negatives, _ = mean.flatten().unbind(0)
    return positive_term - conflicting_positives, negative_term + aligned_negatives


@regulariser
def fair_kl(
    views: Tensor,
    *,
    target: Tensor,
    bias: Tensor | None = None,
    bias_features: Tensor | None = None,
    similarity: Tensor | None = None,
    variant: VariantName = "reference",
    pooled: bool = True,
    positive_weight: NonNegativeWeight = 1.0,
    negative_weight: NonNegativeWeight = 1.0,
    kld: NonNegativeWeight = 1.0,
    min_count: PositiveCount = 2,
    variance_floor: PositiveNumber = 1e-3,
) -> Tensor:
    """Measure how much the similarity of pairs depends on whether they share the bias, for one class and for two.

    "reference" is the released function, from which the published figures come; it is not Eq. 10. Over cosines, the
    diagonal included: squared differences of the means of aligned and conflicting pairs, `kld` times those of their
    deviations (each over the full matrix, entries outside its cell zero), minus the mean of the conflicting positives,
    plus that of the aligned negatives. An empty cell counts as zeros.

    The other variants follow section 3.1 on squared distances, the anchor itself left out: "kl" is Eq. 10,
    D(aligned || conflicting); "kl_reverse" exchanges the two; "jeffreys" is their sum; "kl_lognormal" is Eq. 10 on the
    logarithms of the distances; "moments" the squared differences of means and deviations; "mean" that of the means
    (Eq. 9), and "mean_similarity" the same with |cosine| (Eq. 9, right).

    With `bias_features` the bias is soft (appendix B.2.4): each pair counts as aligned with its value times
    b = cosine of the two samples' bias features, and as conflicting with its value times 1 - b. Means are over the
    pairs of the term; the print divides by the batch size.

    Args:
        views: unit embeddings, shape (V, B, D).
        target: classes, shape (B,).
        bias: bias classes, shape (B,).
        bias_features: a bias-capturing model's features, shape (B, K); instead of `bias`.
        similarity: `gram_matrix(views)`, if the caller has it.
        variant: reference: the released function, of the published figures; kl: Eq. 10; kl_reverse: its sides
            exchanged; jeffreys: the sum of both; kl_lognormal: Eq. 10 on logarithms; moments: means and deviations;
            mean, mean_similarity: Eq. 9.
        pooled: one comparison over all pairs of the batch; false: the mean of one per anchor. Not for variant
            reference.
        positive_weight: weight of the term for pairs of one class (footnote 2, Eq. 28).
        negative_weight: weight of the term for pairs of two classes (footnote 2, Eq. 28).
        kld: weight of the deviations in variant reference.
        min_count: a comparison with fewer aligned or fewer conflicting pairs is left out; not for variant reference.
        variance_floor: smallest variance, or squared distance under the logarithm.

    Returns:
        The regulariser, a scalar.

    Raises:
        ValueError: not exactly one of `bias` and `bias_features` is given.
    """
    cosine = cosine_matrix(views, similarity)
    if bias is not None and bias_features is None:
        aligned = same_label_mask(bias, views)
    elif bias_features is not None and bias is None:
        features = functional.normalize(bias_features, dim=-1).to(cosine.dtype)
        aligned = (features @ features.T).repeat(len(views), len(views))
    else:
        raise ValueError("fair_kl needs either bias (classes) or bias_features (soft), and not both")
    soft, one_class = bias is None, same_label_mask(target, views)
    if variant == "reference":
        positive_term, negative_term = released_fair_kl_terms(cosine, one_class, aligned, soft=soft, kld=kld)
    else:
        terms = aligned_conflicting_divergence(
            cosine, one_class, aligned, variant, soft=soft, pooled=pooled, min_count=min_count, floor=variance_floor
        )
        positive_term, negative_term = terms.unbind()
    return positive_weight * positive_term + negative_weight * negative_term
