"""Networks of several seeds as one model: the mean of their probabilities (Lakshminarayanan et al., NeurIPS 2017)."""

import math
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from study.files import write_atomically


def mean_log_probabilities(log_probabilities: Sequence[Tensor]) -> Tensor:
    """Return the log of the mean probability, (N, classes) float64, in nats.

    Args:
        log_probabilities: of each network, (N, classes), in nats.
    """
    return torch.stack([each.double() for each in log_probabilities]).logsumexp(0) - math.log(len(log_probabilities))


def log_probabilities_file(model: Path, split: str) -> Path:
    """Return the file with what the network of these weights says of a split."""
    return model.with_suffix(f".{split}.safetensors")


def write_log_probabilities(path: Path, log_probabilities: Tensor) -> None:
    """Write log p of each class, (N, classes) float32, as safetensors, in one step."""
    from safetensors.torch import save

    write_atomically(path, save({"log_probabilities": log_probabilities.cpu().contiguous()}))


def read_log_probabilities(path: Path) -> Tensor | None:
    """Read log p of each class, (N, classes) float32; None: there is no such file, or it cannot be read."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        return load_file(path)["log_probabilities"]
    except (OSError, SafetensorError, KeyError):
        return None
