"""eps-SupInfoNCE (FairKL paper: Barbano et al., "Unbiased supervised contrastive learning")."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from study.knobs import SearchRange
from study.losses import pairs
from study.losses.hyperparameter_types import BaseTemperature, DenominatorGuard, EpsilonMargin, SupervisedTemperature
from study.losses.lazy_torch import functional, torch
from study.losses.loss_catalogue import loss

if TYPE_CHECKING:
    from torch import Tensor


@loss
def eps_sup_info_nce(
    views: Tensor,
    *,
    target: Tensor | None = None,
    similarity: Tensor | None = None,
    temperature: SupervisedTemperature = 0.1,
    base_temperature: BaseTemperature = None,
    epsilon: Annotated[EpsilonMargin, SearchRange(0.0, 0.5, paper=(0.5, 0.25))] = 0.0,
    form: Literal["a", "b", "c", "d"] = "c",
    reduction: Literal["mean", "sum"] = "mean",
    guard: DenominatorGuard = 0.0,
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
        similarity: `gram_matrix(views)`, if the caller has it.
        form: which of Eq. 17's extensions to several positives; c is the paper's loss.
        reduction: over the positives, in form c: mean, as in the released code, or sum, as Eq. 4 is printed.
        guard: added to the denominator, as a share of the row's largest exponential; form c only.

    Returns:
        The loss, a scalar.
    """
    from study.losses.own_gradients import margin_loss_sum, pair_softplus_row_sums

    cosine, scale = pairs.cosine_matrix(views, similarity), 1 / temperature
    same_label = pairs.same_label_mask(pairs.labels_or_own_class(views, target), views)
    positive = pairs.clear_diagonal_(same_label) if form == "c" else pairs.copy_without_diagonal(same_label)
    positives = positive.sum(-1)
    if form == "c":
        share = positive.div_(positives.clamp(min=1)[:, None]) if reduction == "mean" else positive
        mean = margin_loss_sum(cosine, share, scale, epsilon, guard) / len(cosine)
        return pairs.rescale_by_temperature(mean, temperature, base_temperature)
    if form == "d":
        apart = 1 - same_label
        per_row = pair_softplus_row_sums(torch.add(cosine * scale, apart, alpha=epsilon), positive > 0, apart > 0)
        per_row = per_row - epsilon * positives * (len(cosine) - 1 - positives)
    else:
        attraction = pairs.log_sum_exp(cosine, -scale, drop=1 - positive) + epsilon
        if form == "a":
            per_row = pairs.softplus(pairs.log_sum_exp(cosine, scale, drop=same_label) + attraction) - epsilon
        else:
            gap = torch.add(-attraction[:, None], cosine, alpha=-scale)
            per_row = torch.linalg.vecdot(-functional.logsigmoid(gap) - epsilon, 1 - same_label)
        per_row = per_row.where(positives > 0, 0.0)
    return pairs.rescale_by_temperature(per_row.mean(), temperature, base_temperature)
