"""What recipes are made of: callables of a batch and a generator, each with random parameters of its own per sample.

All draw on the generator's device and read nothing back, so that a step on a GPU waits for none of them.
"""

from collections.abc import Callable

import torch
from torch import Tensor

Operation = Callable[[Tensor, torch.Generator], Tensor]


def uniform(generator: torch.Generator, *shape: int, low: float = 0.0, high: float = 1.0) -> Tensor:
    """Uniform numbers of this shape, float32 on the generator's device."""
    return torch.rand(shape, generator=generator, device=generator.device).mul_(high - low).add_(low)


def chosen(generator: torch.Generator, batch: int, probability: float) -> Tensor:
    """Ones for the samples (B,) that an operation is applied to, zeros for the others, float32."""
    return (uniform(generator, batch) < probability).float()
