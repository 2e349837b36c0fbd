"""A step of a trial by itself."""

from collections.abc import Callable
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from study.methods import Batch, Method
from study.training.config import TrainOptions
from study.training.recorded import RecordedStep, Step

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
