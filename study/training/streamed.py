"""A split whose inputs stay in the host's memory: each batch is brought to the device ahead of its step."""

from collections import deque
from collections.abc import Iterator
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

from study.data.dataset import Facts, Split
from study.training.device_memory import available
from study.training.resident import Copy, Resident, copy

SHARE = 0.25
"""Of the device's memory that a trial may still take: a split with more inputs than that stays in the host's. The
rest is for networks and what they compute."""

AHEAD = 2
"""Steps that the host may be ahead of the device: each holds a batch in pinned memory and one on the device."""

HOST = torch.device("cpu")


class Streamed(Resident):
    """A split whose inputs are in the host's memory; everything else is as in `Resident`, the values too.

    While a batch of `batches` or `in_order` is worked on, the next one is copied through pinned memory on a stream of
    its own. Nothing waits for the device but the host, where it is more than two steps ahead.
    """

    def __init__(self, split: Split, facts: Facts, device: torch.device) -> None:
        super().__init__(split, facts, device)
        self._stream = torch.cuda.Stream(device) if device.type == "cuda" else None
        self._used: deque[torch.cuda.Event] = deque()
        self._index: Tensor | None = None
        self._batch: tuple[Tensor, torch.cuda.Event | None] | None = None

    def batches(self, order: Tensor, size: int) -> Iterator[Tensor]:
        on_host, on_device = order.split(size), order.to(self.device).split(size)
        batch = self._brought(on_host[0])
        for place, index in enumerate(on_device):
            self._index, self._batch = index, batch
            if place + 1 < len(on_host):
                batch = self._brought(on_host[place + 1])
            yield index
        self._index = self._batch = None

    def in_order(self, size: int) -> Iterator[Tensor]:
        yield from self.batches(torch.arange(len(self)), size)

    def _of(self, array: NDArray[Any]) -> Copy:
        return copy(array, HOST)

    def _chosen(self, index: Tensor) -> Tensor:
        batch = self._batch if index is self._index else None
        values, arrived = batch or self._brought(index.cpu())
        if arrived is not None:
            here = torch.cuda.current_stream(self.device)
            here.wait_event(arrived)
            values.record_stream(here)
            self._used.append(here.record_event())
        return values

    def _brought(self, index: Tensor) -> tuple[Tensor, torch.cuda.Event | None]:
        """The inputs at these positions (B,) on the host, on their way to the device, and when they are there."""
        if self._stream is None:
            return self.inputs[index], None
        while len(self._used) > AHEAD:
            self._used.popleft().synchronize()
        shape = (len(index), *self.inputs.shape[1:])
        pinned = torch.empty(shape, dtype=self.inputs.dtype, pin_memory=True)
        torch.index_select(self.inputs, 0, index, out=pinned)
        with torch.cuda.stream(self._stream):
            return pinned.to(self.device, non_blocking=True), self._stream.record_event()


def on(device: torch.device, split: Split, facts: Facts) -> Resident:
    """The split on the device, or in the host's memory where it would take more of the device than `SHARE`."""
    if device.type == "cuda" and split.inputs.nbytes > SHARE * available(device):
        return Streamed(split, facts, device)
    return Resident(split, facts, device)
