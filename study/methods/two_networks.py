"""Methods that train two networks, side by side or one after the other, as modules."""

from collections.abc import Hashable

import torch
from torch import Tensor, nn

from study.data.dataset import Facts
from study.errors import UserError
from study.losses.wcl_losses import WclForm, biased_triplet, difficulty_weighted_info_nce
from study.methods.base_method import Batch, BatchLabels, Method, PerSampleBuffer, compute_embeddings
from study.methods.method_needs import UNKNOWN_LABEL
from study.methods.sample_weights import apply_sample_weights, cross_entropy_per_sample
from study.models import Encoder, Network

UNSEEN_SAMPLE_LOSS = -1.0
"""Running loss of a sample before its first one: no cross entropy is below 0."""

MIN_DIVISOR = 1e-8


class RunningLoss(PerSampleBuffer):
    """A running mean of each sample's loss; it starts at the sample's first loss."""

    def __init__(self, memory: float) -> None:
        super().__init__(UNSEEN_SAMPLE_LOSS)
        self.memory = memory

    def update_means(self, index: Tensor, loss: Tensor) -> None:
        """Update the means with the losses (B,) of the samples at these positions."""
        old = self.values[index]
        self.values[index] = torch.where(old < 0, loss, self.memory * old + (1 - self.memory) * loss)

    def divide_by_class_maximum(self, index: Tensor, target: Tensor, classes: int) -> Tensor:
        """Divide the means of some samples by the largest of their class, (B,).

        Args:
            index: positions of the samples.
            target: classes of all training samples, none `UNKNOWN_LABEL`, (N,).
        """
        largest = self.values.new_zeros(classes).scatter_reduce(0, target, self.values, "amax")
        return self.values[index] / largest[target[index]].clamp(min=MIN_DIVISOR)


