"""The optimizer and the learning-rate schedule that a `train` section asks for."""

from collections.abc import Callable, Iterable

from torch import nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR

from study.training.config import TrainOptions
from study.training.eager import SGD, Adam
from study.training.lars import LARS
from study.training.schedule import rate_at

Parameters = Iterable[nn.Parameter]


def _adam(parameters: Parameters, options: TrainOptions) -> Optimizer:
    return Adam(parameters, lr=options.learning_rate, weight_decay=options.weight_decay)


def _sgd(parameters: Parameters, options: TrainOptions) -> Optimizer:
    rate, decay = options.learning_rate, options.weight_decay
    return SGD(parameters, lr=rate, momentum=options.momentum, weight_decay=decay)


def _lars(parameters: Parameters, options: TrainOptions) -> Optimizer:
    rate, decay = options.learning_rate, options.weight_decay
    return LARS(parameters, lr=rate, momentum=options.momentum, weight_decay=decay)


OPTIMIZERS: dict[str, Callable[[Parameters, TrainOptions], Optimizer]] = {"adam": _adam, "sgd": _sgd, "lars": _lars}


def optimizer(parameters: Parameters, options: TrainOptions) -> Optimizer:
    """The optimizer of `train.optimizer`, for these parameters."""
    return OPTIMIZERS[options.optimizer](parameters, options)


def schedule(of: Optimizer, options: TrainOptions) -> LambdaLR:
    """The schedule of `train.schedule` for an optimizer: step it once after each epoch.

    Its state dict, and the optimizer's, hold all that a trial resumed at an epoch needs to go on with the same rates.
    """
    for group in of.param_groups:
        group["initial_lr"] = 1.0  # what LambdaLR multiplies by: so the rates are those of `rate_at` to the last bit
    return LambdaLR(of, lambda epoch: rate_at(options.learning_rate, epoch, options))
