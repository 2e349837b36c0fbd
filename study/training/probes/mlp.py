"""mlp: one hidden layer, a few epochs (FSCL paper 4.1: 10 epochs of cross entropy)."""

from dataclasses import dataclass
from typing import Annotated

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from typing_extensions import Doc

from study.knobs import Range
from study.training.optimization import Adam
from study.training.probes import Classifier, labelled


@dataclass(frozen=True)
class Options:
    """Options of this classifier."""

    hidden: Annotated[int, Range(low=1), Doc("units of the hidden layer")] = 128
    epochs: Annotated[int, Range(low=1), Doc("epochs of Adam, the one figure that the paper gives")] = 10
    batch_size: Annotated[int, Range(low=1), Doc("samples per step of Adam")] = 256
    learning_rate: Annotated[float, Range(above=0.0), Doc("learning rate of Adam")] = 0.001


def fit(features: Tensor, target: Tensor, classes: int, seed: int, options: Options = Options()) -> Classifier:
    """Train it from weights and in an order that `seed` alone gives.

    Each feature is scaled by the training samples' mean and standard deviation, so that the learning rate suits any
    encoder.
    """
    rows, labels = labelled(features, target)
    generator = torch.Generator().manual_seed(seed)
    deviation, centre = torch.std_mean(rows, dim=0, correction=0)
    scale = torch.where(deviation > 0, deviation, 1.0)
    rows = (rows - centre) / scale
    network = nn.Sequential(
        _linear(rows.shape[1], options.hidden, generator), nn.ReLU(), _linear(options.hidden, classes, generator)
    ).to(rows.device)
    optimizer = Adam(network.parameters(), lr=options.learning_rate)
    with torch.enable_grad():
        for _ in range(options.epochs):
            order = torch.randperm(len(rows), generator=generator).to(rows.device)
            for indices in order.split(options.batch_size):
                optimizer.zero_grad()
                cross_entropy(network(rows[indices]), labels[indices]).backward()
                optimizer.step()

    @torch.no_grad()
    def scores(queries: Tensor) -> Tensor:
        return network((queries.float() - centre) / scale)

    return scores


def _linear(inputs: int, outputs: int, generator: torch.Generator) -> nn.Linear:
    """A layer with PyTorch's usual initial weights, drawn from `generator`, not from the global one."""
    layer = nn.utils.skip_init(nn.Linear, inputs, outputs)
    bound = inputs**-0.5
    for parameter in layer.parameters():
        nn.init.uniform_(parameter, -bound, bound, generator=generator)
    return layer
