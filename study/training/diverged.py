"""Detect that a trial has diverged: a value that must be finite is not."""

import math
from collections.abc import Iterable

import torch
from torch import Tensor, nn

BATCH_NORM_STATISTICS = ("running_mean", "running_var")
"""Buffers of PyTorch's normalisations that are computed from samples."""


class DivergedError(Exception):
    """The loss, the networks or their outputs became NaN or infinite; the message says what, and in which epoch."""


def check_loss_is_finite(loss: float, epoch: int) -> None:
    """Raise DivergedError if the mean loss of an epoch is not finite."""
    if not math.isfinite(loss):
        raise DivergedError(f"loss is {loss} in epoch {epoch}")


def check_networks_are_finite(parameters: Iterable[Tensor], encoders: Iterable[nn.Module], epoch: int) -> None:
    """Raise DivergedError if a weight, or a statistic of an encoder's batch normalisation, is not finite.

    The loss alone does not tell. Behind a batch normalisation, and with embeddings of length 1, weights of 1e10 give a
    finite one, while the running variance overflows: the network that is evaluated then gives every sample the same
    features, and its accuracy would pass for a result.
    """
    statistics = (
        tensor
        for encoder in encoders
        for name, tensor in encoder.named_buffers()
        if name.rpartition(".")[2] in BATCH_NORM_STATISTICS  # others may be infinite, as an attention mask is
    )
    floats = [tensor.detach() for tensor in (*parameters, *statistics) if tensor.is_floating_point()]
    if not torch.stack([tensor.isfinite().all() for tensor in floats]).all():
        raise DivergedError(f"a weight or a running statistic of the networks is not finite in epoch {epoch}")


def check_features_are_finite(features: Tensor, split: str) -> None:
    """Raise DivergedError if a sample's features are not finite: no class can be read off them."""
    lost = int((~features.isfinite()).any(1).sum())
    if lost:
        raise DivergedError(f"the features of {lost} of {len(features)} samples of {split} are not finite")
