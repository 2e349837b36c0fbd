"""A trial has diverged where its loss, its networks or what they give is no number, and only there."""

import math

import pytest
import torch
from small import config, digits
from torch import nn

from study.data.dataset import Dataset
from study.training.diverged import (
    DivergedError,
    check_features_are_finite,
    check_loss_is_finite,
    check_networks_are_finite,
)
from study.training.trial import Trial

CONTRASTIVE = {"name": "eps_sup_info_nce", "temperature": 0.1, "regulariser": "fair_kl", "alpha": 0.1, "lambda": 1.0}
CLASSIFIER = {"name": "cross_entropy"}


@pytest.fixture(scope="module")
def dataset() -> Dataset:
    return digits()


@pytest.mark.parametrize("optimizer", ["adam", "sgd"])
@pytest.mark.parametrize("rate", [1e10, 1e15])
def test_weights_that_exploded_behind_a_batch_norm_are_divergence_though_the_loss_is_finite(
    dataset: Dataset, optimizer: str, rate: float
) -> None:
    """The running variance overflows, and the network that is evaluated gives one and the same features for all."""
    trial = Trial(config(CONTRASTIVE, learning_rate=rate, optimizer=optimizer), dataset, "cpu")
    with pytest.raises(DivergedError, match=r"^a weight or a running statistic .* is not finite in epoch 1$"):
        list(trial.train_epochs())
    assert len(torch.unique(trial.evaluate.compute_features("val"), dim=0)) == 1


def test_features_that_are_no_numbers_in_the_last_epoch_are_divergence(dataset: Dataset) -> None:
    """The last step can bring it about, behind which there is no loss and no batch norm that would tell."""
    trial = Trial(config(CLASSIFIER, learning_rate=10.0, optimizer="sgd", epochs=1), dataset, "cpu")
    with pytest.raises(DivergedError, match=r"^the features of 320 of 320 samples of val are not finite$"):
        list(trial.train_epochs())


@pytest.mark.parametrize("rate", [1e-12, 1e6])
def test_a_trial_that_learns_nothing_is_complete_while_all_of_it_are_numbers(dataset: Dataset, rate: float) -> None:
    """Chance is a result that the search has to hear, and a wrong alarm would end a slow trial that is healthy."""
    *_, last = Trial(config(CONTRASTIVE, learning_rate=rate, optimizer="sgd"), dataset, "cpu").train_epochs()
    assert last["val/accuracy"] < 0.2


@pytest.mark.parametrize("loss", [math.nan, math.inf, -math.inf])
def test_a_loss_that_is_no_number_is_divergence(loss: float) -> None:
    with pytest.raises(DivergedError, match=f"^loss is {loss} in epoch 3$"):
        check_loss_is_finite(loss, 3)
    check_loss_is_finite(-1e30, 3)


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_one_value_among_all_is_enough(value: float) -> None:
    encoder = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
    check_networks_are_finite(encoder.parameters(), [encoder], 2)
    for tensor in encoder.state_dict().values():
        if tensor.is_floating_point():
            kept = tensor.clone()
            tensor.view(-1)[-1] = value
            with pytest.raises(DivergedError, match=r"in epoch 2$"):
                check_networks_are_finite(encoder.parameters(), [encoder], 2)
            tensor.copy_(kept)
            check_networks_are_finite(encoder.parameters(), [encoder], 2)


def test_a_mask_of_an_encoder_is_no_statistic() -> None:
    """Attention masks are made of minus infinity."""
    encoder = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
    encoder.register_buffer("mask", torch.full((4, 4), -math.inf).triu(1))
    check_networks_are_finite(encoder.parameters(), [encoder], 2)


def test_samples_without_features_are_counted() -> None:
    features = torch.ones(5, 3)
    check_features_are_finite(features, "val")
    features[1, 2] = math.nan
    features[4] = math.inf
    with pytest.raises(DivergedError, match="of 2 of 5 samples of val"):
        check_features_are_finite(features, "val")
