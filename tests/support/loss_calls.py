"""Every function of the catalogue as a call on a batch: its defaults, and what takes other code."""

from collections.abc import Callable
from functools import partial
from inspect import signature
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn.functional import normalize

from study.losses.loss_catalogue import classification_losses_by_name, losses_by_name, regularisers_by_name

Batch = dict[str, Tensor]

TARGET, BIAS = [0, 0, 0, 1, 1, 1, 2, 2, 0, 1, 2, 2], [0, 1, 0, 1, 0, 1, 2, 2, 1, 2, 0, 2]

# The golden set's edge cases, and more of their kind.
EDGES: dict[str, tuple[list[int], list[int]]] = {
    "singleton": ([0, 0, 0, 1], [0, 1, 0, 1]),
    "one_class": ([0, 0, 0, 0], [0, 1, 0, 1]),
    "all_distinct": ([0, 1, 2, 3], [0, 1, 0, 1]),
    "no_pos_conflict, no_negatives": ([0, 0, 1, 1], [0, 0, 1, 1]),
    "one_conflict": ([0, 0, 0, 1, 1, 1], [0, 0, 1, 1, 1, 1]),
    "one_bias": ([0, 0, 1, 1], [0, 0, 0, 0]),
    "all_distinct_bias": ([0, 0, 1, 1], [0, 1, 2, 3]),
    "lone_group_member": ([0, 0, 0, 1, 1, 1], [0, 0, 1, 0, 1, 1]),
    "one_class, one_bias": ([0, 0, 0, 0], [0, 0, 0, 0]),
    "two_samples": ([0, 1], [0, 1]),
}

# What is not the default and takes other code: (function, hyperparameters). "soft" gives fair_kl bias features for the
# bias, "continuous" CCL-K values for the classes; "dagger" gives no target.
VARIANTS: list[tuple[str, dict[str, Any]]] = [
    *(("eps_sup_info_nce", {"form": form, "epsilon": 0.25}) for form in "abcd"),
    ("eps_sup_info_nce", {"guard": 1e-6, "reduction": "sum"}),
    ("eps_sup_con", {"epsilon": 0.25, "guard": 1e-6, "anchors": "first"}),
    ("sup_con_in", {"epsilon": 0.25, "mean_positives": True}),
    *(
        ("fair_kl", {"variant": variant})
        for variant in ("kl", "kl_reverse", "jeffreys", "kl_lognormal", "moments", "mean", "mean_similarity")
    ),
    *(("fair_kl", {"variant": variant, "pooled": False}) for variant in ("kl", "moments")),
    ("fair_kl", {"soft": True}),
    ("fair_kl", {"soft": True, "variant": "kl"}),
    ("difficulty_weighted_info_nce", {"form": "per_negative"}),
    ("difficulty_weighted_info_nce", {"weight_gradient": True}),
    ("biased_triplet", {"tau_plus": 0.1}),
    *(("fair_cclk", {"kernel": kernel}) for kernel in ("laplacian", "linear", "cosine", "polynomial")),
    ("weakly_supervised_cclk", {"continuous": True}),
    ("fair_cclk", {"continuous": True, "kernel_gradient": True, "kernel": "laplacian"}),
    ("fair_sup_con", {"group_norm": True}),
    ("fair_sup_con", {"group_norm": True, "group_form": "released"}),
    ("fair_sup_con", {"dagger": True}),
    ("fair_sup_con", {"dagger": True, "group_norm": True, "anchor_in_denominator": True}),
    ("fair_sup_con", {"denominator": "all", "group_norm": True}),
    ("generalized_cross_entropy", {"form": "released"}),
    ("end", {"all_pairs": False}),
]

FURTHER_INPUT = {
    "soft_con": "bias_features",
    "difficulty_weighted_info_nce": "biased_views",
    "bias_balanced_cross_entropy": "confusion",
}
COMPARES_SAMPLES = ["debiased_info_nce", "hard_negative_info_nce", "difficulty_weighted_info_nce", "biased_triplet"]
COMPARES_SAMPLES += ["fair_cclk", "hard_negative_cclk"]
ONE_VIEW = ["eps_sup_info_nce", "eps_sup_con", "sup_con", "sup_con_in", "fair_kl", "end", "bias_con", "soft_con"]
ONE_VIEW += ["fair_sup_con", "weakly_supervised_info_nce", "fair_info_nce"]


class Call:
    """A function of the catalogue with its hyperparameters; called with a batch, it takes the inputs it wants."""

    def __init__(self, name: str, options: dict[str, Any]) -> None:
        self.name, self.given, self.options = name, options, dict(options)
        flags = [self.options.pop(flag, False) for flag in ("soft", "dagger", "continuous")]
        self.soft, self.dagger, self.continuous = flags
        self.function: Callable[..., Tensor] = {
            **losses_by_name(),
            **regularisers_by_name(),
            **classification_losses_by_name(),
        }[name]
        self.leaf = "logits" if name in classification_losses_by_name() else "views"

    def arguments(self, batch: Batch) -> tuple[Tensor, dict[str, Any]]:
        inputs = {"target": batch["target"], "bias": batch["bias"]}
        if self.name in FURTHER_INPUT:
            inputs[FURTHER_INPUT[self.name]] = batch[FURTHER_INPUT[self.name]]
        if self.soft:
            inputs = {"target": batch["target"], "bias_features": batch["bias_features"]}
        if self.dagger:
            del inputs["target"]
        if self.continuous:
            inputs["bias"] = batch["bias_features"]
        declared = signature(self.function).parameters
        wanted = {name: value for name, value in inputs.items() if name in declared}
        return batch[self.leaf], {**wanted, **self.options}

    def __call__(self, batch: Batch, function: Callable[..., Tensor] | None = None) -> Tensor:
        first, inputs = self.arguments(batch)
        return (function or self.function)(first, **inputs)

    def gradient(self, batch: Batch) -> tuple[Tensor, Tensor]:
        leaf = batch[self.leaf].detach().requires_grad_()
        loss = self(batch | {self.leaf: leaf})
        return loss, torch.autograd.grad(loss, leaf)[0]

    def __str__(self) -> str:
        return "-".join([self.name, *(f"{name}={value}" for name, value in self.given.items())])


CALLS = [Call(name, {}) for name in (*losses_by_name(), *regularisers_by_name(), *classification_losses_by_name())]
CALLS += [Call(name, options) for name, options in VARIANTS]
every_call = pytest.mark.parametrize("call", CALLS, ids=str)


def make_batch(
    target: list[int] = TARGET,
    bias: list[int] = BIAS,
    *,
    views: int = 2,
    dtype: torch.dtype = torch.float64,
    seed: int = 0,
) -> Batch:
    """Random unit rows, bias features and logits for these classes and bias classes."""
    generator = torch.Generator().manual_seed(seed)
    random = partial(torch.randn, generator=generator, dtype=torch.float64)
    floats = {
        "views": normalize(random(views, len(target), 6), dim=-1),
        "biased_views": normalize(random(views, len(target), 4), dim=-1),
        "bias_features": random(len(target), 3).abs(),
        "logits": random(len(target), max(target) + 1),
        "confusion": random(max(bias) + 1, max(target) + 1).softmax(1),
    }
    labels = {"target": torch.tensor(target), "bias": torch.tensor(bias)}
    return {name: value.to(dtype) for name, value in floats.items()} | labels
