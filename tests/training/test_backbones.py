"""Trials whose encoder begins from weights: rates of their own, and going on after a stop."""

from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest
import torch
from helpers import timeless
from safetensors.torch import save_file
from small import config, digits
from torchvision.models import get_model

from study import models
from study.errors import UserError
from study.training.checkpoint import UnusableCheckpointError
from study.training.config import TrainOptions, TrialConfig
from study.training.evaluation import build_networks
from study.training.optimization import make_lr_scheduler, make_optimizer, parameter_groups
from study.training.trial import Trial

SMALL = "shufflenet_v2_x0_5"
METHOD = {"name": "cross_entropy"}


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    torch.manual_seed(5)
    save_file(get_model(SMALL, num_classes=4).state_dict(), tmp_path / "mine.safetensors")
    return tmp_path / "mine.safetensors"


def told(weights: Path, **model: object) -> TrialConfig:
    section = {"name": "torchvision", "architecture": SMALL, "weights": str(weights), **model}
    return replace(config(METHOD, epochs=3, batch_size=160, learning_rate=0.001), model=section)


@pytest.mark.parametrize("name", ["adam", "sgd", "lars"])
def test_the_encoder_has_a_rate_of_its_own_in_every_epoch(name: str, weights: Path) -> None:
    options = TrainOptions(epochs=4, optimizer=name, learning_rate=0.3, lr_milestones=(0.5,), warmup_epochs=1)
    trial = told(weights, lr_factor=0.1)
    method = build_networks(trial, digits().facts)["method"]
    of = make_optimizer(parameter_groups(method, options), options, torch.device("cpu"))
    rates = make_lr_scheduler(of, options)
    encoder = {id(tensor) for tensor in method.network.encoder.parameters()}
    for expected in (0.3, 0.3, 0.03, 0.03):
        for group in of.param_groups:
            of_encoder = {id(tensor) in encoder for tensor in group["params"]}
            assert of_encoder == {group["lr"] == pytest.approx(0.1 * expected)}
            assert group["lr"] == pytest.approx(expected * (0.1 if of_encoder == {True} else 1.0))
        of.step()
        rates.step()
    assert sum(len(group["params"]) for group in of.param_groups) == len(list(method.parameters()))


def test_without_a_factor_the_parameters_are_one_group_in_their_order(weights: Path) -> None:
    method = build_networks(told(weights), digits().facts)["method"]
    found = list(parameter_groups(method, TrainOptions()))
    assert all(one is other for one, other in zip(found, method.parameters(), strict=True))


@pytest.mark.slow
def test_a_stopped_trial_goes_on_bit_for_bit(weights: Path, tmp_path: Path) -> None:
    trial, file = told(weights, lr_factor=0.1), tmp_path / "state.pt"
    whole = Trial(trial, digits(), "cpu")
    expected = timeless(whole.train_epochs())
    first = timeless(islice(Trial(trial, digits(), "cpu").train_epochs(file), 2))[:1]
    resumed = Trial(trial, digits(), "cpu")
    assert [*first, *timeless(resumed.train_epochs(file))] == expected
    ended = resumed.method.network.encoder.net.state_dict()
    for name, tensor in whole.method.network.encoder.net.state_dict().items():
        assert torch.equal(ended[name], tensor)


@pytest.mark.slow
def test_a_checkpoint_of_other_weights_is_not_gone_on_with(weights: Path, tmp_path: Path) -> None:
    trial, file = told(weights), tmp_path / "state.pt"
    list(islice(Trial(trial, digits(), "cpu").train_epochs(file), 2))
    torch.manual_seed(6)
    save_file(get_model(SMALL).state_dict(), weights)
    with pytest.raises(UnusableCheckpointError, match="of another configuration, other data or code"):
        list(Trial(trial, digits(), "cpu").train_epochs(file))


@pytest.mark.slow
def test_a_trained_model_needs_no_weights_file(weights: Path, tmp_path: Path) -> None:
    trial = Trial(told(weights), digits(), "cpu")
    trial.save_model(tmp_path / "one.safetensors")
    measured = trial.evaluate("val")
    weights.unlink()
    models.initial_weights._cached_sha256.cache_clear()
    with pytest.raises(UserError, match="not found"):
        Trial(told(weights), digits(), "cpu")
    fresh = Trial(told(weights), digits(), "cpu", loads_weights=False)
    fresh.load_model(tmp_path / "one.safetensors")
    assert fresh.evaluate("val") == measured
