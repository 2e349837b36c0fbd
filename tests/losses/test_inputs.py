"""Every loss of the catalogue with every kind of wrong input: a right value, or one ValueError that names it."""

import re
from collections.abc import Callable
from typing import Any

import pytest
import torch
from loss_calls import CALLS, Batch, Call, make_batch
from torch import Tensor

LABELS, BINARY = [0, 1, 0, 1, 1, 0], [0, 1, 1, 0, 1, 0]


def batch() -> Batch:
    return make_batch(LABELS, BINARY)


def given(call: Call) -> list[tuple[str, Any]]:
    """The tensors of a call by name, the first as it is called."""
    first, inputs = call.arguments(batch())
    return [(call.leaf, first), *((name, value) for name, value in inputs.items() if isinstance(value, Tensor))]


def called(call: Call, name: str, value: Any) -> Tensor:
    """The call with another value of one input."""
    first, inputs = call.arguments(batch())
    if name == call.leaf:
        return call.function(value, **inputs)
    return call.function(first, **inputs | {name: value})


EACH = [pytest.param(call, name, id=f"{call}-{name}") for call in CALLS for name, _ in given(call)]
LABEL = [one for one in EACH if one.values[1] in ("target", "bias") and not one.values[0].continuous]
each_input = pytest.mark.parametrize(("call", "name"), EACH)
each_label = pytest.mark.parametrize(("call", "name"), LABEL)

WRONG: dict[str, Callable[[Tensor], Any]] = {
    "list": lambda value: value.tolist(),
    "tuple": lambda value: tuple(value.tolist()),
    "numpy": lambda value: value.numpy(),
    "number": lambda _: 3,
    "text": lambda _: "labels",
    "without dimensions": lambda value: value.sum(),
    "one dimension less": lambda value: value[0],
    "one dimension more": lambda value: value[None, None],
    "complex": lambda value: value + 0j,
}


@each_input
def test_another_type_or_number_of_dimensions_is_told(call: Call, name: str) -> None:
    for spoil in WRONG.values():
        value = spoil(dict(given(call))[name])
        shape = re.escape(str(tuple(value.shape))) if hasattr(value, "shape") else r"a \w+"
        with pytest.raises(ValueError, match=rf"^\w+: {name} is a tensor.* of shape \(.*\), got {shape}.*"):
            called(call, name, value)


@each_input
def test_another_number_of_samples_is_told(call: Call, name: str) -> None:
    value = dict(given(call))[name]
    if name == "confusion":
        pytest.skip("has no samples")
    axis = value.ndim - 2 if name not in ("target", "bias") or value.ndim > 1 else 0
    if name in ("logits", "views") and len(given(call)) == 1:
        pytest.skip("nothing to compare it with")
    for length in (1, 5, 7):
        other = value.narrow(axis, 0, 1).repeat_interleave(length, axis)
        shape = re.escape(str(tuple(other.shape)))
        told = (
            r"got \(.*6.*\) of type" if name in ("logits", "views") else rf"{name} .*got {shape} of type .*here .*B = 6"
        )
        with pytest.raises(ValueError, match=told):
            called(call, name, torch.ones_like(other) if name in ("logits", "views") else other)


@pytest.mark.parametrize("call", CALLS, ids=str)
def test_an_empty_batch_is_told(call: Call) -> None:
    for name, value in given(call):
        if name in ("confusion", "negatives", "extra_positives"):
            continue
        with pytest.raises(ValueError, match=r"got \(.*0|is empty: \(.*0"):
            called(call, name, value[..., :0] if value.ndim == 1 else value.narrow(value.ndim - 2, 0, 0))
    first, inputs = call.arguments(batch())
    empty = {name: value[:0] if name in ("target", "bias") else value for name, value in inputs.items()}
    with pytest.raises(ValueError, match=rf"{call.leaf} is empty: \(.*0.*\) of type torch.float64, wanted is shape"):
        call.function(first[:0] if call.leaf == "logits" else first[:, :0], **empty)


@each_label
def test_labels_of_any_whole_kind_are_the_same_classes(call: Call, name: str) -> None:
    value = dict(given(call))[name]
    right = called(call, name, value)
    for kind in (torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32):
        assert torch.equal(called(call, name, value.to(kind)), right), kind


@each_label
def test_labels_that_are_no_whole_numbers_are_told(call: Call, name: str) -> None:
    if "cclk" in call.name:
        pytest.skip("takes values")
    with pytest.raises(ValueError, match=rf"{name} is a tensor of whole numbers or booleans .* type torch.float64"):
        called(call, name, dict(given(call))[name].double())


@pytest.mark.parametrize("call", CALLS, ids=str)
def test_embeddings_that_are_whole_numbers_are_told(call: Call) -> None:
    with pytest.raises(ValueError, match=rf"{call.leaf} is a tensor of floating-point numbers .* type torch.int64"):
        called(call, call.leaf, dict(given(call))[call.leaf].long())


@pytest.mark.parametrize("call", [call for call in CALLS if call.leaf == "views"], ids=str)
def test_a_similarity_of_another_batch_is_told(call: Call) -> None:
    if call.name == "biased_triplet":
        pytest.skip("takes none")
    with pytest.raises(ValueError, match=r"similarity .* of shape \(V\*B, V\*B\), got \(6, 6\) .*V = 2, B = 6, D = 6"):
        called(call, "similarity", torch.eye(6, dtype=torch.float64))


def test_a_missing_input_that_must_be_there_is_told() -> None:
    (call,) = [call for call in CALLS if str(call) == "bias_con"]
    with pytest.raises(ValueError, match=r"bias_con: target is a tensor .*got a NoneType"):
        called(call, "target", None)


SOME = 8
"""One call of so many is compiled in each run, the others with the slow tests."""


@pytest.mark.parametrize(
    "call",
    [
        pytest.param(call, id=str(call), marks=() if place % SOME == 0 else pytest.mark.slow)
        for place, call in enumerate(CALLS)
    ],
)
def test_checks_hold_for_a_compiled_loss_too(call: Call) -> None:
    """Without a break of its graph: `eager` traces as any backend does, and builds nothing."""
    first, inputs = call.arguments(batch())
    torch._dynamo.reset()
    compiled = torch.compile(call.function, backend="eager")
    assert torch.equal(compiled(first, **inputs), call.function(first, **inputs))
