"""Learning rates by epoch: functions of the epoch alone, so that a trial resumed at an epoch goes on exactly."""

import math
from collections.abc import Callable

from study.training.config import TrainOptions


def constant(rate: float, epoch: int, options: TrainOptions) -> float:
    """Always `rate`."""
    return rate


def steps(rate: float, epoch: int, options: TrainOptions) -> float:
    """`rate` times `lr_decay` once for each of `lr_milestones`, rounded to whole epochs, that has passed."""
    for share in options.lr_milestones:
        if max(1, round(share * options.epochs)) <= epoch:
            rate *= options.lr_decay
    return rate


def cosine(rate: float, epoch: int, options: TrainOptions) -> float:
    """Half a cosine from `rate` in the first epoch to `lr_floor` times it where the epoch after the last would be."""
    floor = rate * options.lr_floor
    return floor + (rate - floor) * (1 + math.cos(math.pi * min(epoch / options.epochs, 1.0))) / 2


SCHEDULES: dict[str, Callable[[float, int, TrainOptions], float]] = {
    "constant": constant,
    "steps": steps,
    "cosine": cosine,
}


def rate_at(rate: float, epoch: int, options: TrainOptions) -> float:
    """The learning rate of an epoch, counted from 0, where the largest is `rate`.

    It is the schedule's or that of a line through rate / warmup_epochs in the first epoch and `rate` in the epoch
    number warmup_epochs, whichever is smaller (CCL-K protocol).
    """
    scheduled = SCHEDULES[options.schedule](rate, epoch, options)
    if epoch >= options.warmup_epochs:
        return scheduled
    return min(scheduled, rate * (epoch + 1) / options.warmup_epochs)
