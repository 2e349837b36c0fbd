"""A split on the device, once; a batch is an indexing there."""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from study.data.dataset import Facts, Split
from study.methods import Labels


class Resident:
    """The arrays of a split as tensors. On the CPU they are the split's own memory, shared by every trial of a machine;
    on a GPU the inputs of one array lie there once, however many splits of this process have it.

    Args:
        split: read, never written.
    """

    def __init__(self, split: Split, facts: Facts, device: torch.device) -> None:
        self.device = device
        self._copy = self._of(split.inputs)
        self.inputs, self.target = self._copy.tensor, tensor(split.target, device)
        self.bias = None if split.bias is None else tensor(split.bias, device)
        self.condition = None if split.condition is None else tensor(split.condition, device)
        self._mean, self._deviation = (_per_channel(value, device) for value in (facts.mean, facts.deviation))

    @property
    def labels(self) -> Labels:
        """All that is known of the samples besides their inputs."""
        return Labels(self.target, self.bias, self.condition)

    def __len__(self) -> int:
        return len(self.target)

    def batches(self, order: Tensor, size: int) -> Iterator[Tensor]:
        """Positions (N,) on the CPU as batches of this size on the device, the last one perhaps smaller."""
        yield from order.to(self.device).split(size)

    def in_order(self, size: int) -> Iterator[Tensor]:
        """The positions of all samples as batches on the device."""
        yield from torch.arange(len(self), device=self.device).split(size)

    def pixels(self, index: Tensor) -> Tensor:
        """The samples at these positions: images as floats in [0, 1], (B, C, H, W); rows of a table as they are."""
        chosen = self._chosen(index)
        return chosen.float().div_(255.0) if chosen.dtype == torch.uint8 else chosen

    def normalised(self, pixels: Tensor) -> Tensor:
        """The pixels as the network sees them; rows of a table as they are."""
        return pixels if self.inputs.dtype != torch.uint8 else pixels.sub(self._mean).div_(self._deviation)

    def _of(self, array: NDArray[Any]) -> "Copy":
        """Return where the inputs lie that batches are taken from."""
        return copy(array, self.device)

    def _chosen(self, index: Tensor) -> Tensor:
        """The inputs at these positions, as they are stored, on the device."""
        return self.inputs[index]


@dataclass(frozen=True, eq=False)
class Copy:
    """An array as a tensor. It keeps the array, so that no other takes its identity."""

    array: NDArray[Any]
    tensor: Tensor


_copies: WeakValueDictionary[tuple[int, torch.device], Copy] = WeakValueDictionary()


def copy(array: NDArray[Any], device: torch.device) -> Copy:
    """The one copy of an array on a device, for as long as somebody has it."""
    place = (id(array), device)
    found = _copies.get(place)
    if found is None:
        found = _copies[place] = Copy(array, tensor(array, device))
    return found


def _per_channel(value: float | tuple[float, ...], device: torch.device) -> Tensor | float:
    return torch.tensor(value, device=device)[:, None, None] if isinstance(value, tuple) else value


def tensor(array: NDArray[Any], device: torch.device) -> Tensor:
    """An array on a device; on the CPU it is the array's own memory, which must not be written."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The given NumPy array is not writable", UserWarning)
        return torch.from_numpy(np.ascontiguousarray(array)).to(device)
