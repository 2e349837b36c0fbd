"""group_dro: the worst group of class and bias counts most (Group DRO, Sagawa et al. 2020; FSCL paper Table 10)."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

import torch
from torch import Tensor, nn
from typing_extensions import Doc

from study.data.dataset import Facts
from study.knobs import Knob, Range, Searched, Section, knobs, options
from study.methods.balance import balance_knobs, cross_entropies, weighted
from study.methods.batch import UNKNOWN, Batch, Labels, Method, NewNetwork
from study.methods.debiasing import source_knobs
from study.methods.needs import Needs
from study.models import Network

NAMES = ["group_dro"]


@dataclass(frozen=True)
class Options:
    """Keys of the method. Its strong L2 penalty is `train.weight_decay` (FSCL Table 10: search both)."""

    group_step: Annotated[float, Range(low=0.0), Doc("step size of the groups' weights")] = 0.01
    group_adjustment: Annotated[
        float,
        Range(low=0.0),
        Searched(0.0, 5.0),
        Doc("C: a group of n training samples has C / sqrt(n) added to its loss"),
    ] = 0.0


class GroupDro(Method):
    """A classifier whose loss is that of the groups, weighted by how badly it has done on them (Algorithm 1).

    At each step the weight of a group in the batch is multiplied by exp(step * (its mean loss + C / sqrt(n))), then all
    are divided by their sum. Groups come as often as in the data: the paper draws them equally often, which only
    changes how fast a rare group's weight moves.
    """

    group_weights: Tensor
    adjustment: Tensor

    def __init__(self, settings: Options, facts: Facts, network: Network) -> None:
        super().__init__()
        self.options, self.network = settings, network
        self.bias_classes = facts.bias_classes or 1
        self.classifier = nn.Linear(network.encoder.features, facts.classes)
        groups = facts.classes * self.bias_classes
        self.register_buffer("group_weights", torch.full((groups,), 1 / groups))
        self.register_buffer("adjustment", torch.zeros(groups))

    def begin(self, train: Labels) -> None:
        """Give the groups that there are equal weights, and store their adjustments by size."""
        sizes = self._by_group(torch.ones_like(train.target, dtype=torch.float), train)
        self.group_weights = (sizes > 0) / (sizes > 0).sum()
        self.adjustment = self.options.group_adjustment / sizes.clamp(min=1).sqrt()

    def forward(self, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        features = self.network.encoder(batch.views[0])
        target = batch.labels.target
        losses = weighted(cross_entropies(self.classifier(features), target), batch.labels)
        counts = self._by_group(torch.ones_like(losses), batch.labels)
        by_group = self._by_group(losses, batch.labels) / counts.clamp(min=1) + self.adjustment * (counts > 0)
        weights = self.group_weights
        if self.training:
            # equal to multiplying by exp(step * loss) and dividing by the sum, but never overflows
            weights = torch.softmax(weights.log() + self.options.group_step * by_group.detach(), 0)
            self.group_weights.copy_(weights)
        return (weights * by_group).sum(), {"encoder": features}

    def own_classifier(self) -> nn.Module:
        return self.classifier

    def diagnose(self, batch: Batch) -> dict[str, Tensor]:
        """Return the largest weight of a group."""
        return {"largest_group_weight": self.group_weights.max()}

    def _by_group(self, values: Tensor, labels: Labels) -> Tensor:
        """Sum values (B,) by group, (groups,); samples whose group is unknown do not count."""
        if labels.bias is None:
            raise ValueError("group_dro needs bias labels")
        known = (labels.target != UNKNOWN) & (labels.bias != UNKNOWN)
        group = torch.where(known, labels.target * self.bias_classes + labels.bias, 0)
        return values.new_zeros(len(self.group_weights)).index_add(0, group, values * known)


def keys(method: Section) -> Iterator[Knob]:
    """Yield the keys of a `method` section."""
    yield from knobs(Options)
    yield from balance_knobs(method)
    yield from source_knobs(method, takes_features=False, takes_unknown=False)


def needs(method: Section) -> Needs:
    """Return the needs: bias labels."""
    return Needs(labels="name", bias="name")


def build(method: Section, facts: Facts, new_network: NewNetwork) -> Method:
    """Build the method of a complete, checked `method` section."""
    return GroupDro(options(Options, method), facts, new_network())
