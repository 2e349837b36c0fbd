"""Losses and methods in float32 on a device against float64 on the CPU: values and gradients, on random inputs."""

from collections.abc import Iterator
from typing import Any

import torch
from tiny_methods import FACTS, batch_for, build
from torch import Tensor
from torch.nn import functional

from study import methods
from study.losses.loss_catalogue import losses_by_name, regularisers_by_name
from study.methods import Batch, BatchLabels

MOST = 1e-4
"""Largest relative difference."""


def has_values(device: str) -> bool:
    """Whether a device computes; a simulated one does not."""
    return float((torch.ones(4, device=device) * 2).sum()) == 8.0


def parity(device: str) -> Iterator[dict[str, Any]]:
    """One row for each loss, regulariser and method: relative differences of value and gradient, and whether both are
    below `MOST`."""
    if not has_values(device):
        yield {"loss": "all", "left out": "cannot be told: this device does not compute"}
        return
    for name, value, gradient in (*_losses(device), *_methods(device)):
        yield {"loss": name, "value": value, "gradient": gradient, "fits": max(value, gradient) < MOST}


def _losses(device: str) -> Iterator[tuple[str, float, float]]:
    generator = torch.Generator().manual_seed(0)
    rows, extra = functional.normalize(torch.randn(2, 2, 256, 128, generator=generator, dtype=torch.float64), dim=3)
    labels = {"target": torch.arange(256) % 10, "bias": torch.arange(256) // 7 % 10}
    inputs = labels | {"biased_views": extra, "bias_features": extra[0], "condition": extra[:, :, :3]}
    for name, function in (losses_by_name() | regularisers_by_name()).items():
        known = set(function.__annotations__) - ({"bias_features"} if name == "fair_kl" else set())
        given = {key: value for key, value in inputs.items() if key in known}
        exact = rows.clone().requires_grad_()
        value = function(exact, **given)
        value.backward()
        there = {key: tensor.to(device, _single(tensor)) for key, tensor in given.items()}
        fast = rows.to(device, torch.float32).requires_grad_()
        found = function(fast, **there)
        found.backward()
        assert exact.grad is not None
        assert fast.grad is not None
        yield name, _apart(value, found), _apart(exact.grad, fast.grad)


def _methods(device: str) -> Iterator[tuple[str, float, float]]:
    for name in methods.method_names():
        section = {key: knob.default for key, knob in methods.method_knobs({"name": name}).items()} | {"name": name}
        if list(methods.unmet_needs(section, FACTS)):
            continue
        exact, fast = build(name).double(), build(name)
        batch = batch_for(exact)
        batch_for(fast)
        fast.load_state_dict(exact.state_dict())
        loss, _ = exact(_moved(batch, "cpu", torch.float64))
        found, _ = fast.to(device)(_moved(batch, device, torch.float32))
        loss.backward()
        found.backward()
        pairs = [(one.grad, other.grad) for one, other in zip(exact.parameters(), fast.parameters(), strict=True)]
        gradients = [_apart(one, other) for one, other in pairs if one is not None and other is not None]
        yield f"method {name}", _apart(loss, found), max(gradients, default=0.0)


def _moved(batch: Batch, device: str, kind: torch.dtype) -> Batch:
    labels = batch.labels
    told = [None if one is None else one.to(device) for one in (labels.target, labels.bias)]
    condition = None if labels.condition is None else labels.condition.to(device, kind)
    return Batch(batch.views.to(device, kind), BatchLabels(*told, condition), batch.index.to(device))


def _single(tensor: Tensor) -> torch.dtype:
    return torch.float32 if tensor.is_floating_point() else tensor.dtype


def _apart(exact: Tensor, found: Tensor) -> float:
    """The largest difference over the largest value."""
    exact, found = exact.detach().double(), found.detach().cpu().double()
    return float((found - exact).abs().max() / exact.abs().max().clamp(min=1e-12))
