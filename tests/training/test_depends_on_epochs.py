"""A trial is the beginning of a longer one, bit for bit, unless what it does depends on its number of epochs."""

import pytest
from helpers import timeless
from one_trial import config

from study.data import Dataset
from study.training.config import depends_on_epoch_count
from study.training.trial import Trial


def sections(*assignments: str) -> dict:
    return config(*assignments).to_document()


@pytest.mark.slow
@pytest.mark.parametrize(
    "given",
    [
        ("train.warmup_epochs=2", "model.head=mlp", "model.head_norm=hidden"),
        ("train.optimizer=sgd",),
        ("train.optimizer=lars",),
    ],
    ids=["plain", "sgd", "lars"],
)
def test_the_first_epochs_of_a_longer_trial_are_those_of_a_shorter_one(
    dataset: Dataset, given: tuple[str, ...]
) -> None:
    longer, shorter = (
        timeless(Trial(config(f"train.epochs={epochs}", *given), dataset, "cpu").train_epochs()) for epochs in (5, 2)
    )
    assert [{name: epoch[name] for name in short} for epoch, short in zip(longer, shorter, strict=False)] == shorter


@pytest.mark.parametrize(
    ("given", "depends"),
    [
        (("train.schedule=cosine",), True),
        (("train.lr_milestones=[0.5]",), True),
        (("train.lr_milestones=[0.5]", "train.schedule=constant"), False),
        (("train.warmup_epochs=2",), False),
        ((), False),
    ],
)
def test_which_key_makes_a_trial_depend_on_its_epochs(given: tuple[str, ...], depends: bool) -> None:
    assert depends_on_epoch_count(sections(*given)) is depends


@pytest.mark.parametrize(
    ("method", "depends"),
    [({"name": "just_train_twice", "identification": 0.2, "upweight": 20.0}, True), ({"name": "cross_entropy"}, False)],
)
def test_which_method_depends_on_its_epochs(method: dict, depends: bool) -> None:
    assert depends_on_epoch_count({**sections(), "method": method}) is depends
