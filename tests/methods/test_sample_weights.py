"""Weights of samples by the size of their class or cell: those of scikit-learn, and what a loss makes of them."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from helpers import refused
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.utils.class_weight import compute_sample_weight
from small import method_for_rows, rows
from torch.nn import functional

from study import methods
from study.data.dataset import Dataset, Facts, Split
from study.methods import UNKNOWN_LABEL, BatchLabels
from study.methods.sample_weights import add_sample_weights, weighted_mean_cross_entropy
from study.training.config import TrainOptions, TrialConfig
from study.training.trial import Trial

TARGET = torch.tensor([0] * 12 + [1] * 4 + [2] * 4)
BIAS = torch.tensor([0] * 9 + [1] * 3 + [1] * 4 + [0, 1, 1, 1])
LABELS = BatchLabels(TARGET, BIAS)
LOGITS = torch.randn(20, 3, generator=torch.Generator().manual_seed(0))


def weight(labels: BatchLabels = LABELS, **powers: float) -> torch.Tensor:
    found = add_sample_weights(labels, powers).weight
    assert found is not None
    return found


def test_at_one_they_are_scikit_learns_balanced_weights_of_classes_and_of_cells() -> None:
    balanced = compute_sample_weight("balanced", TARGET.numpy())
    torch.testing.assert_close(weight(class_weights=1.0), torch.tensor(balanced).float())
    cells = compute_sample_weight("balanced", (TARGET * 2 + BIAS).numpy())
    torch.testing.assert_close(weight(cell_weights=1.0), torch.tensor(cells).float())


def test_a_power_lies_between_none_and_balanced() -> None:
    root = torch.tensor(compute_sample_weight("balanced", TARGET.numpy())).float().sqrt()
    torch.testing.assert_close(weight(class_weights=0.5), root / root.mean())
    assert add_sample_weights(LABELS, {"class_weights": 0.0, "cell_weights": 0.0}) is LABELS


@pytest.mark.parametrize("power", [0.3, 1.0])
def test_beside_weights_of_cells_those_of_classes_even_out_what_is_left_between_classes(power: float) -> None:
    both, cells = weight(class_weights=1.0, cell_weights=power), weight(cell_weights=power)
    sums = torch.zeros(3).index_add(0, TARGET, both)
    torch.testing.assert_close(sums, torch.full((3,), 20 / 3))
    assert float((both / cells)[TARGET == 2].std()) == pytest.approx(0, abs=1e-6)


def test_a_sample_without_class_counts_nowhere_and_one_of_unknown_bias_weighs_as_the_average() -> None:
    more = BatchLabels(torch.cat([TARGET, torch.tensor([UNKNOWN_LABEL])]), torch.cat([BIAS, torch.tensor([0])]))
    torch.testing.assert_close(weight(more, class_weights=1.0)[:-1], weight(class_weights=1.0))
    guessed = BatchLabels(torch.cat([TARGET, torch.tensor([1])]), torch.cat([BIAS, torch.tensor([UNKNOWN_LABEL])]))
    found = weight(guessed, cell_weights=1.0)
    torch.testing.assert_close(found[:-1], weight(cell_weights=1.0))
    assert found[-1] == 1
    nobody = BatchLabels(torch.full((4,), UNKNOWN_LABEL), torch.full((4,), UNKNOWN_LABEL))
    assert add_sample_weights(nobody, {"class_weights": 1.0, "cell_weights": 1.0}) is nobody


def test_the_weighted_cross_entropy_is_scikit_learns_and_torchs() -> None:
    labels = add_sample_weights(LABELS, {"class_weights": 1.0})
    assert labels.weight is not None
    value = float(weighted_mean_cross_entropy(LOGITS, labels))
    probabilities = LOGITS.double().softmax(1).numpy()
    assert value == pytest.approx(log_loss(TARGET, probabilities, sample_weight=labels.weight), rel=1e-6)
    of_class = torch.tensor([20 / (3 * count) for count in (12, 4, 4)])
    assert value == pytest.approx(float(functional.cross_entropy(LOGITS, TARGET, of_class)), rel=1e-6)


CLASSIFICATION: list[dict[str, Any]] = [
    {"name": "cross_entropy"},
    {"name": "bias_balanced_cross_entropy"},
    {"name": "generalized_cross_entropy", "form": "paper"},
    {"name": "generalized_cross_entropy", "form": "released"},
]


@pytest.mark.parametrize("section", CLASSIFICATION, ids=lambda section: "-".join(section.values()))
def test_a_sample_of_weight_two_counts_as_two_samples(section: Mapping[str, Any]) -> None:
    method, batch = method_for_rows(**section), rows(16)
    method.prepare_training(batch.labels)
    labels = replace(batch.labels, weight=torch.tensor([2.0, 0.0] * 8))
    twice = torch.arange(0, 16, 2).repeat_interleave(2)
    repeated = replace(batch, views=batch.views[:, twice], labels=batch.labels.select_samples(twice))
    torch.testing.assert_close(method(replace(batch, labels=labels))[0], method(repeated)[0])


OTHERS = ("group_dro", "just_train_twice", "learning_from_failure", "laftr", "equalized_odds_postprocessing")


@pytest.mark.parametrize("name", OTHERS)
def test_every_method_with_a_classifier_takes_them(name: str) -> None:
    batch = rows(32)
    values = []
    for given in (None, torch.ones(32), torch.linspace(0, 2, 32)):
        method = method_for_rows(name=name)
        method.prepare_training(batch.labels)
        method.begin_epoch(2, 4)
        values.append(method(replace(batch, labels=replace(batch.labels, weight=given)))[0])
    torch.testing.assert_close(values[0], values[1])
    assert not torch.isclose(values[0], values[2])


def imbalanced() -> Dataset:
    generator = np.random.default_rng(0)
    target = (generator.random(600) < 0.15).astype(np.int64)
    inputs = (generator.normal(size=(600, 4)) + 0.7 * target[:, None]).astype(np.float32)
    split = Split(inputs, target, generator.integers(0, 2, 600))
    return Dataset(Facts(2, 2, (4,)), {"train": split, "val": split})


def trained(method: Mapping[str, Any]) -> dict[str, float]:
    """A linear network trained until it stands still."""
    whole = {"name": method["name"]} | {key: knob.default for key, knob in methods.method_knobs(method).items()}
    model = {"name": "linear", "features": 8, "head": "none"}
    options = TrainOptions(epochs=80, batch_size=600, learning_rate=0.05, probe_learning_rate=0.3)
    *_, last = Trial(TrialConfig({}, model, {**whole, **method}, options), imbalanced(), "cpu").train_epochs()
    return last


def test_a_linear_network_with_them_is_scikit_learns_balanced_logistic_regression() -> None:
    split = imbalanced().splits["train"]
    rivals = [
        LogisticRegression(C=1e6, class_weight=kind).fit(split.inputs, split.target) for kind in (None, "balanced")
    ]
    plain, balanced = ((rival.predict(split.inputs) == split.target).mean() for rival in rivals)
    assert trained({"name": "cross_entropy", "class_weights": 1.0})["val/accuracy"] == pytest.approx(balanced, abs=0.01)
    assert trained({"name": "cross_entropy"})["val/accuracy"] == pytest.approx(plain, abs=0.01)
    assert plain - balanced > 0.05


def test_the_probe_of_a_contrastive_loss_takes_them_too() -> None:
    recall = [trained({"name": "sup_con", "class_weights": power})["val/worst_class_accuracy"] for power in (0.0, 1.0)]
    assert recall[1] > recall[0] + 0.2


def test_cell_weights_ask_for_bias_labels_and_powers_lie_from_zero_to_one() -> None:
    assert "class_weights: 1.5 given" in refused("method.class_weights=1.5")
    assert "cell_weights" not in methods.method_knobs({"name": "cross_entropy", "bias_source": "model"})
    section = {"name": "cross_entropy", "class_weights": 1.0, "cell_weights": 0.5}
    assert list(methods.unmet_needs(section, Facts(2, None, (4,)))) == [("cell_weights", "needs bias labels")]
    assert not list(methods.unmet_needs(section, Facts(2, 2, (4,))))
