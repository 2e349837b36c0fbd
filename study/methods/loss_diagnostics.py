"""Diagnoses of contrastive losses: for which share of samples a loss does not work as intended."""

from collections.abc import Callable, Mapping

from torch import Tensor

from study.knobs import Section
from study.losses.cclk import kernel_weight_diagnostics
from study.losses.debiased_info_nce import share_of_floored_rows

LossInputs = Mapping[str, Tensor | None]


def _floored_share_diagnostics(views: Tensor, inputs: LossInputs, options: Section) -> dict[str, Tensor]:
    hyperparameters = {key: options[key] for key in ("temperature", "tau_plus", "beta") if key in options}
    share = share_of_floored_rows(views, extra_positives=inputs.get("extra_positives"), **hyperparameters)
    return {"floored_share": share}


def _kernel_weight_diagnostics(views: Tensor, inputs: LossInputs, options: Section) -> dict[str, Tensor]:
    condition = inputs.get("bias") if inputs.get("condition") is None else inputs["condition"]
    if condition is None:
        return {}
    first = condition[0] if condition.ndim == 3 else condition
    hyperparameters = {key: options[key] for key in ("kernel", "sigma2", "degree", "ridge") if key in options}
    measures = kernel_weight_diagnostics(first, **hyperparameters)
    if options.get("form") == "paper":  # keeps the diagonal, where the rest of the weight is
        return {"weightless_share": measures["weightless_share"]}
    return measures


LOSS_DIAGNOSTICS: Mapping[str, Callable[[Tensor, LossInputs, Section], dict[str, Tensor]]] = {
    "debiased_info_nce": _floored_share_diagnostics,
    "hard_negative_info_nce": _floored_share_diagnostics,
    "weakly_supervised_cclk": _kernel_weight_diagnostics,
    "fair_cclk": _kernel_weight_diagnostics,
    "hard_negative_cclk": _kernel_weight_diagnostics,
}
"""Diagnosis of a loss, by the loss's name: of unit embeddings of two views (2, B, D), the loss's named tensors and
hyperparameters.
"""
