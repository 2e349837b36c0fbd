"""What tells that a contrastive loss does not do what one thinks: shares of samples that it gets nothing from."""

from collections.abc import Callable, Mapping
from typing import Any

from torch import Tensor

from study.losses.cclk import weight_measures
from study.losses.debiased import floored_share

Inputs = Mapping[str, Tensor | None]


def _floored(views: Tensor, inputs: Inputs, options: Mapping[str, Any]) -> dict[str, Tensor]:
    hyperparameters = {key: options[key] for key in ("temperature", "tau_plus", "beta") if key in options}
    return {"floored_share": floored_share(views, extra_positives=inputs.get("extra_positives"), **hyperparameters)}


def _weights(views: Tensor, inputs: Inputs, options: Mapping[str, Any]) -> dict[str, Tensor]:
    condition = inputs.get("bias") if inputs.get("condition") is None else inputs["condition"]
    if condition is None:
        return {}
    first = condition[0] if condition.ndim == 3 else condition
    hyperparameters = {key: options[key] for key in ("kernel", "sigma2", "degree", "ridge") if key in options}
    measures: dict[str, Tensor] = weight_measures(first, **hyperparameters)
    if options.get("form") == "paper":  # keeps the diagonal, where the rest of the weight is
        return {"weightless_share": measures["weightless_share"]}
    return measures


DIAGNOSES: Mapping[str, Callable[[Tensor, Inputs, Mapping[str, Any]], dict[str, Tensor]]] = {
    "debiased_info_nce": _floored,
    "hard_negative_info_nce": _floored,
    "weakly_supervised_cclk": _weights,
    "fair_cclk": _weights,
    "hard_negative_cclk": _weights,
}
"""By the loss's name: of unit embeddings of two views (2, B, D), the loss's named tensors and hyperparameters."""
