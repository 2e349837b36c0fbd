"""The optimizer and the learning-rate schedule that a `train` section asks for."""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR

from study.errors import UserError
from study.models import Encoder
from study.training.config import TrainOptions
from study.training.eager import SGD, Adam
from study.training.lars import LARS
from study.training.schedule import rate_at

Parameters = Iterable[nn.Parameter] | Iterable[dict[str, Any]]


def adam(
    parameters: Parameters, rate: float, options: TrainOptions, device: torch.device, decay: float = 0.0
) -> Optimizer:
    """Adam; on CUDA one launch for all parameters."""
    on_gpu = device.type == "cuda"
    return Adam(parameters, lr=rate, weight_decay=decay, fused=on_gpu or None, capturable=on_gpu and options.graph)


def _adam(parameters: Parameters, options: TrainOptions, device: torch.device) -> Optimizer:
    return adam(parameters, options.learning_rate, options, device, options.weight_decay)


def _sgd(parameters: Parameters, options: TrainOptions, device: torch.device) -> Optimizer:
    rate, decay = options.learning_rate, options.weight_decay
    fused = device.type == "cuda" or None
    return SGD(parameters, lr=rate, momentum=options.momentum, weight_decay=decay, fused=fused)


def _lars(parameters: Parameters, options: TrainOptions, device: torch.device) -> Optimizer:
    rate, decay = options.learning_rate, options.weight_decay
    return LARS(parameters, lr=rate, momentum=options.momentum, weight_decay=decay)


OPTIMIZERS: dict[str, Callable[[Parameters, TrainOptions, torch.device], Optimizer]] = {
    "adam": _adam,
    "sgd": _sgd,
    "lars": _lars,
}


def optimizer(parameters: Parameters, options: TrainOptions, device: torch.device) -> Optimizer:
    """The optimizer of `train.optimizer`, for these parameters on a device."""
    return OPTIMIZERS[options.optimizer](parameters, options, device)


def groups(networks: nn.Module, options: TrainOptions) -> Parameters:
    """The parameters that are trained, for `optimizer`: those of encoders with an `lr_factor` are groups of their own.

    Raises:
        UserError: all are frozen.
    """
    factors = {
        id(tensor): encoder.lr_factor
        for encoder in networks.modules()
        if isinstance(encoder, Encoder)
        for tensor in encoder.parameters()
    }
    trained = [tensor for tensor in networks.parameters() if tensor.requires_grad]
    if not trained:
        raise UserError("model.frozen: nothing is left to train. Freeze fewer stages, or put a projection head on them")
    by_factor: dict[float, list[nn.Parameter]] = {}
    for tensor in trained:
        by_factor.setdefault(factors.get(id(tensor), 1.0), []).append(tensor)
    if by_factor.keys() == {1.0}:
        return trained
    rate = options.learning_rate
    return [{"params": part, "lr": rate * factor, "lr_factor": factor} for factor, part in by_factor.items()]


def schedule(of: Optimizer, options: TrainOptions) -> LambdaLR:
    """The schedule of `train.schedule` for an optimizer: step it once after each epoch.

    Its state dict, and the optimizer's, hold all that a trial resumed at an epoch needs to go on with the same rates.
    """
    for group in of.param_groups:
        group["initial_lr"] = 1.0  # what LambdaLR multiplies by: so the rates are those of `rate_at` to the last bit

    def rates(factor: float) -> Callable[[int], float]:
        return lambda epoch: factor * rate_at(options.learning_rate, epoch, options)

    return LambdaLR(of, [rates(group.get("lr_factor", 1.0)) for group in of.param_groups])
