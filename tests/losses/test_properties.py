"""What holds for every loss: invariances, finite values on degenerate batches, precision, gradients, one graph."""

from collections.abc import Callable
from functools import partial
from inspect import signature
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn.functional import normalize

from study.knobs import knobs
from study.losses.catalogue import classification_losses, losses, regularisers

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
        self.function: Callable[..., Tensor] = {**losses(), **regularisers(), **classification_losses()}[name]
        self.leaf = "logits" if name in classification_losses() else "views"

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


CALLS = [Call(name, {}) for name in (*losses(), *regularisers(), *classification_losses())]
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


@every_call
@given(order=st.permutations(range(len(TARGET))), seed=st.integers(0, 1000))
@settings(max_examples=3, deadline=None)
def test_the_order_of_samples_does_not_matter(call: Call, order: list[int], seed: int) -> None:
    if call.options.get("all_pairs") is False:
        return  # the released EnD compares bias values along the order of the batch, as its docstring says
    batch = make_batch(seed=seed)
    moved = {
        name: value[:, order] if name.endswith("views") else value[order]
        for name, value in batch.items()
        if name != "confusion"
    }
    torch.testing.assert_close(call(batch | moved), call(batch))


@every_call
@given(scale=st.floats(1e-3, 1e3), seed=st.integers(0, 1000))
@settings(max_examples=3, deadline=None)
def test_the_scale_before_normalisation_does_not_matter(call: Call, scale: float, seed: int) -> None:
    batch = make_batch(seed=seed)
    scaled = {name: normalize(scale * batch[name], dim=-1) for name in ("views", "biased_views")}
    torch.testing.assert_close(call(batch | scaled), call(batch))


@every_call
def test_degenerate_batches_give_finite_values_and_gradients_in_float32(call: Call) -> None:
    for edge, labels in EDGES.items():
        for views in (1, 2) if call.name in ONE_VIEW else (2,):
            batch = make_batch(*labels, views=views, dtype=torch.float32)
            one_point = {name: batch[name][:1, :1].expand_as(batch[name]) for name in ("views", "biased_views")}
            for embeddings in (batch, batch | one_point):
                loss, gradient = call.gradient(embeddings)
                assert loss.isfinite(), edge
                assert gradient.isfinite().all(), edge
                assert loss.dtype == gradient.dtype == torch.float32


@every_call
def test_a_single_sample_gives_a_finite_value_or_is_refused(call: Call) -> None:
    for views in (1, 2) if call.name in ONE_VIEW else (2,):
        batch = make_batch([0], [0], views=views)
        if call.name in COMPARES_SAMPLES:
            with pytest.raises(ValueError, match="compares different samples: it needs two or more, got 1"):
                call(batch)
        else:
            loss, gradient = call.gradient(batch)
            assert loss.isfinite()
            assert gradient.isfinite().all()


@every_call
def test_a_nan_is_not_hidden(call: Call) -> None:
    batch = make_batch()
    batch[call.leaf] = batch[call.leaf].clone()
    batch[call.leaf][..., 0, :] = torch.nan
    assert call(batch).isnan()


@every_call
def test_low_temperatures_do_not_overflow_in_float32(call: Call) -> None:
    if "temperature" in {knob.key for knob in knobs(call.function)}:
        for temperature in (0.01, 0.001):
            loss, gradient = Call(call.name, call.given | {"temperature": temperature}).gradient(
                make_batch(dtype=torch.float32)
            )
            assert loss.isfinite()
            assert gradient.isfinite().all()


@every_call
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_autocast_changes_nothing_and_half_precision_inputs_are_computed_in_float32(
    call: Call, dtype: torch.dtype
) -> None:
    batch = make_batch(dtype=torch.float32)
    halves = {name: value.to(dtype) if value.is_floating_point() else value for name, value in batch.items()}
    plain, widened = (
        call(batch),
        call({name: value.float() if value.dtype == dtype else value for name, value in halves.items()}),
    )
    with torch.autocast("cpu", dtype=dtype):
        torch.testing.assert_close(call(batch), plain, rtol=0, atol=0)
        loss, gradient = call.gradient(halves)
    torch.testing.assert_close(loss, widened.detach(), rtol=0, atol=0)
    assert loss.dtype == torch.float32
    assert gradient.isfinite().all()


@every_call
def test_float32_agrees_with_float64(call: Call) -> None:
    loss, gradient = call.gradient(make_batch(dtype=torch.float32))
    expected, expected_gradient = call.gradient(make_batch())
    torch.testing.assert_close(loss.double(), expected, rtol=1e-4, atol=1e-5)
    error = (gradient.double() - expected_gradient).abs().max()
    assert error <= 1e-4 * expected_gradient.abs().max() + 1e-5


# A factor that the loss declares a constant (a weight, the condition, the guard) changes with the input all the same.
WITH_CONSTANTS = ("difficulty_weighted_info_nce", "hard_negative_cclk", "generalized_cross_entropy-form=released")


@every_call
def test_gradcheck(call: Call) -> None:
    constants = str(call).startswith(WITH_CONSTANTS) or "guard" in call.options
    if constants and not call.options.get("weight_gradient"):
        return  # their gradients are checked against the golden values
    batch = make_batch()
    leaf = batch[call.leaf].requires_grad_()
    assert torch.autograd.gradcheck(lambda value: call(batch | {call.leaf: value}), leaf)


@pytest.mark.parametrize(
    "call", [pytest.param(call, marks=pytest.mark.slow if call.given else ()) for call in CALLS], ids=str
)
def test_traces_as_one_graph_and_gives_the_same(call: Call) -> None:
    torch._dynamo.reset()
    compiled = torch.compile(call.function, fullgraph=True, backend="aot_eager", dynamic=False)
    batch = make_batch(dtype=torch.float32)
    leaf = batch[call.leaf].requires_grad_()
    loss = call(batch, compiled)
    expected, expected_gradient = call.gradient(batch)
    torch.testing.assert_close(loss, expected)
    torch.testing.assert_close(torch.autograd.grad(loss, leaf)[0], expected_gradient)
