"""Cross entropy on the classes, with a regulariser on the features or an adversary where wanted."""

import inspect
from collections.abc import Hashable, Iterator
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional

from study.data.dataset import Facts
from study.knobs import Knob, Section, knobs, options
from study.losses.loss_catalogue import classification_losses
from study.methods.balance import balance_knobs, mean_cross_entropy
from study.methods.batch import UNKNOWN, Batch, Labels, Method, NewNetwork
from study.methods.debiasing import (
    NO_REGULARISER,
    Weights,
    adversary_knobs,
    maybe_adversary,
    patch,
    regulariser,
    regulariser_knobs,
    source_knobs,
)
from study.methods.needs import Needs
from study.models import Network

PLAIN = "cross_entropy"
BALANCED = "bias_balanced_cross_entropy"
OWN = (name for name, function in classification_losses().items() if function.__module__.startswith("study.losses."))
NAMES = [PLAIN, *OWN]


class Classifier(nn.Module):
    """A linear classifier of features and the loss that trains it.

    Args:
        features: their width.
        loss: `cross_entropy` or the name of a classification loss, with its hyperparameters in `method`.
    """

    def __init__(self, loss: str, features: int, facts: Facts, method: Section | None = None) -> None:
        super().__init__()
        self.linear = nn.Linear(features, facts.classes)
        self.balanced = loss == BALANCED
        if loss != PLAIN:
            function, section = classification_losses()[loss], method or {}
            options = {knob.key: section[knob.key] for knob in knobs(function) if knob.key in section}
            self.loss = partial(function, **options)
        self.plain = loss == PLAIN
        self.confusion: Tensor
        self.register_buffer("confusion", torch.zeros(facts.bias_classes or 1, facts.classes))

    def begin(self, train: Labels) -> None:
        """Store the class shares per bias class of the training split (BiasBal)."""
        if self.balanced and train.bias is not None:
            counts = torch.zeros_like(self.confusion)
            there = (train.bias != UNKNOWN) & (train.target != UNKNOWN)
            pairs = (train.bias[there], train.target[there])
            counts.index_put_(pairs, torch.ones_like(pairs[0], dtype=counts.dtype), accumulate=True)
            self.confusion = counts / counts.sum(1, keepdim=True).clamp(min=1)

    def forward(self, features: Tensor, labels: Labels) -> Tensor:
        """Compute the loss of classifying features (B, F), a scalar."""
        logits = self.linear(features)
        if self.plain:
            return mean_cross_entropy(logits, labels)
        extra = {"bias": labels.bias, "confusion": self.confusion} if self.balanced else {}
        extra |= {"weight": labels.weight} if labels.weight is not None else {}
        return self.loss(logits, target=labels.target, **extra)


class Classification(Method):
    """A network and a linear classifier trained together.

    Args:
        method: a complete, checked `method` section.
    """

    def __init__(self, method: Section, facts: Facts, network: Network) -> None:
        super().__init__()
        self.network = network
        self.classifier = Classifier(str(method["name"]), network.encoder.features, facts, method)
        self.weights, self.regulariser = options(Weights, method), regulariser(method)
        self.adversary = maybe_adversary(method, network.encoder.features, facts.bias_classes)

    def begin(self, train: Labels) -> None:
        self.classifier.begin(train)

    def recording(self) -> Hashable | None:
        return ()

    def forward(self, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        features, labels = self.network.encoder(batch.views[0]), batch.labels
        value = self.weights.contrast * self.classifier(features, labels)
        if self.regulariser is not None and self.weights.lambda_ != 0:
            unit = functional.normalize(features, dim=1)[None]
            value = value + self.weights.lambda_ * self.regulariser(unit, labels.named())
        if self.adversary is not None and labels.bias is not None:
            value = value + self.adversary(features, labels.bias)
        return value, {"encoder": features}

    def own_classifier(self) -> nn.Module:
        return self.classifier.linear


def keys(method: Section) -> Iterator[Knob]:
    """Yield the keys of a `method` section that names a cross entropy."""
    loss = None if method["name"] == PLAIN else classification_losses()[str(method["name"])]
    if loss is not None:
        yield from knobs(loss)
    if loss is None or "weight" in inspect.signature(loss).parameters:
        yield from balance_knobs(method)
    yield from regulariser_knobs(method)
    yield from adversary_knobs(method, has_stage=False)
    if needs(method).bias or method.get("bias_source") == "model":
        adversary = method.get("adversary", "none") != "none"
        only_fair_kl = method["name"] != BALANCED and method.get("regulariser") == "fair_kl" and not adversary
        yield from source_knobs(method, takes_features=only_fair_kl, takes_unknown=False)


def needs(method: Section) -> Needs:
    """Return what data such a method needs."""
    if method["name"] == BALANCED:
        return Needs(labels="name", bias="name", varies=None)
    if method.get("regulariser", NO_REGULARISER) != NO_REGULARISER and method.get("bias_source") != "model":
        return Needs(labels="name", bias="regulariser", varies=None)
    adversary = "adversary" if method.get("adversary", "none") != "none" else None
    return Needs(labels="name", bias=adversary, varies=None, patch=patch(method))


def build(method: Section, facts: Facts, new_network: NewNetwork) -> Method:
    """Build the method of a complete, checked `method` section."""
    return Classification(method, facts, new_network())
