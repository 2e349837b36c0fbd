"""Conditional contrastive learning with kernels (CCL-K paper: Tsai et al., "Conditional ... learning with kernel")."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Literal, get_args

from typing_extensions import Doc

from study.knobs import Range, SearchRange
from study.losses import pairs
from study.losses.fair_sup_con import fair_sup_con
from study.losses.hyperparameter_types import BaseTemperature, KernelWidth, PositiveNumber, Temperature
from study.losses.lazy_torch import functional, torch
from study.losses.loss_catalogue import compute_in_full_precision, loss, pair_loss
from study.losses.sup_con import sup_con

if TYPE_CHECKING:
    from torch import Tensor

KernelName = Literal["rbf", "laplacian", "linear", "cosine", "polynomial"]


def kernel_matrix(condition: Tensor, name: KernelName, sigma2: float, degree: int) -> Tensor:
    """Compute the similarity K of the conditions of all samples, float64, shape (B, B).

    Args:
        condition: classes, shape (B,), as if one-hot; or continuous values, shape (B, K).
        name: "rbf" e^(-|c-c'|^2 / sigma2), "laplacian" e^(-|c-c'| / sigma2), "linear" c.c' / sigma2,
            "polynomial" (c.c')^degree / sigma2, "cosine".
        sigma2: what the kernel divides by, of "rbf" the squared width (no factor 2); not for "cosine".
        degree: of "polynomial".
    """
    if condition.ndim == 1:
        product = (condition[:, None] == condition[None, :]).double()
        squared = 2 - 2 * product
    else:
        values = condition.double()
        if name == "cosine":
            values = functional.normalize(values, dim=1)
        product = values @ values.T
        squared = _squared_distances(values) if name in ("rbf", "laplacian") else product
    if name == "rbf":
        return (-squared / sigma2).exp()
    if name == "laplacian":
        apart = squared > 0
        return (-squared.where(apart, 1.0).sqrt().where(apart, 0.0) / sigma2).exp()
    if name == "polynomial":
        return product.pow(degree) / sigma2
    return product if name == "cosine" else product / sigma2


def conditional_weights(kernel: Tensor, ridge: float) -> Tensor:
    """Compute W = (K + ridge I)^-1 K (Definition 2.1), shape (B, B), K symmetric; infinite if singular, no error."""
    # (K + ridge I)^-1 K = I - ridge (K + ridge I)^-1; inv_ex, because inv waits for the device to check its success.
    identity = torch.eye(len(kernel), dtype=kernel.dtype, device=kernel.device)
    return identity - ridge * torch.linalg.inv_ex(kernel + ridge * identity)[0]


def _squared_distances(values: Tensor) -> Tensor:
    """Compute |c - c'|^2 by one product; centred first, and exactly 0 where rounding hides that values are equal."""
    values = values - values.mean(0).detach()
    norms = values.square().sum(1)
    squared = norms[:, None] + norms[None, :] - 2 * values @ values.T
    return squared.where(squared > 1e-12 * (norms[:, None] + norms[None, :]), 0.0)


KernelKey = Annotated[
    KernelName,
    SearchRange(choices=get_args(KernelName)),  # all are in CCL-K Table 5
    Doc("similarity of two samples' conditions, see `kernel_matrix`"),
]
PolynomialDegree = Annotated[int, Range(low=1), Doc("exponent of the polynomial kernel")]
RidgeKey = Annotated[PositiveNumber, Doc("CCL-K's own lambda, relative to the kernel's diagonal of 1")]
CclkForm = Annotated[
    Literal["released", "paper"],
    Doc(
        "released: both views are anchors and candidates, the weights constants without diagonal; "
        "paper: the equation as printed, the first view the anchor, the second the candidates"
    ),
]
KernelGradientKey = Annotated[bool, Doc("let the gradient through the weights into the condition")]

# Bounds of the released code: smaller weights become 0; the conditional similarity of a weak positive is at least this.
MIN_WEIGHT = 1e-6
MIN_POSITIVE_TERM = 1e-7


@pair_loss
def weakly_supervised_cclk(
    views: Tensor,
    *,
    bias: Tensor | None = None,
    condition: Tensor | None = None,
    similarity: Tensor | None = None,
    temperature: Temperature = 0.5,
    base_temperature: BaseTemperature = None,
    kernel: KernelKey = "rbf",
    sigma2: KernelWidth = 1.0,
    degree: PolynomialDegree = 3,
    ridge: RidgeKey = 0.1,
    form: CclkForm = "released",
    kernel_gradient: KernelGradientKey = False,
) -> Tensor:
    """WeaklySup-CCLK (Eq. 7): positives are samples of similar condition, weighted by W = (K + ridge I)^-1 K.

    "released": both views as anchors and both as candidates, W a constant without diagonal and without weights below
    1e-6, the conditional similarity at least 1e-7. "paper": Eq. 7 as printed, the first view as anchor, the second as
    candidates, W as it is; can be nan.

    Args:
        views: unit embeddings, shape (2, B, D).
        bias: the condition: classes (B,) or continuous values (B, K), scaled to similar sizes (colours to 0..1).
        condition: the same for each view, shape (2, B, K), or (B,) or (B, K) for both; before `bias`.
        similarity: `gram_matrix(views)`, if the caller has it.

    Returns:
        The loss, a scalar.

    Raises:
        ValueError: not two views, or no condition.
    """
    weights = _weights_of_views(views, bias, condition, kernel, sigma2, degree, ridge, form, kernel_gradient)
    scale = 1 / temperature
    if form == "paper":
        conditional, pair, everyone = _paper_form_terms(views, weights[0], scale)
        per_row = -(conditional / (conditional + (everyone - pair))).log()
    else:
        cosine = pairs.cosine_matrix(views, similarity)
        conditional = _log_conditional_sum(cosine, weights, scale).clamp(min=math.log(MIN_POSITIVE_TERM))
        per_row = pairs.softplus(pairs.log_sum_exp(cosine, scale) - conditional)
    return pairs.rescale_by_temperature(per_row.mean(), temperature, base_temperature)


@pair_loss
def fair_cclk(
    views: Tensor,
    *,
    bias: Tensor | None = None,
    condition: Tensor | None = None,
    similarity: Tensor | None = None,
    temperature: Temperature = 0.5,
    base_temperature: BaseTemperature = None,
    kernel: KernelKey = "rbf",
    sigma2: KernelWidth = 1.0,
    degree: PolynomialDegree = 3,
    ridge: RidgeKey = 0.1,
    form: CclkForm = "released",
    kernel_gradient: KernelGradientKey = False,
) -> Tensor:
    """Fair-CCLK (Eq. 8): negatives are samples of similar condition, so that the condition is no help.

    Arguments, forms, result and errors as for `weakly_supervised_cclk`; the condition is the sensitive attribute. A row
    whose weights are all 0 has no negatives and counts 0 (see `kernel_weight_diagnostics`). ValueError too for a single
    sample.
    """
    weights = _weights_of_views(views, bias, condition, kernel, sigma2, degree, ridge, form, kernel_gradient)
    scale, others = 1 / temperature, pairs.count_other_samples(views)
    if form == "paper":
        conditional, pair, _ = _paper_form_terms(views, weights[0], scale)
        per_row = -(pair / (pair + others * conditional)).log()
    else:
        conditional = _log_conditional_sum(pairs.cosine_matrix(views, similarity), weights, scale)
        per_row = pairs.softplus(conditional + math.log(others) - pairs.other_view_similarity(views) * scale)
    return pairs.rescale_by_temperature(per_row.mean(), temperature, base_temperature)


@pair_loss
def hard_negative_cclk(
    views: Tensor,
    *,
    condition: Tensor | None = None,
    similarity: Tensor | None = None,
    temperature: Temperature = 0.5,
    base_temperature: BaseTemperature = None,
    kernel: KernelKey = "rbf",
    sigma2: KernelWidth = 1.0,
    degree: PolynomialDegree = 3,
    ridge: RidgeKey = 0.1,
    form: CclkForm = "released",
    kernel_gradient: KernelGradientKey = False,
) -> Tensor:
    """HardNeg-CCLK (Eq. 9): `fair_cclk` conditioned on the embeddings themselves, each view's on its own.

    Arguments, forms, result and errors as for `weakly_supervised_cclk`, except that there is no `bias` and `condition`
    is `views` if not given.
    """
    return fair_cclk(
        views,
        condition=views if condition is None else condition,
        similarity=similarity,
        temperature=temperature,
        base_temperature=base_temperature,
        kernel=kernel,
        sigma2=sigma2,
        degree=degree,
        ridge=ridge,
        form=form,
        kernel_gradient=kernel_gradient,
    )


@compute_in_full_precision
def kernel_weight_diagnostics(
    condition: Tensor, *, kernel: KernelName = "rbf", sigma2: float = 1.0, degree: int = 3, ridge: float = 0.1
) -> dict[str, Tensor]:
    """Measure what form "released" leaves of the weights: figures that show when a kernel is too narrow, scalars.

    The diagonal of W is left out, and a narrow kernel has most of its weight there: what is left then weighs next to
    nothing, though few weights are 0.

    Args:
        condition: classes (B,) or values (B, K); the others as for `weakly_supervised_cclk`.

    Returns:
        `weightless_share`: share of samples that no other sample has a weight for. `weight_sum`: mean over samples of
        the sum of the others' weights; 1 is the whole sum over negatives. `effective_negatives`: mean over samples of
        (sum of weights)^2 / sum of squared weights, the number of equal weights that would vary as little.
    """
    weights = _released_weights(kernel_matrix(condition, kernel, sigma2, degree), ridge)
    total, squares = weights.sum(0), weights.square().sum(0)
    return {
        "weightless_share": (total == 0).to(total.dtype).mean(),
        "weight_sum": total.mean(),
        "effective_negatives": (total.square() / squares.where(squares > 0, 1.0)).mean(),
    }


def _weights_of_views(
    views: Tensor,
    bias: Tensor | None,
    condition: Tensor | None,
    kernel: KernelName,
    sigma2: float,
    degree: int,
    ridge: float,
    form: str,
    gradient: bool,
) -> list[Tensor]:
    """Return W of each view, or one for both, shape (B, B), in the dtype of `views`."""
    condition = bias if condition is None else condition
    if condition is None:
        raise ValueError("CCL-K needs a condition: bias, classes (B,) or values (B, K), or condition")
    each = condition if condition.ndim == 3 else condition[None]
    kernels = [kernel_matrix(values if gradient else values.detach(), kernel, sigma2, degree) for values in each]
    weights = [conditional_weights(k, ridge) if form == "paper" else _released_weights(k, ridge) for k in kernels]
    return [weight.to(views.dtype) for weight in weights]


def _released_weights(kernel: Tensor, ridge: float) -> Tensor:
    diagonal = torch.eye(len(kernel), dtype=torch.bool, device=kernel.device)
    weights = conditional_weights(kernel.where(~diagonal, 1.0), ridge)
    return weights.where(~diagonal & (weights >= MIN_WEIGHT), 0.0)


def _log_conditional_sum(cosine: Tensor, weights: list[Tensor], scale: float) -> Tensor:
    """Return log sum over j of W[j, i] e^s(i, j) for each row i, j over the rows of both views; -inf if weightless."""
    each = weights if len(weights) == 2 else weights * 2
    tiled = torch.cat([weight.T.repeat(1, 2) for weight in each])
    none = tiled <= 0
    return pairs.log_sum_exp(cosine * scale + tiled.where(~none, 1.0).log(), 1.0, drop=none.to(cosine.dtype))


def _paper_form_terms(views: Tensor, weight: Tensor, scale: float) -> tuple[Tensor, Tensor, Tensor]:
    """Return the sum of W[j, i] k(x_i, y_j), k(x_i, y_i) and the sum of k(x_i, y_j).

    Each is divided by the row's largest exponential.
    """
    if len(views) != 2:
        raise ValueError(f"CCL-K pairs two views of each sample, got {len(views)}")
    score = views[0] @ views[1].T * scale
    score = (score - score.detach().amax(1, keepdim=True)).exp()
    return (score * weight.T).sum(1), score.diagonal(), score.sum(1)


# The baselines of CCL-K are the same losses conditioned on clusters instead of by a kernel.


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
        similarity: `gram_matrix(views)`, if the caller has it.

    Returns:
        The loss, a scalar.
    """
    return sup_con(
        views, target=bias, similarity=similarity, temperature=temperature, base_temperature=base_temperature
    )


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
    return fair_sup_con(
        views, bias=bias, similarity=similarity, temperature=temperature, base_temperature=base_temperature
    )
