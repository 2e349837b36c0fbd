"""A step of a trial by itself."""

from collections.abc import Callable, Hashable, Iterable
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from study.methods import Batch, Method
from study.training.config import TrainOptions

# A training step recorded once as a CUDA graph, then given to the device as one launch (`train.graph`).

WARM_UP = 3
"""Full batches before the recording that run as they are, on a stream of their own: libraries choose and allocate."""

Step = Callable[[Batch], Tensor]


class RecordedStep:
    """A step as a graph: every full batch runs it, with the batch copied to where the graph reads it.

    Any other batch runs the step as it is. What a method's `recording` gives decides which graph runs: with another
    answer the step is recorded anew. The first steps, too, train as any other: the results are those of the plain step.

    Args:
        step: gives the step's loss times its samples, a scalar; it must not ask the device for anything.
        method: whose step it is.
        size: samples of a full batch.
        optimizers: those of the step; their rates become tensors on the device, which a schedule fills.
        device: a CUDA device.
    """

    def __init__(
        self, step: Step, method: Method, size: int, optimizers: Iterable[Optimizer], device: torch.device
    ) -> None:
        self._step, self._method, self._size = step, method, size
        self._stream = torch.cuda.Stream(device)
        self._warm, self._recording = 0, method.recording()
        self._graph: torch.cuda.CUDAGraph | None = None
        self._batch: Batch | None = None
        self._value: Tensor | None = None
        groups = [group for one in optimizers for group in one.param_groups]
        self._rates = [torch.as_tensor(group["lr"], device=device) for group in groups]
        for group, rate in zip(groups, self._rates, strict=True):
            group["lr"] = rate

    def __call__(self, batch: Batch) -> Tensor:
        """The step's loss times its samples; the tensor is written anew by the next call."""
        if len(batch.index) != self._size:
            return self._step(batch)
        self._look(self._method.recording())
        if self._warm < WARM_UP:
            self._warm += 1
            return self._aside(batch)
        if self._graph is None or self._batch is None or self._value is None:
            return self._record(batch)
        for ours, theirs in zip(_tensors(self._batch), _tensors(batch), strict=True):
            ours.copy_(theirs, non_blocking=True)
        self._graph.replay()
        return self._value

    def _look(self, recording: Hashable) -> None:
        """Forget the graph if the step has other operations than it."""
        if recording != self._recording:
            self._warm, self._recording = 0, recording
            self._graph = self._batch = self._value = None

    def _aside(self, batch: Batch) -> Tensor:
        here = torch.cuda.current_stream(self._stream.device)
        self._stream.wait_stream(here)
        with torch.cuda.stream(self._stream):
            value = self._step(batch)
        here.wait_stream(self._stream)
        return value

    def _record(self, batch: Batch) -> Tensor:
        self._batch, self._graph = _copied(batch), torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph, stream=self._stream):
            self._value = self._step(self._batch)
        self._graph.replay()
        return self._value


def _copied(batch: Batch) -> Batch:
    """The same in memory of its own, without what lies on the host: no step that can be recorded asks for it."""
    return Batch(batch.views.clone(), batch.labels.map(torch.clone), batch.index.clone())


def _tensors(batch: Batch) -> list[Tensor]:
    """All that lie on the device."""
    labels = batch.labels
    given = (batch.views, batch.index, labels.target, labels.bias, labels.condition, labels.bias_features)
    return [tensor for tensor in given if tensor is not None]


__all__ = ["Step", "plain_step"]


class Trained(Protocol):
    """A trial, as far as a step needs it."""

    options: TrainOptions
    method: Method
    device: torch.device

    def losses(
        self, batch: Batch, forward: Callable[[Batch], tuple[Tensor, dict[str, Tensor]]], /
    ) -> tuple[Tensor, Any]:
        """The method's loss of a batch, and the sum of the probes' losses on its features."""
        ...


def plain_step(trial: Trained, main: Optimizer, beside: Optimizer) -> Step:
    """A function that trains on a batch and gives its loss times its samples.

    Args:
        main, beside: optimizers of the trial's method and probes.
    """
    options, method = trial.options, trial.method
    forward = torch.compile(method) if options.compile else method
    recorded = options.graph and trial.device.type == "cuda" and method.recording() is not None

    def step(batch: Batch) -> Tensor:
        loss, probe_loss = trial.losses(batch, forward)
        main.zero_grad(set_to_none=True)
        beside.zero_grad(set_to_none=True)
        (loss + probe_loss).backward()
        if options.clip_norm is not None:
            # several norms at once copy from the host, which no step that is recorded may do
            nn.utils.clip_grad_norm_(method.parameters(), options.clip_norm, foreach=False if recorded else None)
        main.step()
        beside.step()
        return loss.detach() * len(batch.index)

    if recorded:
        return RecordedStep(step, method, options.batch_size, (main, beside), trial.device)
    return step
