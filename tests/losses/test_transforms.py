"""What `torch.func`, `torch.vmap` and second derivatives need of every loss: each new one is tested by being there.

`torch.vmap` runs over batches, and over hyperparameters as tensors: many configurations as one program.
"""

from collections.abc import Callable
from typing import Any, get_args

import pytest
import torch
from loss_calls import EDGES, ONE_VIEW, Batch, Call, every_call, make_batch
from torch import Tensor
from torch.func import grad, grad_and_value, vmap
from torch.nn.functional import normalize

from study.knobs import Knob, Range, knobs

Function = Callable[[Tensor], Tensor]

# A factor that the loss declares a constant changes with the input all the same, which no numerical derivative knows.
WITH_CONSTANTS = ("difficulty_weighted_info_nce", "hard_negative_cclk", "generalized_cross_entropy-form=released")


def of_leaf(call: Call, batch: Batch, **hyperparameters: Any) -> Function:
    """The call as a function of its views, made unit rows in it, or of its logits."""

    def function(leaf: Tensor) -> Tensor:
        value = normalize(leaf, dim=-1) if call.leaf == "views" else leaf
        first, inputs = call.arguments(batch | {call.leaf: value})
        return call.function(first, **inputs | hyperparameters)

    return function


def second(function: Function, leaf: Tensor) -> Tensor:
    """The gradient of half the squared gradient."""
    leaf = leaf.detach().requires_grad_()
    (gradient,) = torch.autograd.grad(function(leaf), leaf, create_graph=True)
    return torch.autograd.grad(gradient.square().sum() / 2, leaf)[0]


@every_call
def test_second_derivatives(call: Call) -> None:
    batch = make_batch([0, 0, 1, 1, 0], [0, 1, 0, 1, 0])
    function, leaf = of_leaf(call, batch), batch[call.leaf].requires_grad_()
    if not str(call).startswith(WITH_CONSTANTS) or "weight_gradient" in call.options:
        assert torch.autograd.gradgradcheck(function, leaf, fast_mode=True)
    by_transforms = grad(lambda x: grad(function)(x).square().sum() / 2)(leaf.detach())
    torch.testing.assert_close(by_transforms, second(function, leaf))


@every_call
def test_degenerate_batches_have_finite_second_derivatives(call: Call) -> None:
    for edge, labels in EDGES.items():
        for views in (1, 2) if call.name in ONE_VIEW else (2,):
            batch = make_batch(*labels, views=views)
            assert second(of_leaf(call, batch), batch[call.leaf]).isfinite().all(), edge


LABELS = [([0, 0, 1, 1, 2], [0, 1, 0, 1, 2]), ([1, 0, 2, 1, 0], [2, 1, 0, 1, 0]), ([0, 0, 0, 1, 2], [0, 0, 1, 0, 2])]


@every_call
@pytest.mark.parametrize("mapped", ["all", "embeddings", "labels"])
def test_vmap_over_batches_equals_a_loop(call: Call, mapped: str) -> None:
    batches = [make_batch(*pair, seed=seed) for seed, pair in enumerate(LABELS)]
    names = {"all": list(batches[0]), "embeddings": [call.leaf], "labels": ["target", "bias", "bias_features"]}[mapped]
    several = {name: torch.stack([batch[name] for batch in batches]) for name in names}
    leaf = batches[0][call.leaf]
    expected = [call.gradient(batches[0] | {name: batch[name] for name in names}) for batch in batches]

    def value(leaf: Tensor, parts: Batch) -> Tensor:
        return call(batches[0] | parts | {call.leaf: leaf})

    leaves = several.pop(call.leaf, leaf.expand(len(batches), *leaf.shape)).clone().requires_grad_()
    check_both_ways(vmap(value)(leaves, several), leaves, expected)
    gradients, values = vmap(grad_and_value(value))(leaves.detach(), several)
    check(values, gradients, expected)
    if mapped == "labels":
        once = leaf.clone().requires_grad_()
        total = vmap(value, in_dims=(None, 0))(once, several).sum()
        torch.testing.assert_close(torch.autograd.grad(total, once)[0], sum(gradient for _, gradient in expected))


def check_both_ways(values: Tensor, leaves: Tensor, expected: list[tuple[Tensor, Tensor]]) -> None:
    check(values, torch.autograd.grad(values.sum(), leaves)[0], expected)


def check(values: Tensor, gradients: Tensor, expected: list[tuple[Tensor, Tensor]]) -> None:
    torch.testing.assert_close(values, torch.stack([value for value, _ in expected]))
    torch.testing.assert_close(gradients, torch.stack([gradient for _, gradient in expected]))


def numbers(call: Call) -> dict[str, list[float]]:
    """Values of each hyperparameter that is a number: its default, the ends of its search, and 0 where it may be 0."""
    return {knob.key: values for knob in knobs(call.function) if (values := few_values(knob))}


def few_values(knob: Knob) -> list[float]:
    kind = next((kind for kind in knob.kinds if kind in (int, float)), None)
    if kind is None:
        return []
    start = kind(1) if knob.default in (None, 0) else knob.default
    searched = [knob.searched.low, knob.searched.high] if knob.searched else [start / 2, 2 * start]
    values = [0, *searched, *([knob.default] if knob.default is not None else [])]
    return sorted({kind(value) for value in values if allowed(knob, kind(value))})


def allowed(knob: Knob, value: float) -> bool:
    ranges = [note for part in (knob.type, *get_args(knob.type)) for note in get_args(part) if isinstance(note, Range)]
    return all(
        (note.low is None or value >= note.low)
        and (note.above is None or value > note.above)
        and (note.high is None or value <= note.high)
        and (note.below is None or value < note.below)
        for note in ranges
    )


@every_call
def test_vmap_over_hyperparameters_equals_a_loop_over_their_values(call: Call) -> None:
    batch, grid = make_batch(), numbers(call)
    count = max((len(values) for values in grid.values()), default=1)
    configurations = [{name: values[i % len(values)] for name, values in grid.items()} for i in range(count)]
    expected = [Call(call.name, call.given | configuration).gradient(batch) for configuration in configurations]
    tensors = {name: torch.tensor([one[name] for one in configurations]) for name in grid}

    def value(leaf: Tensor, hyperparameters: dict[str, Tensor]) -> Tensor:
        return Call(call.name, call.given | hyperparameters)(batch | {call.leaf: leaf})

    leaf = batch[call.leaf]
    leaves = leaf.expand(count, *leaf.shape).clone().requires_grad_()
    if not grid:
        return
    check_both_ways(vmap(value)(leaves, tensors), leaves, expected)
    check(*reversed(vmap(grad_and_value(value), in_dims=(None, 0))(leaf, tensors)), expected)


@every_call
def test_the_gradient_to_a_hyperparameter(call: Call) -> None:
    """Of those that are fractions, between the ends of their search."""
    batch = make_batch()
    inner = {
        name: torch.tensor((values[-2] + values[-1]) / 2, dtype=torch.float64, requires_grad=True)
        for name, values in numbers(call).items()
        if isinstance(values[0], float)
    }

    def value(*tensors: Tensor) -> Tensor:
        return Call(call.name, call.given | dict(zip(inner, tensors, strict=True)))(batch)

    if inner:
        assert torch.autograd.gradcheck(value, tuple(inner.values()))
