"""learning_from_failure: what a classifier drawn to easy samples fails on weighs more for a second one.

LfF, Nam et al. 2020; WCL paper 5.1 and Table 3.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

import torch
from torch import Tensor, nn
from typing_extensions import Doc

from study.data.dataset import Facts
from study.knobs import Knob, Range, Searched, Section, knobs, options
from study.methods.balance import balance_knobs, cross_entropies, weighted
from study.methods.batch import UNKNOWN, Batch, Labels, Method, NewNetwork, PerSample
from study.methods.needs import Needs
from study.models import Encoder, Network

NAMES = ["learning_from_failure"]

UNSEEN = -1.0
"""Running loss of a sample before its first one: no cross entropy is below 0."""

TINY = 1e-8


@dataclass(frozen=True)
class Options:
    """Keys of the method."""

    q: Annotated[
        float,
        Range(low=0.0, high=1.0),
        Searched(0.0, 1.0),
        Doc(
            "q of the biased classifier's generalised cross entropy (1 - p^q) / q; 0 is the cross entropy. "
            "To be searched (WCL paper 6.2): where classes are noisy, as in COMPAS, a large one makes the "
            "noise weigh most"
        ),
    ] = 0.7
    memory: Annotated[
        float,
        Range(low=0.0, below=1.0),
        Doc("share of the old value in a sample's running loss"),
    ] = 0.7


class RunningLoss(PerSample):
    """A running mean of each sample's loss; it starts at the sample's first loss."""

    def __init__(self, memory: float) -> None:
        super().__init__(UNSEEN)
        self.memory = memory

    def update(self, index: Tensor, loss: Tensor) -> None:
        """Update the means with the losses (B,) of the samples at these positions."""
        old = self.values[index]
        self.values[index] = torch.where(old < 0, loss, self.memory * old + (1 - self.memory) * loss)

    def relative(self, index: Tensor, target: Tensor, classes: int) -> Tensor:
        """Divide the means of some samples by the largest of their class, (B,).

        Args:
            index: positions of the samples.
            target: classes of all training samples, none `UNKNOWN`, (N,).
        """
        largest = self.values.new_zeros(classes).scatter_reduce(0, target, self.values, "amax")
        return self.values[index] / largest[target[index]].clamp(min=TINY)


class LearningFromFailure(Method):
    """A biased and a debiased classifier, each with a network of its own, trained side by side.

    The debiased one's cross entropy weighs W = CE_b / (CE_b + CE_d), a constant for the gradient, from running losses
    over the largest of their class, as in the authors' code (the equation has the plain losses).
    """

    def __init__(self, settings: Options, facts: Facts, network: Network, biased: Network) -> None:
        super().__init__()
        self.q, self.classes = settings.q, facts.classes
        self.network, self.biased = network, biased
        self.classifier = nn.Linear(network.encoder.features, facts.classes)
        self.biased_classifier = nn.Linear(biased.encoder.features, facts.classes)
        self.running, self.biased_running = RunningLoss(settings.memory), RunningLoss(settings.memory)
        self.target: Tensor
        self.register_buffer("target", torch.zeros(0, dtype=torch.long), persistent=False)

    def begin(self, train: Labels) -> None:
        self.target = train.target.clamp(min=0)  # a sample without label has no loss and changes no maximum
        for running in (self.running, self.biased_running):
            running.begin(len(train.target))

    def forward(self, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        target = batch.labels.target
        features, biased_features = self.network.encoder(batch.views[0]), self.biased.encoder(batch.views[0])
        loss = cross_entropies(self.classifier(features), target)
        biased_loss = cross_entropies(self.biased_classifier(biased_features), target)
        if self.training:
            self.running.update(batch.index, loss.detach())
            self.biased_running.update(batch.index, biased_loss.detach())
        biased_value = -torch.expm1(-self.q * biased_loss) / self.q if self.q else biased_loss
        count = (target != UNKNOWN).sum().clamp(min=1)
        value = (weighted(self.weights(batch.index) * loss, batch.labels) + biased_value).sum() / count
        return value, {"encoder": features, "biased_encoder": biased_features}

    def weights(self, index: Tensor) -> Tensor:
        """Compute W of the training samples at these positions, (B,)."""
        own = self.running.relative(index, self.target, self.classes)
        biased = self.biased_running.relative(index, self.target, self.classes)
        return biased / (biased + own + TINY)

    def encoders(self) -> dict[str, Encoder]:
        return {"encoder": self.network.encoder, "biased_encoder": self.biased.encoder}

    def own_classifier(self) -> nn.Module:
        return self.classifier


def keys(method: Section) -> Iterator[Knob]:
    """Yield the keys of a `method` section."""
    yield from knobs(Options)
    yield from balance_knobs(method)


def needs(method: Section) -> Needs:
    """Return the needs: the classes alone."""
    return Needs(labels="name")


def build(method: Section, facts: Facts, new_network: NewNetwork) -> Method:
    """Build the method of a complete, checked `method` section."""
    return LearningFromFailure(options(Options, method), facts, new_network(), new_network())
