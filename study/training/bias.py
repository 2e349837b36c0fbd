"""What a method knows of the bias of the training samples: all of it, a part, or what a network makes of it."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from study.data.dataset import Dataset, Split
from study.errors import UserError
from study.knobs import options
from study.methods import UNKNOWN, Labels
from study.methods.bias_source import LABELS, MODEL, SOME_LABELS, BiasModel, Preparation, SomeLabels
from study.training.config import TrainOptions, TrialConfig
from study.training.resident import tensor
from study.training.stand_in import BATCH, PLAIN, StandIn

OBSERVED = 2048
"""Samples that a stand-in network is evaluated on: few are enough, nobody looks at its metrics."""


def known_labels(labels: Labels, config: TrialConfig, dataset: Dataset) -> Labels:
    """The labels of the training split as the `method` section lets its method know them.

    The state of torch's generators stays as it is, whether a network was trained for this or not.

    Args:
        labels: all that the data say of that split, on the trial's device.

    Raises:
        UserError: fewer than two samples would have a known bias, or no folder for data can be written.
        Diverged: the loss of the network that stands in for labels is not finite.
    """
    return _SOURCES[config.method.get("bias_source", LABELS)](labels, config, dataset)


def _all(labels: Labels, config: TrialConfig, dataset: Dataset) -> Labels:
    return labels


def _some(labels: Labels, config: TrialConfig, dataset: Dataset) -> Labels:
    """A share of the samples keeps its bias; the others have none, or one that is guessed (FSCL paper Table 5)."""
    source, train, facts = options(SomeLabels, config.method), dataset.splits["train"], dataset.facts
    if labels.bias is None or train.bias is None or facts.bias_classes is None:
        raise UserError("method.bias_source: some_labels needs bias labels, the data have none")
    kept = _keeping(train.bias, source.known_bias, config.train.seed)
    some_bias = labels.bias.where(tensor(kept, labels.bias.device), UNKNOWN)
    if source.unknown_bias == "sup_con" or kept.all():
        return replace(labels, bias=some_bias)
    part = Split(train.inputs[kept], train.bias[kept])
    observed = Split(part.inputs[:OBSERVED], part.target[:OBSERVED])
    splits = {"train": part, "val": observed, "all": Split(train.inputs, np.zeros_like(train.target))}
    facts = replace(facts, classes=facts.bias_classes, bias_classes=None, condition=None, splits=tuple(splits))
    training = _training(config, config.train.seed)
    own = TrialConfig({}, config.model, PLAIN, training)
    made_from = f"{dataset.fingerprint}, bias of {source.known_bias}"
    network = StandIn(own, Dataset(facts, splits), made_from, ("all",), keeps_features=False)
    guess = tensor(network.outputs(labels.bias.device)["all"].target, labels.bias.device)
    return replace(labels, bias=some_bias.where(some_bias != UNKNOWN, guess))


def _model(labels: Labels, config: TrialConfig, dataset: Dataset) -> Labels:
    """Features of a network that sees too little of an image to know more than its bias (FairKL paper B.2.4)."""
    model = {"name": "bagnet", "receptive_field": options(BiasModel, config.method).bias_field}
    there = [name for name in ("train", "val") if name in dataset.splits]  # `train.with_val` leaves no val
    splits = {name: replace(dataset.splits[name], bias=None, condition=None) for name in there}
    facts = replace(dataset.facts, bias_classes=None, condition=None, splits=tuple(splits))
    training = _training(config, seed=0)
    own = TrialConfig({}, model, PLAIN, training)
    network = StandIn(own, Dataset(facts, splits), dataset.fingerprint, ("train",), keeps_features=True)
    device = labels.target.device
    return replace(labels, bias=None, bias_features=tensor(network.outputs(device)["train"].inputs, device))


_SOURCES: dict[str, Callable[[Labels, TrialConfig, Dataset], Labels]] = {
    LABELS: _all,
    SOME_LABELS: _some,
    MODEL: _model,
}


def _keeping(bias: NDArray[np.int64], share: float, seed: int) -> NDArray[np.bool_]:
    """Which samples keep their bias: this share of those that have one, drawn by the seed, (N,)."""
    labelled = np.flatnonzero(bias != UNKNOWN)
    count = round(share * len(labelled))
    if count < 2:
        problem = f"{share} of {len(labelled)} training samples is {count}"
        raise UserError(f"method.known_bias: {problem}; a network cannot learn the bias from fewer than 2")
    kept = np.zeros(len(bias), dtype=np.bool_)
    kept[np.random.default_rng(seed).permutation(labelled)[:count]] = True
    return kept


def _training(config: TrialConfig, seed: int) -> TrainOptions:
    preparation = options(Preparation, config.method)
    return TrainOptions(
        epochs=preparation.bias_epochs,
        batch_size=BATCH,
        learning_rate=preparation.bias_learning_rate,
        seed=seed,
        threads=config.train.threads,
        deterministic=config.train.deterministic,
    )
