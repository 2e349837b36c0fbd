"""Optimizers without PyTorch's compiler give its bits, and do not load it."""

import subprocess
import sys
from typing import Any

import pytest
import torch
from helpers import ROOT
from torch import Tensor

from study.training import optimization as eager

TRAINS = """
import sys
from study import data
from study.spec import load_study
from study.training.trial import Trial
for optimizer in ("adam", "sgd", "lars"):
    given = ["train.epochs=1", "search.early_stopping={}", f"train.optimizer={optimizer}"]
    spec = load_study("fairkl_digits", given)
    for metrics in Trial(spec.trial_config({}), data.load(spec.trial_data_sections[0])).train_epochs():
        print(optimizer, sorted({"torch._dynamo", "sympy"} & set(sys.modules)))
"""

KINDS: list[tuple[str, dict[str, Any]]] = [
    ("Adam", {"lr": 0.01, "weight_decay": 0.1}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.1}),
    ("LBFGS", {"max_iter": 3}),
]


@pytest.mark.parametrize(("name", "options"), KINDS)
def test_each_gives_the_bits_of_pytorchs_own(name: str, options: dict[str, Any]) -> None:
    """Steps, and what is saved in between, loaded by the other one."""
    assert torch.equal(moved(eager, torch.optim, name, options), moved(torch.optim, eager, name, options))


def moved(first: Any, second: Any, name: str, options: dict[str, Any]) -> Tensor:
    """Weights after three steps with one optimizer and three with another that goes on from its state."""
    weights = torch.linspace(-1.0, 1.0, 12).reshape(3, 4).requires_grad_()
    target = torch.arange(12.0).reshape(3, 4).sin()
    before = getattr(first, name)([weights], **options)
    after = getattr(second, name)([weights], **options)
    for optimizer in (before, after):
        if optimizer is after:
            after.load_state_dict(before.state_dict())

        def loss(optimizer: Any = optimizer) -> Tensor:
            optimizer.zero_grad()
            value = ((weights - target) ** 4).sum()
            value.backward()
            return value

        for _ in range(3):
            optimizer.step(loss)
    return weights.detach()


@pytest.mark.slow
def test_a_trial_loads_no_compiler() -> None:
    """It would be seconds of the first epoch of each process."""
    done = subprocess.run([sys.executable, "-c", TRAINS], capture_output=True, text=True, cwd=ROOT, timeout=120)
    assert (done.returncode, done.stdout) == (0, "adam []\nsgd []\nlars []\n"), done.stderr
