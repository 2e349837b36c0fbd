"""just_train_twice: a second training, where what a first one got wrong weighs more (JTT, Liu et al. 2021)."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

import torch
from torch import Tensor, nn
from typing_extensions import Doc

from study.data.dataset import Facts
from study.errors import UserError
from study.knobs import Knob, Range, Searched, Section, knobs, options
from study.methods.balance import balance_knobs, cross_entropies, weighted
from study.methods.batch import UNKNOWN, Batch, Labels, Method, NewNetwork, PerSample
from study.methods.needs import Needs
from study.models import Encoder, Network

NAMES = ["just_train_twice"]


@dataclass(frozen=True)
class Options:
    """Keys of the method."""

    identification: Annotated[
        float,
        Range(above=0.0, below=1.0),
        Searched(0.05, 0.5),
        Doc("share of the epochs that train the first network, at least one; the rest trains the second"),
    ] = 0.2
    upweight: Annotated[
        float,
        Range(low=1.0),
        Searched(4.0, 100.0, log=True),
        Doc("weight in the second training of a sample that the first network got wrong (lambda_up)"),
    ] = 20.0


class JustTrainTwice(Method):
    """Two classifiers, each with a network of its own, trained one after the other; the second is the result.

    A sample counts as wrong if the first network misclassified it in the last epoch of its stage, at the step that
    trains on it: no pass over the data is added, and it may be a few steps behind the network at the stage's end. A
    weight stands for the paper's repetition of samples, over the mean weight of the training split, so that a step is
    as large as with repeated samples. One optimizer and its schedule go through both stages; it leaves the network
    alone that is not being trained.
    """

    def __init__(self, settings: Options, facts: Facts, network: Network, first: Network) -> None:
        super().__init__()
        self.options = settings
        self.network, self.first = network, first
        self.classifier = nn.Linear(network.encoder.features, facts.classes)
        self.first_classifier = nn.Linear(first.encoder.features, facts.classes)
        self.wrong = PerSample(False)
        self.identifies, self.records = False, False
        self.mean_weight = torch.ones(())

    def begin(self, train: Labels) -> None:
        self.wrong.begin(len(train.target))

    def begin_epoch(self, epoch: int, epochs: int) -> None:
        if epochs < 2:
            raise UserError("train.epochs: 1; just_train_twice trains twice, give at least 2")
        last = min(max(1, round(self.options.identification * epochs)), epochs - 1)
        self.identifies, self.records = epoch <= last, epoch == last
        self.mean_weight = self._weights(self.wrong.values).mean()

    def forward(self, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        target = batch.labels.target
        features = self._now().encoder(batch.views[0])
        logits = self.own_classifier()(features)
        losses = weighted(cross_entropies(logits, target), batch.labels)
        if self.records and self.training:
            self.wrong.values[batch.index] = (logits.argmax(1) != target) & (target != UNKNOWN)
        if not self.identifies:
            losses = losses * self._weights(self.wrong.values[batch.index]) / self.mean_weight
        return losses.sum() / (target != UNKNOWN).sum().clamp(min=1), {"encoder": features}

    def encoders(self) -> dict[str, Encoder]:
        """Return the encoder of the current stage."""
        return {"encoder": self._now().encoder}

    def own_classifier(self) -> nn.Module:
        """Return the classifier of the current stage."""
        return self.first_classifier if self.identifies else self.classifier

    def diagnose(self, batch: Batch) -> dict[str, Tensor]:
        """Return the share of training samples that are up-weighted."""
        return {"wrong_share": self.wrong.values.float().mean()}

    def get_extra_state(self) -> Tensor:
        """Save the stage: weights that are loaded are evaluated as they were when they were saved."""
        return torch.tensor(self.identifies)

    def set_extra_state(self, state: Tensor) -> None:
        self.identifies = bool(state)

    def _now(self) -> Network:
        return self.first if self.identifies else self.network

    def _weights(self, wrong: Tensor) -> Tensor:
        return torch.where(wrong, self.options.upweight, 1.0)


def keys(method: Section) -> Iterator[Knob]:
    """Yield the keys of a `method` section."""
    yield from knobs(Options)
    yield from balance_knobs(method)


def needs(method: Section) -> Needs:
    """Return the needs: the classes alone."""
    return Needs(labels="name", epochs=("name", 2), total="identification")


def build(method: Section, facts: Facts, new_network: NewNetwork) -> Method:
    """Build the method of a complete, checked `method` section."""
    return JustTrainTwice(options(Options, method), facts, new_network(), new_network())
