"""One trial of a study."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from study import models
from study.data.cache import load_or_build_dataset
from study.data.dataset import Dataset, Facts, Split
from study.errors import UserError
from study.knobs import Section, Value, to_options
from study.methods import UNKNOWN_LABEL, BatchLabels
from study.methods.debiasing import (
    BIAS_FROM_EARLY_LAYERS,
    BIAS_FROM_LABELS,
    BIAS_FROM_MODEL,
    BIAS_FROM_SOME_LABELS,
    BiasSourceOptions,
)
from study.training.bias_from_early_layers import infer_bias_classes
from study.training.config import TrainOptions, TrialConfig
from study.training.device import to_device
from study.training.diverged import DivergedError
from study.training.loop import TrainingLoop

CROSS_ENTROPY_SECTION = {"name": "cross_entropy"}
BIAS_NETWORK_BATCH_SIZE = 256


@dataclass(frozen=True)
class BiasNetwork:
    """A classifier whose outputs stand in for bias labels that the data do not have.

    It is trained once on a machine: its outputs are kept beside the prepared data, by all that they depend on. The
    other trials of a study wait for it and read it.

    Attributes:
        config, dataset: what it is trained by and on.
        dataset_id: what the data set is, for the name under which the result is kept.
        splits: those whose outputs are asked for.
        keeps_features: the outputs are its features, else its logits.
    """

    config: TrialConfig
    dataset: Dataset
    dataset_id: str
    splits: tuple[str, ...]
    keeps_features: bool

    def load_or_train(self, device: torch.device) -> Mapping[str, Split]:
        """Return the outputs as tables, by split: features or logits float32 (N, F), with predictions as classes.

        The state of torch's generators stays as it is, whether a network was trained for this or not.

        Raises:
            UserError: no folder for data can be written.
            DivergedError: the loss of the network is not finite.
        """
        config = self.config
        with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
            features = models.build_encoder_without_head(config.model, self.dataset.facts, False).features
            classes = self.dataset.facts.classes
            facts = Facts(classes, None, (features if self.keeps_features else classes,), splits=self.splits)
            key: dict[str, Value] = {"model": dict(config.model), "train": asdict(config.train), "device": device.type}
            key |= {"method": dict(config.method), "facts": asdict(self.dataset.facts)}
            key |= {"made_from": self.dataset_id, "torch": torch.__version__}
            key |= {"weights": begun} if (begun := models.describe_weights(config.model)) else {}
            name = "bias_features" if self.keeps_features else "bias_guess"
            return load_or_build_dataset(name, key, facts, lambda: self._train_and_save(device)).splits

    def _train_and_save(self, device: torch.device) -> dict[str, Split]:
        loop = TrainingLoop(self.config, self.dataset, str(device))
        try:
            for _ in loop.train_epochs():
                pass
        except DivergedError as problem:
            raise DivergedError(f"the network that stands in for bias labels: {problem}") from None
        return {split: self._outputs_as_table(loop, split) for split in self.splits}

    def _outputs_as_table(self, loop: TrainingLoop, split: str) -> Split:
        features = loop.evaluate.compute_features(split)
        logits = loop.evaluate.class_scores("encoder", features)
        kept = features if self.keeps_features else logits
        return Split(kept.float().cpu().numpy(), logits.argmax(1).cpu().numpy())


MAX_BIAS_EVALUATION_SAMPLES = 2048
"""Samples that a `BiasNetwork` is evaluated on: few are enough, nobody looks at its metrics."""


def labels_known_to_method(labels: BatchLabels, config: TrialConfig, dataset: Dataset) -> BatchLabels:
    """Return the labels of the training split as the `method` section lets its method know them.

    The bias may be known for all samples, for some, or inferred by a network. The state of torch's generators stays as
    it is, whether a network was trained for this or not.

    Args:
        labels: all that the data say of that split, on the trial's device.

    Raises:
        UserError: fewer than two samples would have a known bias, or no folder for data can be written.
        DivergedError: the loss of the network that stands in for labels is not finite.
    """
    source = config.method.get("bias_source", BIAS_FROM_LABELS)
    if source == BIAS_FROM_SOME_LABELS:
        return _keep_some_bias_labels(labels, config, dataset)
    if source == BIAS_FROM_EARLY_LAYERS:
        return replace(labels, bias=infer_bias_classes(config.model, dataset, "train", labels.target.device))
    return _add_bias_model_features(labels, config, dataset) if source == BIAS_FROM_MODEL else labels


def _keep_some_bias_labels(labels: BatchLabels, config: TrialConfig, dataset: Dataset) -> BatchLabels:
    """Keep the bias of a share of the samples; the others have none, or one that is guessed (FSCL paper Table 5)."""
    source, train, facts = to_options(BiasSourceOptions, config.method), dataset.splits["train"], dataset.facts
    if labels.bias is None or train.bias is None or facts.bias_classes is None:
        raise UserError("method.bias_source: some_labels needs bias labels, the data have none")
    kept = _draw_known_bias_mask(train.bias, source.known_bias, config.train.seed)
    some_bias = labels.bias.where(to_device(kept, labels.bias.device), UNKNOWN_LABEL)
    if source.unknown_bias == "sup_con" or kept.all():
        return replace(labels, bias=some_bias)
    inputs = train.sample_inputs
    part = Split(inputs[kept], train.bias[kept])
    observed = Split(part.inputs[:MAX_BIAS_EVALUATION_SAMPLES], part.target[:MAX_BIAS_EVALUATION_SAMPLES])
    splits = {"train": part, "val": observed, "all": Split(inputs, np.zeros_like(train.target))}
    facts = replace(facts, classes=facts.bias_classes, bias_classes=None, condition=None, splits=tuple(splits))
    training = _bias_network_options(config, source.bias_epochs, source.bias_learning_rate, config.train.seed)
    own = TrialConfig({}, config.model, CROSS_ENTROPY_SECTION, training)
    made_from = f"{dataset.fingerprint}, bias of {source.known_bias}"
    network = BiasNetwork(own, Dataset(facts, splits), made_from, ("all",), keeps_features=False)
    guess = to_device(network.load_or_train(labels.bias.device)["all"].target, labels.bias.device)
    return replace(labels, bias=some_bias.where(some_bias != UNKNOWN_LABEL, guess))


def _add_bias_model_features(labels: BatchLabels, config: TrialConfig, dataset: Dataset) -> BatchLabels:
    """Add features of a network that sees too little of an image to learn more than its bias (FairKL paper B.2.4)."""
    source = to_options(BiasSourceOptions, config.method)
    model = {"name": "bagnet", "receptive_field": source.bias_field}
    there = [name for name in ("train", "val") if name in dataset.splits]  # `train.with_val` leaves no val
    splits = {name: replace(dataset.splits[name], bias=None, condition=None) for name in there}
    facts = replace(dataset.facts, bias_classes=None, condition=None, splits=tuple(splits))
    training = _bias_network_options(config, source.bias_epochs, source.bias_learning_rate, seed=0)
    own = TrialConfig({}, model, CROSS_ENTROPY_SECTION, training)
    network = BiasNetwork(own, Dataset(facts, splits), dataset.fingerprint, ("train",), keeps_features=True)
    device = labels.target.device
    return replace(labels, bias=None, bias_features=to_device(network.load_or_train(device)["train"].inputs, device))


def _draw_known_bias_mask(bias: NDArray[np.int64], share: float, seed: int) -> NDArray[np.bool_]:
    """Draw which samples keep their bias, (N,): this share of those that have one."""
    labelled = np.flatnonzero(bias != UNKNOWN_LABEL)
    count = round(share * len(labelled))
    if count < 2:
        problem = f"{share} of {len(labelled)} training samples is {count}"
        raise UserError(f"method.known_bias: {problem}; a network cannot learn the bias from fewer than 2")
    kept = np.zeros(len(bias), dtype=np.bool_)
    kept[np.random.default_rng(seed).permutation(labelled)[:count]] = True
    return kept


def _bias_network_options(config: TrialConfig, epochs: int, rate: float, seed: int) -> TrainOptions:
    return TrainOptions(
        epochs=epochs,
        batch_size=BIAS_NETWORK_BATCH_SIZE,
        learning_rate=rate,
        seed=seed,
        threads=config.train.threads,
        deterministic=config.train.deterministic,
    )


BIAS_NETWORK_RATE = 0.001

BIAS_NETWORK_SEED = 0

INFERRED_GROUP_MODELS: Mapping[str, tuple[Section, int]] = {
    "early": (CROSS_ENTROPY_SECTION, 8),
    "gce": ({"name": "generalized_cross_entropy", "q": 0.7}, 12),
}
"""For each name in `train.inferred_groups`, the `method` section of a classification method that needs classes alone,
and for how many epochs it trains the network, unless `train.bias_model_epochs` says otherwise. `early`: cross entropy,
stopped early, as what is easy is learned first (JTT, Liu et al. 2021); `gce`: generalised cross entropy, drawn to what
is easy already (LfF, Nam et al. 2020).
"""


def infer_groups(config: TrialConfig, dataset: Dataset, device: torch.device) -> dict[str, Tensor]:
    """Infer groups without bias labels; empty where none are asked for.

    A network that was trained to follow the bias gives each sample a class. A sample's group is its own class with that
    one, as in uLA (Tsirigotis et al., NeurIPS 2023); where the two differ, the bias leads away from the class. The
    network learns from the training split alone and is kept as `BiasNetwork` says. It depends on the data, `model`,
    `train.inferred_groups`, `train.bias_model_epochs` and the number of threads, and on nothing else of a trial: trials
    that differ in their method and training are judged by the same groups.

    Returns:
        The class that the network gives each sample, (N,), by split, the training split excepted.

    Raises:
        UserError: no folder for data can be written.
        DivergedError: the loss of the network is not finite.
    """
    own = config.train
    if own.inferred_groups == "none":
        return {}
    judged = tuple(name for name in dataset.splits if name != "train")
    if own.inferred_groups == BIAS_FROM_EARLY_LAYERS:
        return {name: infer_bias_classes(config.model, dataset, name, device) for name in judged}
    method, epochs = INFERRED_GROUP_MODELS[own.inferred_groups]
    train = _bias_network_options(config, own.bias_model_epochs or epochs, BIAS_NETWORK_RATE, BIAS_NETWORK_SEED)
    splits = {name: replace(split, bias=None, condition=None) for name, split in dataset.splits.items()}
    facts = replace(dataset.facts, bias_classes=None, condition=None)
    of_network = TrialConfig({}, config.model, method, train)
    network = BiasNetwork(of_network, Dataset(facts, splits), dataset.fingerprint, judged, keeps_features=False)
    return {name: to_device(split.target, device) for name, split in network.load_or_train(device).items()}


class Trial(TrainingLoop):
    """Training loop with the labels that the `method` section lets its method know, and with inferred groups.

    See `TrainingLoop`; `train.inferred_groups` says how groups are inferred.
    """

    def _labels_known_to_method(self) -> BatchLabels:
        return labels_known_to_method(super()._labels_known_to_method(), self.config, self.dataset)

    @cached_property
    def inferred_groups_by_split(self) -> Mapping[str, Tensor]:
        """Class of each sample's inferred group, (N,), by split."""
        return infer_groups(self.config, self._apart, self.device)
