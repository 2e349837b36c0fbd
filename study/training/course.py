"""What a trial has while it trains, besides its networks."""

from collections.abc import Container, Mapping
from dataclasses import dataclass

import torch
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR

from study.methods import Labels
from study.training.checkpoint import Checkpoint
from study.training.chosen_weights import ChosenWeights


@dataclass(frozen=True)
class Course:
    """From `TrainingLoop.begin` to the last epoch.

    Attributes:
        labels: of the training split, as the method knows them.
        main, beside: the optimizers of the method and of the probes.
        rates: the schedule of `main`.
        order, chance: give the order of the samples, and their augmentation.
        kept: the file that the state is written to, if there is one.
        at_end: the file that the state behind the last epoch is written to, if it is asked for.
        chosen: the weights of the epoch chosen so far, if one is chosen.
        done: epochs that were over when it began.
        untold: the metrics of the last of these, where the caller does not know them yet.
        may_stop: epochs whose state is written before their metrics are given.
    """

    labels: Labels
    main: Optimizer
    beside: Optimizer
    rates: LambdaLR
    order: torch.Generator
    chance: torch.Generator
    kept: Checkpoint | None
    at_end: Checkpoint | None
    chosen: ChosenWeights | None
    done: int
    untold: dict[str, float] | None
    may_stop: Container[int]

    def keep_untold(self, epoch: int, metrics: Mapping[str, float]) -> None:
        """Write the state after an epoch whose metrics the caller does not know yet, if it may stop there."""
        if self.kept is not None and epoch in self.may_stop:
            self.kept.keep(epoch, metrics)

    def keep(self, epoch: int, epochs: int) -> None:
        """Write the state after an epoch whose metrics the caller knows, unless it is the last or was written."""
        if self.kept is not None and epoch < epochs and epoch not in self.may_stop:
            self.kept.keep(epoch)
