"""A contrastive loss with all that can be added to it, as a module."""

from collections.abc import Callable, Hashable, Mapping
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from study.data.dataset import Facts
from study.knobs import Section, to_options, value_or_default
from study.losses.cclk import kernel_weight_diagnostics
from study.losses.debiased_info_nce import share_of_floored_rows
from study.losses.loss_catalogue import losses_by_name, needs_two_views, required_tensor_names
from study.losses.sup_con import sup_con
from study.methods.base_method import Batch, BatchLabels, Method, PerSampleBuffer, compute_embeddings
from study.methods.classifier_methods import LinearClassifier, build_adversary
from study.methods.debiasing import LossTerm, RegularisedLoss, TermWeights, build_regulariser, classifier_stage_epochs
from study.methods.method_needs import BALANCED_CROSS_ENTROPY, PLAIN_CROSS_ENTROPY, UNKNOWN_LABEL
from study.models import Network


class LossInputBuilder(nn.Module):
    """The named tensors that a contrastive loss asks for, made from a batch's labels and the network's features.

    Args:
        method: a complete, checked `method` section.
        bias_classes: of the data set, if it has bias labels.
        on_representation: the condition is the features themselves.
    """

    def __init__(self, method: Section, bias_classes: int | None, on_representation: bool) -> None:
        super().__init__()
        self.on_representation = on_representation
        self.asks_features = "bias_features" in required_tensor_names(str(method["name"]))
        self.bias_classes = bias_classes or 1
        self.clusters = value_or_default(method, "clusters", 0)
        self.use_target = value_or_default(method, "use_target", True)
        self.cluster_of = PerSampleBuffer(0)

    def prepare_training(self, train: BatchLabels) -> None:
        """Cluster the whole training split, where clusters are asked for."""
        if self.clusters and train.condition is not None:
            from sklearn.cluster import KMeans

            values = train.condition.cpu().numpy()
            fitted = KMeans(min(self.clusters, len(values)), n_init=1, random_state=0).fit(values)
            self.cluster_of.values = torch.as_tensor(fitted.labels_, dtype=torch.long, device=train.target.device)

    def forward(self, batch: Batch, features: Tensor) -> dict[str, Tensor | None]:
        """Return the tensors by name; `features` are the encoder's, (V, B, F)."""
        labels = batch.labels
        inputs = labels.loss_tensors_by_name() | {"condition": features if self.on_representation else labels.condition}
        if not self.use_target:
            inputs["target"] = None
        if len(self.cluster_of.values):
            inputs["bias"] = self.cluster_of.values[batch.index]
        if self.asks_features and labels.bias_features is None and labels.bias is not None:
            inputs["bias_features"] = functional.one_hot(labels.bias, self.bias_classes).float()
        return inputs


# These diagnoses show for which share of samples a contrastive loss does not work as intended.

LossInputs = Mapping[str, Tensor | None]


def _floored_share_diagnostics(views: Tensor, inputs: LossInputs, options: Section) -> dict[str, Tensor]:
    hyperparameters = {key: options[key] for key in ("temperature", "tau_plus", "beta") if key in options}
    share = share_of_floored_rows(views, extra_positives=inputs.get("extra_positives"), **hyperparameters)
    return {"floored_share": share}


def _kernel_weight_diagnostics(views: Tensor, inputs: LossInputs, options: Section) -> dict[str, Tensor]:
    condition = inputs.get("bias") if inputs.get("condition") is None else inputs["condition"]
    if condition is None:
        return {}
    first = condition[0] if condition.ndim == 3 else condition
    hyperparameters = {key: options[key] for key in ("kernel", "sigma2", "degree", "ridge") if key in options}
    measures = kernel_weight_diagnostics(first, **hyperparameters)
    if options.get("form") == "paper":  # keeps the diagonal, where the rest of the weight is
        return {"weightless_share": measures["weightless_share"]}
    return measures


LOSS_DIAGNOSTICS: Mapping[str, Callable[[Tensor, LossInputs, Section], dict[str, Tensor]]] = {
    "debiased_info_nce": _floored_share_diagnostics,
    "hard_negative_info_nce": _floored_share_diagnostics,
    "weakly_supervised_cclk": _kernel_weight_diagnostics,
    "fair_cclk": _kernel_weight_diagnostics,
    "hard_negative_cclk": _kernel_weight_diagnostics,
}
"""Diagnosis of a loss, by the loss's name: of unit embeddings of two views (2, B, D), the loss's named tensors and
hyperparameters.
"""


