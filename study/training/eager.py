"""PyTorch's optimizers as they are without its compiler.

Each call of theirs imports `torch._dynamo`, so that a graph under compilation breaks there: some 900 modules, SymPy and
Triton among them, seconds of each process's first epoch. Here optimizers are never compiled, only a method is
(`train.compile`), so that nothing of it is needed.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch.optim import Optimizer

Function = TypeVar("Function", bound=Callable[..., Any])


def plain(function: Function) -> Function:
    """A function without what PyTorch wraps around it, where it does."""
    return getattr(function, "__wrapped__", function)


class Eager(Optimizer):
    """An optimizer whose calls do not look for a compiler; to be inherited from before the optimizer itself."""

    state_dict = plain(Optimizer.state_dict)
    load_state_dict = plain(Optimizer.load_state_dict)
    add_param_group = plain(Optimizer.add_param_group)
    zero_grad = plain(Optimizer.zero_grad)


class Adam(Eager, torch.optim.Adam):
    """`torch.optim.Adam`, bit for bit."""

    step = torch.no_grad()(plain(torch.optim.Adam.step))


class SGD(Eager, torch.optim.SGD):
    """`torch.optim.SGD`, bit for bit."""

    step = torch.no_grad()(plain(torch.optim.SGD.step))


class LBFGS(Eager, torch.optim.LBFGS):
    """`torch.optim.LBFGS`, bit for bit."""
