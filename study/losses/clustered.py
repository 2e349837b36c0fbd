"""The baselines of CCL-K (paper: Tsai et al.): the same losses conditioned on clusters instead of by a kernel."""

from torch import Tensor

from study.losses.catalogue import loss, pair_loss
from study.losses.fair_sup_con import fair_sup_con
from study.losses.ranges import BaseTemperature, Temperature
from study.losses.sup_con import sup_con


@loss
def weakly_supervised_info_nce(
    views: Tensor,
    *,
    bias: Tensor,
    similarity: Tensor | None = None,
    temperature: Temperature = 0.5,
    base_temperature: BaseTemperature = None,
) -> Tensor:
    """WeaklySup-InfoNCE (CCL-K paper Eq. 3): positives from the anchor's cluster, negatives from the whole batch.

    Over a batch this is SupCon with the clusters as classes.

    Args:
        views: unit embeddings, shape (V, B, D).
        bias: the cluster of each sample's condition, shape (B,).
        similarity: `gram(views)`, if the caller has it.

    Returns:
        The loss, a scalar.
    """
    loss: Tensor = sup_con(
        views, target=bias, similarity=similarity, temperature=temperature, base_temperature=base_temperature
    )
    return loss


@pair_loss
def fair_info_nce(
    views: Tensor,
    *,
    bias: Tensor,
    similarity: Tensor | None = None,
    temperature: Temperature = 0.5,
    base_temperature: BaseTemperature = None,
) -> Tensor:
    """Fair-InfoNCE (CCL-K paper Eq. 4): the positive is the other view, the negatives come from the anchor's cluster.

    Over a batch this is FSCL-dagger with the clusters as sensitive values. Arguments and result as for
    `weakly_supervised_info_nce`.
    """
    loss: Tensor = fair_sup_con(
        views, bias=bias, similarity=similarity, temperature=temperature, base_temperature=base_temperature
    )
    return loss
