"""FairKL, the debiasing regulariser (FairKL paper: Barbano et al., "Unbiased supervised contrastive learning")."""

from typing import Annotated, Literal

from torch import Tensor
from torch.nn.functional import normalize
from typing_extensions import Doc

from study.losses.catalogue import regulariser
from study.losses.divergence import divergence
from study.losses.groups import same
from study.losses.ranges import Count, Positive, Weight
from study.losses.released_fair_kl import released_terms
from study.losses.similarity import cosines


@regulariser
def fair_kl(
    views: Tensor,
    *,
    target: Tensor,
    bias: Tensor | None = None,
    bias_features: Tensor | None = None,
    similarity: Tensor | None = None,
    variant: Annotated[
        Literal["reference", "kl", "kl_reverse", "jeffreys", "kl_lognormal", "moments", "mean", "mean_similarity"],
        Doc(
            "reference: the released function, of the published figures; kl: Eq. 10; kl_reverse: its two "
            "sides exchanged; jeffreys: the sum of both; kl_lognormal: Eq. 10 on logarithms of distances; "
            "moments: means and deviations; mean, mean_similarity: Eq. 9"
        ),
    ] = "reference",
    pooled: Annotated[
        bool,
        Doc("one comparison over all pairs of the batch; false: one per anchor, averaged; not for variant reference"),
    ] = True,
    positive_weight: Annotated[Weight, Doc("weight of the term for pairs of one class (footnote 2, Eq. 28)")] = 1.0,
    negative_weight: Annotated[Weight, Doc("weight of the term for pairs of two classes (footnote 2, Eq. 28)")] = 1.0,
    kld: Annotated[Weight, Doc("weight of the deviations in variant reference")] = 1.0,
    min_count: Annotated[
        Count, Doc("a comparison with fewer aligned or fewer conflicting pairs is left out; not for variant reference")
    ] = 2,
    variance_floor: Annotated[
        Positive, Doc("smallest variance (or squared distance under the logarithm) in the divergences")
    ] = 1e-3,
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

    Returns:
        The regulariser, a scalar.

    Raises:
        ValueError: not exactly one of `bias` and `bias_features` is given.
    """
    cosine = cosines(views, similarity)
    if bias is not None and bias_features is None:
        aligned = same(bias, views)
    elif bias_features is not None and bias is None:
        features = normalize(bias_features, dim=-1).to(cosine.dtype)
        aligned = (features @ features.T).repeat(len(views), len(views))
    else:
        raise ValueError("fair_kl needs either bias (classes) or bias_features (soft), and not both")
    soft, one_class = bias is None, same(target, views)
    if variant == "reference":
        positive_term, negative_term = released_terms(cosine, one_class, aligned, soft=soft, kld=kld)
    else:
        terms = divergence(
            cosine, one_class, aligned, variant, soft=soft, pooled=pooled, min_count=min_count, floor=variance_floor
        )
        positive_term, negative_term = terms.unbind()
    return positive_weight * positive_term + negative_weight * negative_term
