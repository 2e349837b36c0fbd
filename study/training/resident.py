"""A split on the device, once; a batch is an indexing there."""

import warnings
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from study.data.dataset import Facts, Split
from study.methods import Labels


class Resident:
    """The arrays of a split as tensors. On the CPU they are the split's own memory, shared by every trial of a machine.

    Args:
        split: read, never written.
    """

    def __init__(self, split: Split, facts: Facts, device: torch.device) -> None:
        self.inputs, self.target = tensor(split.inputs, device), tensor(split.target, device)
        self.bias = None if split.bias is None else tensor(split.bias, device)
        self.condition = None if split.condition is None else tensor(split.condition, device)
        self._mean, self._deviation = (_per_channel(value, device) for value in (facts.mean, facts.deviation))

    @property
    def labels(self) -> Labels:
        """All that is known of the samples besides their inputs."""
        return Labels(self.target, self.bias, self.condition)

    def __len__(self) -> int:
        return len(self.target)

    def pixels(self, index: Tensor) -> Tensor:
        """The samples at these positions: images as floats in [0, 1], (B, C, H, W); rows of a table as they are."""
        chosen = self.inputs[index]
        return chosen.float().div_(255.0) if chosen.dtype == torch.uint8 else chosen

    def normalised(self, pixels: Tensor) -> Tensor:
        """The pixels as the network sees them; rows of a table as they are."""
        return pixels if self.inputs.dtype != torch.uint8 else pixels.sub(self._mean).div_(self._deviation)


def _per_channel(value: float | tuple[float, ...], device: torch.device) -> Tensor | float:
    return torch.tensor(value, device=device)[:, None, None] if isinstance(value, tuple) else value


def tensor(array: NDArray[Any], device: torch.device) -> Tensor:
    """An array on a device; on the CPU it is the array's own memory, which must not be written."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The given NumPy array is not writable", UserWarning)
        return torch.from_numpy(np.ascontiguousarray(array)).to(device)
