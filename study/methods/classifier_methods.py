"""Methods whose own classifier trains the network, and adversaries of the bias, as modules."""

from collections.abc import Hashable
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional

from study.data.dataset import Facts
from study.knobs import Section, read_knobs, to_options
from study.losses.loss_catalogue import classification_losses_by_name
from study.methods.base_method import Batch, BatchLabels, Method
from study.methods.debiasing import AdversaryOptions, TermWeights, build_regulariser
from study.methods.method_needs import BALANCED_CROSS_ENTROPY, PLAIN_CROSS_ENTROPY, UNKNOWN_LABEL
from study.methods.sample_weights import apply_sample_weights, cross_entropy_per_sample, weighted_mean_cross_entropy
from study.models import Network


class Adversary(nn.Module):
    """Classifier of the bias that the encoder is trained against by gradient reversal (FSCL paper 4.5, its [38]).

    Args:
        features: their width.
        bias_classes: number of bias classes.
    """

    def __init__(self, features: int, bias_classes: int, settings: AdversaryOptions) -> None:
        super().__init__()
        self.weight, hidden = settings.adversary_weight, settings.adversary_hidden
        self.layers = nn.Sequential(nn.Linear(features, hidden), nn.ReLU(), nn.Linear(hidden, bias_classes))

    def forward(self, features: Tensor, bias: Tensor) -> Tensor:
        """Compute the cross entropy of predicting `bias` (B,) from `features` (B, F), a scalar.

        Samples of `UNKNOWN_LABEL` are left out. The gradient into the features is reversed and multiplied by the
        weight; the adversary's own is not.
        """
        known = (bias != UNKNOWN_LABEL).sum().clamp(min=1)
        logits = self.layers(reverse_gradient(features, self.weight))
        return functional.cross_entropy(logits, bias, ignore_index=UNKNOWN_LABEL, reduction="sum") / known


def reverse_gradient(features: Tensor, weight: float) -> Tensor:
    """Return the features, bit for bit, with their gradient multiplied by -weight."""
    still = features.detach()
    return still - weight * (features - still)


def build_adversary(method: Section, features: int, bias_classes: int | None) -> Adversary | None:
    """Build the adversary that a `method` section asks for, if it does."""
    if method.get("adversary", "none") == "none" or bias_classes is None:
        return None
    with torch.random.fork_rng(devices=[]):  # the encoder starts as it would without an adversary
        return Adversary(features, bias_classes, to_options(AdversaryOptions, method))


class LinearClassifier(nn.Module):
    """A linear classifier of features and the loss that trains it.

    Args:
        features: their width.
        loss: `cross_entropy` or the name of a classification loss, with its hyperparameters in `method`.
    """

    def __init__(self, loss: str, features: int, facts: Facts, method: Section | None = None) -> None:
        super().__init__()
        self.linear = nn.Linear(features, facts.classes)
        self.balanced = loss == BALANCED_CROSS_ENTROPY
        if loss != PLAIN_CROSS_ENTROPY:
            function, section = classification_losses_by_name()[loss], method or {}
            options = {knob.key: section[knob.key] for knob in read_knobs(function) if knob.key in section}
            self.loss = partial(function, **options)
        self.plain = loss == PLAIN_CROSS_ENTROPY
        self.confusion: Tensor
        self.register_buffer("confusion", torch.zeros(facts.bias_classes or 1, facts.classes))

    def prepare_training(self, train: BatchLabels) -> None:
        """Store the class shares per bias class of the training split (BiasBal)."""
        if self.balanced and train.bias is not None:
            counts = torch.zeros_like(self.confusion)
            there = (train.bias != UNKNOWN_LABEL) & (train.target != UNKNOWN_LABEL)
            pairs = (train.bias[there], train.target[there])
            counts.index_put_(pairs, torch.ones_like(pairs[0], dtype=counts.dtype), accumulate=True)
            self.confusion = counts / counts.sum(1, keepdim=True).clamp(min=1)

    def forward(self, features: Tensor, labels: BatchLabels) -> Tensor:
        """Compute the loss of classifying features (B, F), a scalar."""
        logits = self.linear(features)
        if self.plain:
            return weighted_mean_cross_entropy(logits, labels)
        extra = {"bias": labels.bias, "confusion": self.confusion} if self.balanced else {}
        extra |= {"weight": labels.weight} if labels.weight is not None else {}
        return self.loss(logits, target=labels.target, **extra)