class ContrastiveMethod(Method):
    """A contrastive loss and what is added to it.

    Args:
        method: a complete, checked `method` section.
        on_representation: see `LossInputBuilder`.
    """

    def __init__(self, method: Section, facts: Facts, network: Network, on_representation: bool) -> None:
        super().__init__()
        self.network, self.name = network, str(method["name"])
        self.loss = RegularisedLoss(
            LossTerm.from_method(losses_by_name()[self.name], method),
            build_regulariser(method),
            to_options(TermWeights, method),
        )
        self.inputs = LossInputBuilder(method, facts.bias_classes, on_representation)
        positives = value_or_default(method, "positives", 1)
        least = 2 if needs_two_views(self.name) or not method.get("use_target", True) else 1
        self.pair_views = least if needs_two_views(self.name) else max(least, value_or_default(method, "views", 1))
        self.views = self.pair_views + (positives if positives > 1 else 0)
        adds_cross_entropy = method.get("cross_entropy", "none") != "none"
        weight = method.get("ce_weight", 1.0) if adds_cross_entropy else 0.0
        assert isinstance(weight, int | float)
        self.ce_weight = weight
        self.stage_epochs = classifier_stage_epochs(method)
        self.in_stage = False
        self.classifier = self._build_classifier(method, facts) if adds_cross_entropy or self.stage_epochs else None
        self.adversary = build_adversary(method, network.encoder.features, facts.bias_classes)
        self.elsewhere = LossTerm.from_method(sup_con, method) if method.get("unknown_bias") == "sup_con" else None

    def prepare_training(self, train: BatchLabels) -> None:
        self.inputs.prepare_training(train)
        if self.elsewhere is not None and train.bias is not None:
            self.known = (train.bias != UNKNOWN_LABEL).cpu()
        if self.classifier is not None:
            self.classifier.prepare_training(train)

    def begin_epoch(self, epoch: int, epochs: int) -> None:
        self.in_stage = epoch > epochs - self.stage_epochs

    def cuda_graph_key(self) -> Hashable | None:
        return (self.in_stage,) if self.elsewhere is None else None

    def forward(self, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        features, embeddings = compute_embeddings(self.network, batch.views)
        if self.in_stage and self.classifier is not None:
            value = self._add_adversary_loss(self.classifier(features[0], batch.labels), features, batch.labels)
            return value, {"encoder": features[0]}
        value = self._contrastive_loss(features, embeddings, batch)
        if self.classifier is not None and self.ce_weight != 0:
            value = value + self.ce_weight * self.classifier(features[0], batch.labels)
        if not self.stage_epochs:
            value = self._add_adversary_loss(value, features, batch.labels)
        return value, {"encoder": features[0]}

    def own_classifier(self) -> nn.Module | None:
        if self.classifier is None or (self.stage_epochs and not self.in_stage):
            return None
        return self.classifier.linear

    def diagnose(self, batch: Batch) -> dict[str, Tensor]:
        if self.in_stage or self.name not in LOSS_DIAGNOSTICS:
            return {}
        pair, inputs = self._loss_views_and_tensors(*compute_embeddings(self.network, batch.views), batch)
        return LOSS_DIAGNOSTICS[self.name](pair, inputs, self.loss.contrastive.options)

    def get_extra_state(self) -> Tensor:
        """Save the stage: weights that are loaded are evaluated as they were when they were saved."""
        return torch.tensor(self.in_stage)

    def set_extra_state(self, state: Tensor) -> None:
        self.in_stage = bool(state)

    def _build_classifier(self, method: Section, facts: Facts) -> LinearClassifier:
        loss = BALANCED_CROSS_ENTROPY if method.get("cross_entropy") == "bias_balanced" else PLAIN_CROSS_ENTROPY
        return LinearClassifier(loss, self.network.encoder.features, facts)

    def _contrastive_loss(self, features: Tensor, embeddings: Tensor, batch: Batch) -> Tensor:
        pair, inputs = self._loss_views_and_tensors(features, embeddings, batch)
        one_tensor = len(features) == 1 and isinstance(self.network.head, nn.Identity)
        first = pair if one_tensor else functional.normalize(features[:1], dim=2)
        bias = batch.labels.bias
        if self.elsewhere is None or bias is None:
            return self.loss(pair, first, inputs, batch.labels.loss_tensors_by_name())
        return self._loss_by_known_bias(pair, first, batch.labels, self._known_bias_mask(batch))

    def _loss_views_and_tensors(
        self, features: Tensor, embeddings: Tensor, batch: Batch
    ) -> tuple[Tensor, dict[str, Tensor | None]]:
        """Return the loss's views and named tensors."""
        inputs = self.inputs(batch, features[: self.pair_views])
        if self.views > self.pair_views:
            inputs["extra_positives"] = embeddings[self.pair_views :]
        return embeddings[: self.pair_views], inputs

    def _known_bias_mask(self, batch: Batch) -> Tensor:
        """Return which samples have a known bias, booleans (B,) on the host.

        For a training batch nothing waits for the device.
        """
        if batch.host_index is not None:
            return self.known[batch.host_index]
        return cast(Tensor, batch.labels.bias != UNKNOWN_LABEL).cpu()

    def _loss_by_known_bias(self, pair: Tensor, first: Tensor, labels: BatchLabels, known: Tensor) -> Tensor:
        """Apply the loss to the samples whose bias is known, SupCon to the others (FSCL paper 4.6)."""
        value, count = pair.new_zeros(()), int(known.sum())
        there, absent = (mask.nonzero().squeeze(1).to(pair.device, non_blocking=True) for mask in (known, ~known))
        if count > 1:
            labels_of_known = labels.select_samples(there).loss_tensors_by_name()
            loss_inputs = labels_of_known if self.inputs.use_target else labels_of_known | {"target": None}
            value = value + count * self.loss(pair[:, there], first[:, there], loss_inputs, labels_of_known)
        if self.elsewhere is not None and len(known) - count > 1:
            target = labels.target[absent] if self.inputs.use_target else None
            rest = self.elsewhere(pair[:, absent], {"target": target})
            value = value + (len(known) - count) * self.loss.weights.contrastive_factor * rest
        return value / len(known)

    def _add_adversary_loss(self, value: Tensor, features: Tensor, labels: BatchLabels) -> Tensor:
        if self.adversary is None or labels.bias is None:
            return value
        return value + self.adversary(features.flatten(0, 1), labels.bias.repeat(len(features)))
