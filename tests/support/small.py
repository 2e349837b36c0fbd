"""Trials of a second: a few hundred digits, a small network, any method by its section."""

from collections.abc import Mapping
from functools import cache
from typing import Any

import torch
from helpers import timeless
from torch import Tensor, nn

from study import data, methods
from study.data.dataset import Dataset, Facts, Split
from study.methods import Batch, BatchLabels, Method
from study.models.encoder import Encoder, Network
from study.models.network_keys import HeadOptions
from study.training.config import TrialConfig
from study.training.trial import Trial

SAMPLES = 320


@cache
def digits(rho: float = 0.8) -> Dataset:
    """The first few hundred of biased_digits, the classes in turn."""
    whole = data.load({"name": "biased_digits", "rho": rho})
    splits = {}
    for name, split in whole.splits.items():
        chosen = torch.randperm(len(split), generator=torch.Generator().manual_seed(0))[:SAMPLES].numpy()
        splits[name] = Split(split.inputs[chosen], split.target[chosen], split.bias[chosen], split.condition[chosen])
    return Dataset(whole.facts, splits)


def section(**given: Any) -> dict[str, Any]:
    """A complete method section."""
    return {key: knob.default for key, knob in methods.method_knobs(given).items()} | given


def config(method: Mapping[str, Any], **train: Any) -> TrialConfig:
    options = {"epochs": 4, "batch_size": 64, "learning_rate": 0.01} | train
    model = {"name": "small_conv_net", "width": 8}
    return TrialConfig.from_document({"data": {}, "model": model, "method": section(**method), "train": options})


def trained(method: Mapping[str, Any], dataset: Dataset, **train: Any) -> tuple[Trial, list[dict[str, float]]]:
    """The trial and its epochs' metrics without times."""
    trial = Trial(config(method, **train), dataset, "cpu")
    return trial, timeless(trial.train_epochs())


class Rows(Encoder):
    """Rows of numbers through one hidden layer."""

    def __init__(self, columns: int, features: int) -> None:
        super().__init__()
        self.features = features
        self.layers = nn.Sequential(nn.Linear(columns, 16), nn.ReLU(), nn.Linear(16, features))

    def forward(self, rows: Tensor) -> Tensor:
        return self.layers(rows)


TABLE = Facts(classes=2, bias_classes=2, shape=(6,))


def method_for_rows(**given: Any) -> Method:
    """A method on a small network for rows of `TABLE`, the same at each call."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    complete = section(**given)
    return methods.build_method(complete, TABLE, lambda: Network(Rows(TABLE.shape[0], 8), HeadOptions()))


def rows(samples: int = 64, views: int = 1) -> Batch:
    """A batch that is a whole training split: its first column tells the class, the second, more clearly, the bias."""
    generator = torch.Generator().manual_seed(1)
    target = torch.arange(samples) % 2
    bias = torch.where(torch.rand(samples, generator=generator) < 0.8, target, 1 - target)
    noise = torch.randn(samples, 6, generator=generator)
    noise[:, 0] += 2.0 * target
    noise[:, 1] += 4.0 * bias
    seen = noise + 0.1 * torch.randn(views, samples, 6, generator=generator)
    return Batch(seen, BatchLabels(target, bias), torch.arange(samples))


def steps(method: Method, batch: Batch, count: int, rate: float = 0.02) -> list[float]:
    """Losses of steps of Adam on one batch."""
    optimizer = torch.optim.Adam(method.parameters(), lr=rate)
    losses = []
    for _ in range(count):
        loss, _ = method(batch)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    return losses
