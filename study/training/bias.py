"""What a method is told about the bias of the training samples."""

import torch

from study.data.dataset import Dataset
from study.methods import Labels
from study.training.config import TrialConfig
from study.training.resident import Resident


def known_labels(config: TrialConfig, dataset: Dataset, device: torch.device) -> Labels:
    """The labels of the training split as the `method` section lets its method know them."""
    train = Resident(dataset.splits["train"], dataset.facts, device)
    return Labels(train.target, train.bias, train.condition)