class ClassifierMethod(Method):
    """A network and a linear classifier trained together.

    Args:
        method: a complete, checked `method` section.
    """

    def __init__(self, method: Section, facts: Facts, network: Network) -> None:
        super().__init__()
        self.network = network
        self.classifier = LinearClassifier(str(method["name"]), network.encoder.features, facts, method)
        self.weights, self.regulariser = to_options(TermWeights, method), build_regulariser(method)
        self.adversary = build_adversary(method, network.encoder.features, facts.bias_classes)

    def prepare_training(self, train: BatchLabels) -> None:
        self.classifier.prepare_training(train)

    def cuda_graph_key(self) -> Hashable | None:
        return ()

    def forward(self, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        features, labels = self.network.encoder(batch.views[0]), batch.labels
        value = self.weights.contrastive_factor * self.classifier(features, labels)
        if self.regulariser is not None and self.weights.lambda_ != 0:
            unit = functional.normalize(features, dim=1)[None]
            value = value + self.weights.lambda_ * self.regulariser(unit, labels.loss_tensors_by_name())
        if self.adversary is not None and labels.bias is not None:
            value = value + self.adversary(features, labels.bias)
        return value, {"encoder": features}

    def own_classifier(self) -> nn.Module:
        return self.classifier.linear


class EqualizedOddsPostprocessing(ClassifierMethod):
    """A network and a linear classifier trained by cross entropy; predictions see the bias of a sample, too."""

    equalizes_odds = True


class GroupDro(Method):
    """A classifier whose loss is that of the groups, weighted by how badly it has done on them (Algorithm 1).

    At each step the weight of a group in the batch is multiplied by exp(step * (its mean loss + C / sqrt(n))), then all
    are divided by their sum. Groups come as often as in the data: the paper draws them equally often, which only
    changes how fast a rare group's weight moves.
    """

    group_weights: Tensor
    adjustment: Tensor

    def __init__(self, step: float, adjustment: float, facts: Facts, network: Network) -> None:
        super().__init__()
        self.network, self.step, self.factor = network, step, adjustment
        self.classes, self.bias_classes = facts.classes, facts.bias_classes or 1
        self.classifier = nn.Linear(network.encoder.features, facts.classes)
        groups = facts.classes * self.bias_classes
        self.register_buffer("group_weights", torch.full((groups,), 1 / groups))
        self.register_buffer("adjustment", torch.zeros(groups))

    def prepare_training(self, train: BatchLabels) -> None:
        """Give the groups that there are equal weights, and store their adjustments by size."""
        sizes = self._sum_by_group(torch.ones_like(train.target, dtype=torch.float), train)
        self.group_weights = (sizes > 0) / (sizes > 0).sum()
        self.adjustment = self.factor / sizes.clamp(min=1).sqrt()

    def forward(self, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        features = self.network.encoder(batch.views[0])
        target = batch.labels.target
        losses = apply_sample_weights(cross_entropy_per_sample(self.classifier(features), target), batch.labels)
        counts = self._sum_by_group(torch.ones_like(losses), batch.labels)
        by_group = self._sum_by_group(losses, batch.labels) / counts.clamp(min=1) + self.adjustment * (counts > 0)
        weights = self.group_weights
        if self.training:
            # equal to multiplying by exp(step * loss) and dividing by the sum, but never overflows
            weights = torch.softmax(weights.log() + self.step * by_group.detach(), 0)
            self.group_weights.copy_(weights)
        return (weights * by_group).sum(), {"encoder": features}

    def own_classifier(self) -> nn.Module:
        return self.classifier

    def diagnose(self, batch: Batch) -> dict[str, Tensor]:
        """Return the largest weight of a group."""
        return {"largest_group_weight": self.group_weights.max()}

    def _sum_by_group(self, values: Tensor, labels: BatchLabels) -> Tensor:
        """Sum values (B,) by group, (groups,); samples whose group is unknown do not count."""
        if labels.bias is None:
            raise ValueError("group_dro needs bias labels")
        return sum_by_group(values, labels.target, labels.bias, self.classes, self.bias_classes)


def sum_by_group(values: Tensor, target: Tensor, bias: Tensor, classes: int, bias_classes: int) -> Tensor:
    """Sum values (B,) by group of class and bias class, (groups,); samples whose group is unknown do not count."""
    known = (target != UNKNOWN_LABEL) & (bias != UNKNOWN_LABEL)
    group = torch.where(known, target * bias_classes + bias, 0)
    return values.new_zeros(classes * bias_classes).index_add(0, group, values * known)


def adversary_group_error(logits: Tensor, target: Tensor, bias: Tensor, classes: int) -> Tensor:
    """Sum over cells of class and bias the adversary's mean error, 1 - p with p that of the right bias class.

    For two bias classes the error is |h - a| of Madras et al.; their L_Adv for equalized odds is 2 less this. Samples
    whose class or bias is unknown do not count.

    Args:
        logits: of the bias classes, (B, K).
        target, bias: classes and bias classes, (B,).
        classes: number of classes.
    """
    error = 1 - logits.float().softmax(1).gather(1, bias.clamp(min=0)[:, None])[:, 0]
    both = (error, torch.ones_like(error))
    sums, counts = (sum_by_group(values, target, bias, classes, logits.shape[1]) for values in both)
    return (sums / counts.clamp(min=1)).sum()


class Laftr(Method):
    """A network, a classifier of its features and an adversary of features and class; no reconstruction term.

    The adversary's gradient reaches the network reversed and multiplied by its weight, gamma of the paper, so that one
    optimizer trains all three at once.
    """

    def __init__(self, settings: AdversaryOptions, facts: Facts, network: Network) -> None:
        super().__init__()
        self.network, self.classes = network, facts.classes
        self.classifier = nn.Linear(network.encoder.features, facts.classes)
        self.adversary = Adversary(network.encoder.features + facts.classes, facts.bias_classes or 1, settings)

    def forward(self, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        features = self.network.encoder(batch.views[0])
        loss = weighted_mean_cross_entropy(self.classifier(features), batch.labels)
        return loss + self.adversary_error(features, batch.labels), {"encoder": features}

    def adversary_error(self, features: Tensor, labels: BatchLabels) -> Tensor:
        """Compute `adversary_group_error` of the bias predicted from features (B, F), whose gradient is reversed."""
        if labels.bias is None:
            raise ValueError("laftr needs bias labels")
        kind = functional.one_hot(labels.target.clamp(min=0), self.classes).to(features.dtype)
        logits = self.adversary.layers(torch.cat([reverse_gradient(features, self.adversary.weight), kind], 1))
        return adversary_group_error(logits, labels.target, labels.bias, self.classes)

    def own_classifier(self) -> nn.Module:
        return self.classifier
