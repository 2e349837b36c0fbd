"""A method with a state of its own goes on after a stop as if there had been none, bit for bit."""

from itertools import islice
from pathlib import Path

import pytest
from helpers import timeless
from small import config, digits

from study.training.trial import Trial

METHODS = [
    {"name": "learning_from_failure"},
    {"name": "just_train_twice", "identification": 0.25},
    {"name": "just_train_twice", "identification": 0.5},
    {"name": "just_train_twice", "identification": 0.75},
    {"name": "group_dro", "group_step": 0.3},
    {"name": "laftr"},
    {"name": "sup_con", "adversary": "classifier", "classifier_epochs": 1},
]


@pytest.mark.slow
@pytest.mark.parametrize("optimizer", ["adam", "sgd"])
@pytest.mark.parametrize("method", METHODS, ids=lambda method: f"{method['name']}-{len(method)}")
def test_two_epochs_and_two_more_are_four(method: dict, optimizer: str, tmp_path: Path) -> None:
    told, file = config(method, optimizer=optimizer), tmp_path / "state.pt"
    whole = Trial(told, digits(), "cpu")
    expected = timeless(whole.train_epochs())
    stopped = Trial(told, digits(), "cpu")
    first = timeless(islice(stopped.train_epochs(file), 3))[:2]  # an epoch is written once the next is asked for
    resumed = Trial(told, digits(), "cpu")
    assert [*first, *timeless(resumed.train_epochs(file))] == expected
    assert resumed.evaluate("test") == whole.evaluate("test")


@pytest.mark.parametrize("method", METHODS, ids=lambda method: f"{method['name']}-{len(method)}")
def test_saved_weights_load_into_a_trial_that_never_ran(method: dict, tmp_path: Path) -> None:
    trial = Trial(config(method, epochs=2), digits(), "cpu")
    list(trial.train_epochs())
    trial.save_model(tmp_path / "one.safetensors")
    fresh = Trial(config(method, epochs=2, seed=1), digits(), "cpu")
    fresh.load_model(tmp_path / "one.safetensors")
    assert fresh.evaluate("test") == trial.evaluate("test")
