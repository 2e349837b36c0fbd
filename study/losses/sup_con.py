"""SupCon, its two forms and its margin version (Khosla et al.; generalised in the FairKL paper, Barbano et al.)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from typing_extensions import Doc

from study.knobs import SearchRange
from study.losses import pairs
from study.losses.hyperparameter_types import BaseTemperature, DenominatorGuard, EpsilonMargin, SupervisedTemperature
from study.losses.lazy_torch import torch
from study.losses.loss_catalogue import loss

if TYPE_CHECKING:
    from torch import Tensor

AnchorViews = Annotated[
    Literal["all", "first"],
    Doc('all rows are anchors, or those of the first view alone (`contrast_mode` "one" of SupCon\'s code)'),
]


@loss
def eps_sup_con(
    views: Tensor,
    *,
    target: Tensor | None = None,
    similarity: Tensor | None = None,
    temperature: SupervisedTemperature = 0.1,
    base_temperature: BaseTemperature = None,
    epsilon: Annotated[EpsilonMargin, SearchRange(0.0, 0.5, paper=(0.25,))] = 0.0,
    guard: DenominatorGuard = 0.0,
    anchors: AnchorViews = "all",
) -> Tensor:
    """eps-SupCon (FairKL paper Eq. 5): SupCon with a margin, its non-contrastive term included; mean over positives.

    Two departures from the print: the constant epsilon in front is left out, and rows are averaged, not summed. A row
    without positives counts 0 and stays in the mean. The released code adds 1e-6 to the denominator: `guard=1e-6`.

    Args:
        views: unit embeddings, shape (V, B, D).
        target: classes, shape (B,); None: a sample's positives are its other views.
        similarity: `gram_matrix(views)`, if the caller has it.

    Returns:
        The loss, a scalar.
    """
    cosine, scale = pairs.cosine_matrix(views, similarity), 1 / temperature
    index = pairs.index_label_groups(pairs.labels_or_own_class(views, target))
    shifted = cosine
    if epsilon != 0:
        shifted = torch.add(cosine, pairs.same_label_mask(index, views), alpha=-epsilon * temperature)
    everyone = pairs.add_guard_to_log_sum(pairs.log_sum_exp(shifted, scale), cosine, scale, guard)
    attraction, positives = mean_cosine_of_positives(views, index)
    per_row = (everyone - attraction * scale).where(positives > 0, 0.0)
    if anchors == "first":
        per_row = per_row[: len(views[0])]
    return pairs.rescale_by_temperature(per_row.mean(), temperature, base_temperature)


@loss
def sup_con(
    views: Tensor,
    *,
    target: Tensor | None = None,
    similarity: Tensor | None = None,
    temperature: SupervisedTemperature = 0.1,
    base_temperature: BaseTemperature = None,
    anchors: AnchorViews = "all",
) -> Tensor:
    """SupCon with the sum outside the logarithm (L_out): `eps_sup_con` with margin 0.

    Arguments, result and errors as for `eps_sup_con`.
    """
    return eps_sup_con(
        views,
        target=target,
        similarity=similarity,
        temperature=temperature,
        base_temperature=base_temperature,
        anchors=anchors,
    )


@loss
def sup_con_in(
    views: Tensor,
    *,
    target: Tensor | None = None,
    similarity: Tensor | None = None,
    temperature: SupervisedTemperature = 0.1,
    base_temperature: BaseTemperature = None,
    epsilon: EpsilonMargin = 0.0,
    mean_positives: bool = False,
) -> Tensor:
    """SupCon with the sum inside the logarithm (L_in, FairKL paper Eq. 7), mean over rows.

    A row without positives counts 0 (the released code gives infinity).

    Args:
        views, target, similarity: as for `eps_sup_con`.
        epsilon: margin on the positives of the denominator, in units of a similarity divided by the temperature; the
            print has none.
        mean_positives: the positives enter the denominator by their mean, as in the released code, not their sum.

    Returns:
        The loss, a scalar.
    """
    cosine, scale = pairs.cosine_matrix(views, similarity), 1 / temperature
    index = pairs.index_label_groups(pairs.labels_or_own_class(views, target))
    same_label = pairs.same_label_mask(index, views)
    positives = pairs.count_rows_in_group(index, views) - 1
    some = positives > 0
    attraction = pairs.log_sum_exp(cosine, scale, drop=1 - pairs.copy_without_diagonal(same_label)).where(some, 0.0)
    repulsion = pairs.log_sum_exp(cosine, scale, drop=same_label)
    share = positives.clamp(min=1).log() if mean_positives else torch.zeros_like(attraction)
    per_row = pairs.log_add_exp(repulsion - attraction, -epsilon - share).where(some, 0.0)
    return pairs.rescale_by_temperature(per_row.mean(), temperature, base_temperature)


def mean_cosine_of_positives(views: Tensor, index: Tensor) -> tuple[Tensor, Tensor]:
    """Return each row's mean cosine with its positives (0 if none) and their number, both (V*B,).

    By sums over classes: O(V*B*D).
    """
    positives = pairs.count_rows_in_group(index, views) - 1
    others = pairs.sum_over_sample_group(index, views.sum(0)) - views
    return (views * others).sum(-1).flatten() / positives.clamp(min=1), positives
