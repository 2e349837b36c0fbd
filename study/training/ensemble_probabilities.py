"""Networks of several seeds as one model: the mean of their probabilities (Lakshminarayanan et al., NeurIPS 2017)."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

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


class SavedPredictions(NamedTuple):
    """What a network says of the samples of a split.

    Attributes:
        log_probabilities: log p of each class, (N, classes) float32, in nats.
        inferred_groups: the inferred group of each sample, (N,), by which the network was judged; None: none was.
    """

    log_probabilities: Tensor
    inferred_groups: Tensor | None = None


def write_log_probabilities(path: Path, log_probabilities: Tensor, inferred_groups: Tensor | None = None) -> None:
    """Write log p of each class, and the inferred groups, see `SavedPredictions`, as safetensors, in one step."""
    from safetensors.torch import save

    kept = {"log_probabilities": log_probabilities.cpu().contiguous()}
    if inferred_groups is not None:
        kept["inferred_groups"] = inferred_groups.cpu().contiguous()
    write_atomically(path, save(kept))


def read_log_probabilities(path: Path) -> SavedPredictions | None:
    """Read what `write_log_probabilities` wrote; None: there is no such file, or it cannot be read."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        return SavedPredictions(**load_file(path))
    except (OSError, SafetensorError, TypeError):
        return None
