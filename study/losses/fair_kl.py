"""FairKL, the debiasing regulariser (FairKL paper: Barbano et al., "Unbiased supervised contrastive learning")."""

from torch import Tensor

from study.losses.catalogue import regulariser


@regulariser
def fair_kl(views: Tensor, *, target: Tensor, bias: Tensor) -> Tensor:
    """FairKL as released (the paper's published figures come from it; it is not Eq. 10).

    Squared differences between bias-aligned and bias-conflicting pairs of the means and standard deviations of
    cosine similarity, for pairs of one class and of two, plus the linear terms of the released code. A deviation is
    taken over the full matrix with the entries outside its cell zero; an empty cell counts as zeros.

    Args:
        views: unit embeddings, shape (V, B, D).
        target, bias: classes and bias classes, shape (B,).

    Returns:
        The regulariser, a scalar.
    """
    rows = views.flatten(0, 1).float()
    label, attribute = target.repeat(len(views)), bias.repeat(len(views))
    similarity = rows @ rows.T
    same_label = label[:, None] == label[None, :]
    same_bias = attribute[:, None] == attribute[None, :]

    def moments(cell: Tensor) -> tuple[Tensor, Tensor]:
        inside = similarity.where(cell, 0.0)
        variance = inside.var()
        deviation = variance.where(variance > 0, 1.0).sqrt().where(variance > 0, 0.0)
        return inside.sum() / cell.sum().clamp(min=1), deviation

    positive_aligned, positive_aligned_sd = moments(same_label & same_bias)
    positive_conflicting, positive_conflicting_sd = moments(same_label & ~same_bias)
    negative_aligned, negative_aligned_sd = moments(~same_label & same_bias)
    negative_conflicting, negative_conflicting_sd = moments(~same_label & ~same_bias)
    return (
        (positive_conflicting - positive_aligned).square()
        + (negative_aligned - negative_conflicting).square()
        + (positive_aligned_sd - positive_conflicting_sd).square()
        + (negative_aligned_sd - negative_conflicting_sd).square()
        - positive_conflicting
        + negative_aligned
    )
