"""What a trial has while it trains, besides its networks."""

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

    def keep(self, epoch: int, epochs: int) -> None:
        """Write the state after an epoch whose metrics the caller knows, unless it is the last."""
        if self.kept is not None and epoch < epochs:
            self.kept.keep(epoch)