class LearningFromFailure(Method):
    """A biased and a debiased classifier, each with a network of its own, trained side by side.

    The debiased one's cross entropy weighs W = CE_b / (CE_b + CE_d), a constant for the gradient, from running losses
    over the largest of their class, as in the authors' code (the equation has the plain losses).
    """

    def __init__(self, q: float, memory: float, facts: Facts, network: Network, biased: Network) -> None:
        super().__init__()
        self.q, self.classes = q, facts.classes
        self.network, self.biased = network, biased
        self.classifier = nn.Linear(network.encoder.features, facts.classes)
        self.biased_classifier = nn.Linear(biased.encoder.features, facts.classes)
        self.running, self.biased_running = RunningLoss(memory), RunningLoss(memory)
        self.target: Tensor
        self.register_buffer("target", torch.zeros(0, dtype=torch.long), persistent=False)

    def prepare_training(self, train: BatchLabels) -> None:
        self.target = train.target.clamp(min=0)  # a sample without label has no loss and changes no maximum
        for running in (self.running, self.biased_running):
            running.allocate(len(train.target))

    def forward(self, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        target = batch.labels.target
        features, biased_features = self.network.encoder(batch.views[0]), self.biased.encoder(batch.views[0])
        loss = cross_entropy_per_sample(self.classifier(features), target)
        biased_loss = cross_entropy_per_sample(self.biased_classifier(biased_features), target)
        if self.training:
            self.running.update_means(batch.index, loss.detach())
            self.biased_running.update_means(batch.index, biased_loss.detach())
        biased_value = -torch.expm1(-self.q * biased_loss) / self.q if self.q else biased_loss
        count = (target != UNKNOWN_LABEL).sum().clamp(min=1)
        weighted = apply_sample_weights(self.sample_weights(batch.index) * loss, batch.labels)
        value = (weighted + biased_value).sum() / count
        return value, {"encoder": features, "biased_encoder": biased_features}

    def sample_weights(self, index: Tensor) -> Tensor:
        """Compute W of the training samples at these positions, (B,)."""
        own = self.running.divide_by_class_maximum(index, self.target, self.classes)
        biased = self.biased_running.divide_by_class_maximum(index, self.target, self.classes)
        return biased / (biased + own + MIN_DIVISOR)

    def encoders(self) -> dict[str, Encoder]:
        return {"encoder": self.network.encoder, "biased_encoder": self.biased.encoder}

    def own_classifier(self) -> nn.Module:
        return self.classifier


class JustTrainTwice(Method):
    """Two classifiers, each with a network of its own, trained one after the other; the second is the result.

    A sample counts as wrong if the first network misclassified it in the last epoch of its stage, at the step that
    trains on it: no pass over the data is added, and it may be a few steps behind the network at the stage's end. A
    weight stands for the paper's repetition of samples, over the mean weight of the training split, so that a step is
    as large as with repeated samples. One optimizer and its schedule go through both stages; it leaves the network
    alone that is not being trained.
    """

    def __init__(self, identification: float, upweight: float, facts: Facts, network: Network, first: Network) -> None:
        super().__init__()
        self.identification, self.upweight = identification, upweight
        self.network, self.first = network, first
        self.classifier = nn.Linear(network.encoder.features, facts.classes)
        self.first_classifier = nn.Linear(first.encoder.features, facts.classes)
        self.wrong = PerSampleBuffer(False)
        self.identifies, self.records = False, False
        self.mean_weight = torch.ones(())

    def prepare_training(self, train: BatchLabels) -> None:
        self.wrong.allocate(len(train.target))

    def begin_epoch(self, epoch: int, epochs: int) -> None:
        if epochs < 2:
            raise UserError("train.epochs: 1; just_train_twice trains twice, give at least 2")
        last = min(max(1, round(self.identification * epochs)), epochs - 1)
        self.identifies, self.records = epoch <= last, epoch == last
        self.mean_weight = self._sample_weights(self.wrong.values).mean()

    def forward(self, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        target = batch.labels.target
        features = self._current_network().encoder(batch.views[0])
        logits = self.own_classifier()(features)
        losses = apply_sample_weights(cross_entropy_per_sample(logits, target), batch.labels)
        if self.records and self.training:
            self.wrong.values[batch.index] = (logits.argmax(1) != target) & (target != UNKNOWN_LABEL)
        if not self.identifies:
            losses = losses * self._sample_weights(self.wrong.values[batch.index]) / self.mean_weight
        return losses.sum() / (target != UNKNOWN_LABEL).sum().clamp(min=1), {"encoder": features}

    def encoders(self) -> dict[str, Encoder]:
        """Return the encoder of the current stage."""
        return {"encoder": self._current_network().encoder}

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

    def _current_network(self) -> Network:
        return self.first if self.identifies else self.network

    def _sample_weights(self, wrong: Tensor) -> Tensor:
        return torch.where(wrong, self.upweight, 1.0)


class Wcl(Method):
    """A debiased and a biased network of one structure, trained side by side (WCL paper, Algorithm 1).

    Their objective is the sum of both losses, each of which trains its own network alone. Step 3 of the algorithm
    prints the subscripts d and b of the embeddings swapped: there the biased encoder's parameters descend on the
    debiased embeddings. Section 5.2 and Figure 2 have it as here.
    """

    views = 2

    def __init__(self, temperature: float, tau_plus: float, form: WclForm, network: Network, biased: Network) -> None:
        super().__init__()
        self.temperature, self.tau_plus, self.form = temperature, tau_plus, form
        self.network, self.biased = network, biased

    def cuda_graph_key(self) -> Hashable | None:
        return ()

    def forward(self, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        features, views = compute_embeddings(self.network, batch.views)
        biased_features, biased_views = compute_embeddings(self.biased, batch.views)
        triplet = biased_triplet(biased_views, tau_plus=self.tau_plus)
        contrast = difficulty_weighted_info_nce(
            views,
            biased_views=biased_views.detach(),
            temperature=self.temperature,
            tau_plus=self.tau_plus,
            form=self.form,
        )
        return contrast + triplet, {"encoder": features[0], "biased_encoder": biased_features[0]}

    def encoders(self) -> dict[str, Encoder]:
        return {"encoder": self.network.encoder, "biased_encoder": self.biased.encoder}
