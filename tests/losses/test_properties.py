"""What holds for every loss: invariances, finite values on degenerate batches, precision, gradients, one graph."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from loss_calls import CALLS, COMPARES_SAMPLES, EDGES, ONE_VIEW, TARGET, Call, every_call, make_batch
from torch.nn.functional import normalize

from study.knobs import read_knobs


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
    if "temperature" in {knob.key for knob in read_knobs(call.function)}:
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
    assert torch.autograd.gradcheck(lambda value: call(batch | {call.leaf: value}), leaf, fast_mode=True)


@pytest.mark.parametrize(
    "call", [pytest.param(call, marks=pytest.mark.long if call.given else pytest.mark.slow) for call in CALLS], ids=str
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
