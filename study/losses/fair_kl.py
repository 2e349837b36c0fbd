"""FairKL, the debiasing regulariser (FairKL paper: Barbano et al., "Unbiased supervised contrastive learning")."""

from typing import Literal

from torch import Tensor
from torch.nn.functional import normalize

from study.losses.catalogue import regulariser
from study.losses.divergence import divergence
from study.losses.groups import same, without_self
from study.losses.ranges import Count, Positive, Weight
from study.losses.similarity import cosines


@regulariser
def fair_kl(
    views: Tensor,
    *,
    target: Tensor,
    bias: Tensor | None = None,
    bias_features: Tensor | None = None,
    similarity: Tensor | None = None,
    variant: Literal[
        "reference", "kl", "kl_reverse", "jeffreys", "kl_lognormal", "moments", "mean", "mean_similarity"
    ] = "reference",
    pooled: bool = True,
    positive_weight: Weight = 1.0,
    negative_weight: Weight = 1.0,
    kld: Weight = 1.0,
    min_count: Count = 2,
    variance_floor: Positive = 1e-3,
) -> Tensor:
    """How much the similarity of pairs depends on whether they share the bias, for pairs of one class and of two.

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
        similarity: `gram(views)`, if the caller has it.
        variant: see above.
        pooled: one comparison over all pairs of the batch, or one per anchor, averaged; not for "reference".
        positive_weight, negative_weight: of the terms for pairs of one class and of two (footnote 2, Eq. 28).
        kld: weight of the deviations in "reference".
        min_count: a comparison with fewer aligned or fewer conflicting pairs is left out; not for "reference".
        variance_floor: smallest variance (or squared distance under the logarithm) in the divergences.

    Returns:
        The regulariser, a scalar.

    Raises:
        ValueError: not exactly one of `bias` and `bias_features` is given.
    """
    cosine, count = cosines(views, similarity), len(views)
    if bias is not None and bias_features is None:
        aligned = same(bias, count).to(cosine.dtype)
    elif bias_features is not None and bias is None:
        features = normalize(bias_features, dim=-1).to(cosine.dtype)
        aligned = (features @ features.T).repeat(count, count)
    else:
        raise ValueError("fair_kl needs either bias (classes) or bias_features (soft), and not both")
    soft, positive = bias is None, same(target, count).to(cosine.dtype)
    if variant == "reference":
        positive_term, negative_term = _released(cosine, positive, aligned, soft=soft, kld=kld)
    else:
        positive_term, negative_term = (
            divergence(
                cosine, pairs, aligned, variant, soft=soft, pooled=pooled, min_count=min_count, floor=variance_floor
            )
            for pairs in (without_self(positive), 1 - positive)
        )
    return positive_weight * positive_term + negative_weight * negative_term


def _released(cosine: Tensor, positive: Tensor, aligned: Tensor, *, soft: bool, kld: float) -> tuple[Tensor, Tensor]:
    """The two terms of the released function. Cells are cut by products with 0 and 1, faster than masks."""
    of_positive = cosine * positive
    of_negative = cosine - of_positive
    positive_pairs, aligned_pairs, both_pairs = positive.sum(), aligned.sum(), (positive * aligned).sum()
    if soft:
        counts = (positive_pairs, positive_pairs, positive.numel() - positive_pairs, positive.numel() - positive_pairs)
    else:
        conflicting = positive_pairs - both_pairs
        apart = aligned_pairs - both_pairs
        counts = (both_pairs, conflicting, apart, positive.numel() - positive_pairs - apart)
    positive_aligned, negative_aligned = of_positive * aligned, of_negative * aligned
    cells = (positive_aligned, of_positive - positive_aligned, negative_aligned, of_negative - negative_aligned)
    (pa, pa_sd), (pc, pc_sd), (na, na_sd), (nc, nc_sd) = (_moments(*cell) for cell in zip(cells, counts, strict=True))
    return (
        (pc - pa).square() + kld * (pa_sd - pc_sd).square() - pc,
        (na - nc).square() + kld * (na_sd - nc_sd).square() + na,
    )


def _moments(cell: Tensor, pairs: Tensor) -> tuple[Tensor, Tensor]:
    """Mean over the cell's pairs; standard deviation over the whole matrix, with gradient 0 where it is 0."""
    total, entries = cell.sum(), cell.numel()
    variance = (cell.square().sum() - total.square() / entries) / (entries - 1)
    spread = variance > 0
    return total / pairs.clamp(min=1), variance.where(spread, 1.0).sqrt().where(spread, 0.0)
