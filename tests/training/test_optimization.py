"""Optimizers against a plain loop over tensors, schedules against values worked out by hand."""

import math
from dataclasses import replace
from typing import get_args, get_type_hints

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from study.training.config import TrainOptions
from study.training.optimization import LARS, learning_rate_at, make_lr_scheduler, make_optimizer

CPU = torch.device("cpu")
OPTIMIZERS = get_args(get_type_hints(TrainOptions)["optimizer"])
OPTIONS = TrainOptions(epochs=80, learning_rate=0.001)


def rates(options: TrainOptions) -> list[float]:
    """The rate in each epoch, as an optimizer has it."""
    of = make_optimizer([nn.Parameter(torch.zeros(2))], options, CPU)
    plan = make_lr_scheduler(of, options)
    found = []
    for _ in range(options.epochs):
        found.append(of.param_groups[0]["lr"])
        of.step()
        plan.step()
    return found


def test_steps_fall_where_the_fairkl_protocol_has_them() -> None:
    found = rates(replace(OPTIONS, lr_milestones=(0.333, 0.667)))  # 80 epochs: 26.64 and 53.36
    assert found[:27] == [0.001] * 27
    assert found[27:53] == pytest.approx([1e-4] * 26)
    assert found[53:] == pytest.approx([1e-5] * 27)
    halved = rates(replace(OPTIONS, epochs=4, lr_milestones=(0.5,), lr_decay=0.5))
    assert halved == [0.001, 0.001, 0.0005, 0.0005]


@pytest.mark.slow
@given(epochs=st.integers(1, 40), shares=st.lists(st.floats(0.001, 0.999), max_size=4), rate=st.floats(1e-5, 10.0))
def test_steps_are_those_of_multi_step_lr_to_the_last_bit(epochs: int, shares: list[float], rate: float) -> None:
    options = TrainOptions(epochs=epochs, learning_rate=rate, lr_milestones=tuple(shares))
    of = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=rate)
    milestones = [max(1, round(share * epochs)) for share in shares]
    plan = torch.optim.lr_scheduler.MultiStepLR(of, milestones)
    expected = []
    for _ in range(epochs):
        expected.append(of.param_groups[0]["lr"])
        of.step()
        plan.step()
    apart = len(set(milestones)) == len(milestones)
    assert rates(options) == (expected if apart else pytest.approx(expected, rel=1e-12))


def test_a_cosine_ends_at_its_floor() -> None:
    options = TrainOptions(epochs=100, learning_rate=0.1, schedule="cosine", lr_floor=0.001)  # FSCL protocol
    assert learning_rate_at(0.1, 0, options) == 0.1
    assert learning_rate_at(0.1, 50, options) == pytest.approx((0.1 + 0.0001) / 2)
    assert learning_rate_at(0.1, 25, options) == pytest.approx(0.0001 + 0.0999 * (1 + math.sqrt(0.5)) / 2)
    assert learning_rate_at(0.1, 100, options) == pytest.approx(0.0001)
    assert learning_rate_at(0.1, 150, options) == pytest.approx(0.0001)  # does not rise again
    assert rates(options) == [learning_rate_at(0.1, epoch, options) for epoch in range(100)]


def test_a_warm_up_is_the_smaller_of_ramp_and_schedule() -> None:
    options = TrainOptions(epochs=1000, learning_rate=1.0, schedule="cosine", warmup_epochs=10)  # CCL-K protocol
    found = rates(options)
    assert found[:9] == pytest.approx([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9])
    assert found[9] == pytest.approx((1 + math.cos(math.pi * 9 / 1000)) / 2)
    assert found[10:] == rates(replace(options, warmup_epochs=0))[10:]
    short = TrainOptions(epochs=4, learning_rate=1.0, schedule="cosine", warmup_epochs=4)
    assert rates(short) == pytest.approx([0.25, 0.5, 0.5, (1 - math.sqrt(0.5)) / 2])


def plain_lars(tensors: list[Tensor], grads: list[list[Tensor]], rate: float, momentum: float, decay: float) -> None:
    """The protocol's update, tensor by tensor, in float64."""
    velocity = [torch.zeros_like(tensor) for tensor in tensors]
    for step in grads:
        for index, (tensor, grad) in enumerate(zip(tensors, step, strict=True)):
            length, slope = float(tensor.norm()), float(grad.norm())
            divisor = slope + decay * length
            local = 0.001 * length / divisor if divisor else 0.0
            velocity[index] = momentum * velocity[index] + local * (grad + decay * tensor)
            tensor -= rate * velocity[index]


@pytest.mark.parametrize(("momentum", "decay"), [(0.9, 1e-4), (0.0, 0.5), (0.9, 0.0)])
def test_lars_is_the_plain_loop(momentum: float, decay: float) -> None:
    generator = torch.Generator().manual_seed(3)
    shapes = [(16, 3, 5, 5), (16,), (84, 120), (), (7,)]
    start = [torch.randn(shape, generator=generator, dtype=torch.float64) for shape in shapes]
    start[4].zero_()
    grads = [[torch.randn(shape, generator=generator, dtype=torch.float64) for shape in shapes] for _ in range(5)]
    grads[2][1].zero_()
    expected = [tensor.clone() for tensor in start]
    plain_lars(expected, grads, 0.25, momentum, decay)
    found = [nn.Parameter(tensor.clone()) for tensor in start]
    lars = LARS(found, lr=0.25, momentum=momentum, weight_decay=decay)
    for step in grads:
        for tensor, grad in zip(found, step, strict=True):
            tensor.grad = grad
        lars.step()
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one.detach(), other, rtol=1e-7, atol=0)
    assert not found[4].any()  # what starts at zero stays there


def test_lars_leaves_what_has_no_gradient() -> None:
    moved, still = nn.Parameter(torch.ones(3)), nn.Parameter(torch.ones(3))
    lars = LARS([{"params": [moved, still]}, {"params": [nn.Parameter(torch.ones(1))], "lr": 1.0}], lr=0.1)
    moved.grad = torch.ones(3)
    assert lars.step(lambda: 5.0) == 5.0
    assert torch.equal(still, torch.ones(3))
    assert moved.tolist() == pytest.approx([1 - 0.1 * 0.001] * 3, abs=1e-7)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_what_is_configured_is_used(name: str) -> None:
    options = TrainOptions(optimizer=name, learning_rate=0.02, momentum=0.7, weight_decay=0.003)
    (group,) = make_optimizer([nn.Parameter(torch.ones(3))], options, CPU).param_groups
    assert (group["lr"], group["weight_decay"]) == (0.02, 0.003)
    assert name == "adam" or group["momentum"] == 0.7
