"""What recipes are made of: callables of samples and a generator, each with random parameters of its own per sample.

All draw on the generator's device and read nothing back, so that a step on a GPU waits for none of them. With small
networks a GPU waits for the CPU's launches: hence all views in one call, and choices as numbers (a mask, a matrix)
rather than one call for each case.
"""

from collections.abc import Callable

import torch
from torch import Tensor

Operation = Callable[[Tensor, torch.Generator], Tensor]


class Constant:
    """A tensor that is copied to each device once."""

    def __init__(self, values: Tensor) -> None:
        self._on = {values.device: values}

    def on(self, device: torch.device) -> Tensor:
        """The tensor on a device; not to be written."""
        if device not in self._on:
            self._on[device] = next(iter(self._on.values())).to(device, non_blocking=True)
        return self._on[device]


def uniform(generator: torch.Generator, *shape: int, low: float = 0.0, high: float = 1.0) -> Tensor:
    """Uniform numbers of this shape, float32 on the generator's device."""
    return torch.empty(shape, device=generator.device).uniform_(low, high, generator=generator)


def chosen(generator: torch.Generator, batch: int, probability: float) -> Tensor:
    """Ones for the samples (B,) that an operation is applied to, zeros for the others, float32."""
    return torch.empty(batch, device=generator.device).bernoulli_(probability, generator=generator)
