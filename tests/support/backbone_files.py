"""Files of weights for networks, and published ones that a test makes itself."""

import hashlib
from pathlib import Path

import pytest
import torch
from torch import nn
from torchvision.models import get_model

from study.models import published_weights
from study.models.published_weights import WEIGHTS_FOLDER, PublishedWeights


def classifier(architecture: str, classes: int = 1000, seed: int = 3) -> nn.Module:
    """A network of torchvision with random weights and statistics of batch norm that are not those it starts with."""
    torch.manual_seed(seed)
    net = get_model(architecture, weights=None, num_classes=classes)
    for name, buffer in net.named_buffers():
        if name.endswith("running_mean"):
            buffer.normal_(0.0, 0.1)
    return net


def publish(monkeypatch: pytest.MonkeyPatch, net: nn.Module, architecture: str, folder: Path, url: str = "") -> Path:
    """Have torchvision publish this network as the default weights of an architecture; the file, in `folder`, with the
    digits of its hash in its name."""
    folder.mkdir(parents=True, exist_ok=True)
    torch.save(net.state_dict(), folder / "new.pth")
    digits = hashlib.sha256((folder / "new.pth").read_bytes()).hexdigest()[:8]
    file = (folder / "new.pth").rename(folder / f"{architecture}-{digits}.pth")
    found = published_weights.find_published_weights(architecture, "imagenet")
    made = PublishedWeights(
        architecture,
        found.name,
        f"{url or 'http://127.0.0.1:9'}/{file.name}",
        224,
        1,
        (0.485, 0.456, 0.406),
        (0.229, 0.224, 0.225),
        1.0,
    )
    monkeypatch.setattr(published_weights, "find_published_weights", lambda *_: made)
    return file


def in_data_folder(root: Path) -> Path:
    """Where published files lie."""
    return root / WEIGHTS_FOLDER
