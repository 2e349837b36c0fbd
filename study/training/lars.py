"""LARS (You et al. 2017), as the CCL-K paper trains with it: momentum SGD with a rate of its own for every tensor."""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor

from study.training.eager import Eager

TINY = 1e-8  # keeps 0/0 from a tensor that has no gradient


class LARS(Eager):
    """Layer-wise adaptive rate scaling: each tensor moves by a set share of its own length.

    A tensor w with gradient g is given to momentum SGD as r (g + weight_decay w), with
    r = trust |w| / (|g| + weight_decay |w|). Applied to every tensor, biases and batch normalisation included, as in
    the CCL-K protocol: one that starts at zero stays there.

    Args:
        params: tensors, or groups of them.
        lr: the rate that all tensors share; the protocol's base rate times batch size / 256.
        momentum, weight_decay: as of SGD.
        trust: the trust coefficient.
    """

    def __init__(
        self,
        params: Iterable[Tensor] | Iterable[dict[str, Any]],
        lr: float,
        momentum: float = 0.9,
        weight_decay: float = 0.0,
        trust: float = 1e-3,
    ) -> None:
        super().__init__(params, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay, "trust": trust})

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """One step, without waiting for the device; gives what `closure` gives, if there is one."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            moving = [tensor for tensor in group["params"] if tensor.grad is not None]
            if moving:
                self._step(group, moving)
        return loss

    def _step(self, group: dict[str, Any], moving: list[Tensor]) -> None:
        grads = [tensor.grad for tensor in moving if tensor.grad is not None]
        decay = group["weight_decay"]
        # a list of norms at once copies from the host, which no step that is recorded may do; its rate is a tensor
        norms = _each_norm if isinstance(group["lr"], Tensor) else torch._foreach_norm
        length, slope = (torch.stack(list(norms(tensors))) for tensors in (moving, grads))
        rates = group["trust"] * length / (slope + decay * length + TINY)
        velocity = [self._velocity(tensor) for tensor in moving]
        torch._foreach_mul_(velocity, group["momentum"])
        torch._foreach_addcmul_(velocity, grads, list(rates.unbind()))
        torch._foreach_addcmul_(velocity, moving, list((rates * decay).unbind()))
        rate = group["lr"]
        if isinstance(rate, Tensor):  # of a step that is recorded
            torch._foreach_sub_(moving, torch._foreach_mul(velocity, rate))
        else:
            torch._foreach_add_(moving, velocity, alpha=-rate)

    def _velocity(self, tensor: Tensor) -> Tensor:
        state = self.state[tensor]
        if not state:
            state["momentum_buffer"] = torch.zeros_like(tensor)
        velocity: Tensor = state["momentum_buffer"]
        return velocity


def _each_norm(tensors: list[Tensor]) -> list[Tensor]:
    return [torch.linalg.vector_norm(tensor) for tensor in tensors]
