"""Fair supervised contrastive losses (FSCL paper: Park et al., "Fair contrastive learning for facial attributes")."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from study.knobs import SearchRange
from study.losses import pairs
from study.losses.hyperparameter_types import BaseTemperature, SupervisedTemperature
from study.losses.lazy_torch import torch
from study.losses.loss_catalogue import loss

if TYPE_CHECKING:
    from torch import Tensor


@loss
def fair_sup_con(
    views: Tensor,
    *,
    bias: Tensor,
    target: Tensor | None = None,
    similarity: Tensor | None = None,
    temperature: SupervisedTemperature = 0.1,
    base_temperature: BaseTemperature = None,
    group_norm: Annotated[bool, SearchRange(choices=(False, True))] = False,
    group_form: Literal["mean", "sum", "released"] = "mean",
    anchor_in_denominator: bool = False,
    denominator: Literal["same_bias", "all"] = "same_bias",
) -> Tensor:
    """FSCL (Eq. 4), FSCL+ (Eq. 5, `group_norm=True`) and, without a target, FSCL-dagger (Eq. 26).

    FSCL: positives of the same class, and in the denominator only rows of another class with the same sensitive value
    (the positive is not in it: the loss can be negative). Rows are averaged; Eq. 4 and 26 as printed sum them. A row
    with nothing in the denominator gets its largest similarity there, a constant, as in the released code; a row
    without positives counts 0 (released: nan). FSCL-dagger: the positives are a sample's other views, and everything
    with the same sensitive value is in the denominator, positives included.

    FSCL+: each (class, sensitive value) group weighs the same, among the anchors and among each anchor's positives.
    "mean" is Eq. 5 divided by the number of groups in the batch, "sum" is Eq. 5 as printed, "released" divides a
    positive by its group's size less one whatever the anchor's group, and multiplies by an eighth of the rows.

    Args:
        views: unit embeddings, shape (V, B, D).
        bias: sensitive values, shape (B,).
        target: classes, shape (B,); None: FSCL-dagger.
        similarity: `gram_matrix(views)`, if the caller has it.
        group_norm: FSCL+: each (class, sensitive value) group weighs the same.
        group_form: with `group_norm`: mean: Eq. 5 divided by the number of groups in the batch; sum: Eq. 5 as printed;
            released: the released code's group sizes, times an eighth of the rows.
        anchor_in_denominator: FSCL-dagger as Eq. 26 is printed, the anchor itself in the denominator.
        denominator: same_bias: rows of the same sensitive value; all: every other row, as in SupCon, to see
            `group_norm` alone.

    Returns:
        The loss, a scalar.
    """
    scale = 1 / temperature
    cosine, label = pairs.cosine_matrix(views, similarity), pairs.labels_or_own_class(views, target)
    if denominator == "all":
        log_sum = pairs.log_sum_exp(cosine, scale)
    else:
        same_bias = pairs.same_label_mask(bias, views)
        if target is not None:
            drop = pairs.same_label_mask(target, views).mul_(same_bias).sub_(same_bias).add_(1)
        else:
            drop = (same_bias if anchor_in_denominator else pairs.clear_diagonal_(same_bias)).neg_().add_(1)
        log_sum = pairs.log_sum_exp(cosine, scale, drop=drop)
    log_sum = log_sum.where(log_sum > -torch.inf, cosine.detach().amax(1) * scale)
    if group_norm:
        row_weight, attraction, total = _group_normalised_positives(views, label, bias, group_form)
    else:
        row_weight, attraction, total = _unweighted_positives(views, label)
    loss = (row_weight * (total * log_sum - scale * attraction)).sum()
    return pairs.rescale_by_temperature(loss, temperature, base_temperature)


def _unweighted_positives(views: Tensor, label: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return each row's weight, weighted sum of its cosines with positives, and sum of these weights; all (V*B,)."""
    index = pairs.index_label_groups(label)
    positives = pairs.count_rows_in_group(index, views) - 1
    attraction = (views * (pairs.sum_over_sample_group(index, views.sum(0)) - views)).sum(-1).flatten()
    return 1 / (positives.clamp(min=1) * len(positives)), attraction, positives


def _group_normalised_positives(views: Tensor, label: Tensor, bias: Tensor, form: str) -> tuple[Tensor, Tensor, Tensor]:
    """Return the positives of FSCL+: each weighs 1 / the number of positives of its label and bias."""
    count = len(views)
    by_label, by_both = pairs.index_label_groups(label), pairs.index_label_groups(label, bias)
    size = pairs.count_rows_in_group(by_both, views)
    others = (size - 1).clamp(min=1)
    elsewhere = others if form == "released" else size
    weight = 1 / elsewhere.view(count, -1, 1)
    # Positives in the anchor's own group are one fewer than its size; those of other groups are not.
    weighted = (weight * views).sum(0)
    apart = pairs.sum_over_sample_group(by_label, weighted) - pairs.sum_over_sample_group(by_both, weighted)
    own = (pairs.sum_over_sample_group(by_both, views.sum(0)) - views) / others.view(count, -1, 1)
    attraction = (views * (apart + own)).sum(-1).flatten()
    share = (1 / elsewhere).view(count, -1).sum(0)[:, None]
    share_apart = pairs.sum_over_sample_group(by_label, share) - pairs.sum_over_sample_group(by_both, share)
    total = share_apart.repeat(count, 1).flatten() + (size - 1) / others
    row_weight = 1 / size
    if form == "mean":
        row_weight = row_weight / row_weight.sum()
    elif form == "released":
        row_weight = row_weight / 8
    return row_weight, attraction, total
