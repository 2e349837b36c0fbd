"""laftr: a classifier of rows from whose features, and the class, an adversary cannot tell the bias.

LAFTR for equalized odds, Madras et al. 2018; WCL paper Table 3.
"""

from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.nn import functional

from study.data.dataset import Facts
from study.knobs import Knob, Section, knobs, options
from study.methods.balance import balance_knobs, mean_cross_entropy
from study.methods.batch import UNKNOWN, Batch, Labels, Method, NewNetwork
from study.methods.debiasing import AdversaryOptions, reversed_gradient, source_knobs
from study.methods.needs import Needs
from study.models import Network

NAMES = ["laftr"]


class GroupAdversary(nn.Module):
    """Classifier of the bias from features and class.

    Args:
        features: their width.
    """

    def __init__(self, settings: AdversaryOptions, features: int, facts: Facts) -> None:
        super().__init__()
        self.weight, self.classes, self.bias_classes = settings.adversary_weight, facts.classes, facts.bias_classes or 1
        hidden = settings.adversary_hidden
        self.layers = nn.Sequential(
            nn.Linear(features + facts.classes, hidden), nn.ReLU(), nn.Linear(hidden, self.bias_classes)
        )

    def forward(self, features: Tensor, labels: Labels) -> Tensor:
        """Compute `group_error` of predicting the bias from features (B, F), their gradient reversed and weighted."""
        if labels.bias is None:
            raise ValueError("laftr needs bias labels")
        kind = functional.one_hot(labels.target.clamp(min=0), self.classes).to(features.dtype)
        logits = self.layers(torch.cat([reversed_gradient(features, self.weight), kind], 1))
        return group_error(logits, labels.target, labels.bias, self.classes)


def group_error(logits: Tensor, target: Tensor, bias: Tensor, classes: int) -> Tensor:
    """Sum over cells of class and bias the adversary's mean error, 1 - p with p that of the right bias class.

    For two bias classes the error is |h - a| of Madras et al.; their L_Adv for equalized odds is 2 less this. Samples
    whose class or bias is unknown do not count.

    Args:
        logits: of the bias classes, (B, K).
        target, bias: classes and bias classes, (B,).
        classes: number of classes.
    """
    known = (target != UNKNOWN) & (bias != UNKNOWN)
    kinds = logits.shape[1]
    group = torch.where(known, target * kinds + bias, 0)
    probability = logits.float().softmax(1)
    error = (1 - probability.gather(1, bias.clamp(min=0)[:, None])[:, 0]) * known
    none = error.new_zeros(classes * kinds)
    counts = none.index_add(0, group, known.to(error.dtype))
    return (none.index_add(0, group, error) / counts.clamp(min=1)).sum()


class Laftr(Method):
    """A network, a classifier of its features and an adversary of both; no reconstruction term.

    The adversary's gradient reaches the network reversed and multiplied by its weight, gamma of the paper, so that one
    optimizer trains all three at once.
    """

    def __init__(self, settings: AdversaryOptions, facts: Facts, network: Network) -> None:
        super().__init__()
        self.network = network
        self.classifier = nn.Linear(network.encoder.features, facts.classes)
        self.adversary = GroupAdversary(settings, network.encoder.features, facts)

    def forward(self, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        features = self.network.encoder(batch.views[0])
        loss = mean_cross_entropy(self.classifier(features), batch.labels)
        return loss + self.adversary(features, batch.labels), {"encoder": features}

    def own_classifier(self) -> nn.Module:
        return self.classifier


def keys(method: Section) -> Iterator[Knob]:
    """Yield the keys of a `method` section."""
    yield from knobs(AdversaryOptions)
    yield from balance_knobs(method)
    yield from source_knobs(method, takes_features=False, takes_unknown=False)


def needs(method: Section) -> Needs:
    """Return the needs: a table with bias labels."""
    return Needs(labels="name", bias="name", only_tables=True)


def build(method: Section, facts: Facts, new_network: NewNetwork) -> Method:
    """Build the method of a complete, checked `method` section."""
    return Laftr(options(AdversaryOptions, method), facts, new_network())
