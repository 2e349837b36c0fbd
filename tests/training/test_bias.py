"""What a method knows of the bias: labels of a part, guesses, features; and that a network is trained once."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from helpers import timeless
from small import SAMPLES, config, digits, section, trained

from study import methods
from study.data.dataset import Dataset, Split
from study.errors import UserError
from study.methods import UNKNOWN_LABEL, BatchLabels
from study.training.config import TrialConfig
from study.training.device import DeviceSplit
from study.training.trial import Trial, labels_known_to_method

CPU = torch.device("cpu")
PARTLY = {"name": "fair_sup_con", "bias_source": "some_labels"}


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where prepared data is kept."""
    monkeypatch.setenv("STUDY_DATA", str(tmp_path))
    return tmp_path


def known(of: TrialConfig, dataset: Dataset) -> BatchLabels:
    """What the method knows of the training split."""
    return labels_known_to_method(DeviceSplit(dataset.splits["train"], dataset.facts, CPU).labels, of, dataset)


def known_bias(seed: int = 0, **method: object) -> torch.Tensor:
    return known(config(PARTLY | method, seed=seed), digits()).bias


def kept(home: Path) -> dict[Path, int]:
    """Every file of kept outputs, and when it was written."""
    return {path: path.stat().st_mtime_ns for path in home.rglob("*") if path.suffix in (".npy", ".npz")}


@pytest.mark.parametrize("share", [0.1, 0.37, 1.0])
def test_an_exact_share_is_known(share: float) -> None:
    labels, bias = torch.from_numpy(digits().splits["train"].bias), known_bias(known_bias=share, unknown_bias="sup_con")
    known = bias != UNKNOWN_LABEL
    assert int(known.sum()) == round(share * SAMPLES)
    assert torch.equal(bias[known], labels[known])
    assert torch.equal(bias, known_bias(known_bias=share, unknown_bias="sup_con"))
    assert share == 1.0 or not torch.equal(bias, known_bias(seed=1, known_bias=share, unknown_bias="sup_con"))


def test_the_bias_of_the_others_is_guessed_better_than_by_chance() -> None:
    labels = torch.from_numpy(digits().splits["train"].bias)
    known = known_bias(known_bias=0.25, unknown_bias="sup_con") != UNKNOWN_LABEL
    guessed = known_bias(known_bias=0.25, bias_learning_rate=0.01)
    assert torch.equal(guessed[known], labels[known])
    assert (guessed[~known] == labels[~known]).float().mean() > 0.5  # ten colours


def test_all_known_is_as_all_labels() -> None:
    everything = trained({"name": "fair_sup_con"}, digits(), epochs=2)[1]
    for unknown in ("sup_con", "pseudo_labels"):
        method = PARTLY | {"known_bias": 1.0, "unknown_bias": unknown}
        found = trained(method, digits(), epochs=2)[1]
        for one, other in zip(found, everything, strict=True):
            assert one == pytest.approx(other, rel=1e-5)


@pytest.mark.slow
def test_the_network_is_trained_once_and_leaves_no_trace_in_the_trial(home: Path) -> None:
    method = PARTLY | {"known_bias": 0.3, "bias_epochs": 2}
    first = timeless(Trial(config(method, epochs=2), digits(), "cpu").train_epochs())
    files = kept(home)
    assert files
    assert timeless(Trial(config(method, epochs=2), digits(), "cpu").train_epochs()) == first
    assert kept(home) == files
    known_bias(known_bias=0.3, bias_epochs=2)
    assert kept(home) == files  # the trial's other settings do not matter
    known_bias(known_bias=0.3, bias_epochs=3)
    known_bias(known_bias=0.2, bias_epochs=2)
    known_bias(seed=1, known_bias=0.3, bias_epochs=2)
    assert len({path.parent for path in kept(home)}) == 4


def test_too_few_to_learn_from() -> None:
    with pytest.raises(UserError, match=r"method\.known_bias: 0\.001 of 320 training samples is 0; .*fewer than 2"):
        known_bias(known_bias=0.001)


def large() -> Dataset:
    """Digits of 16 x 16 pixels: each pixel is four."""
    splits = {}
    for name, split in digits().splits.items():
        splits[name] = Split(split.inputs.repeat(2, 2).repeat(2, 3)[:96], split.target[:96], split.bias[:96])
    return Dataset(replace(digits().facts, shape=(3, 16, 16)), splits)


@pytest.mark.slow
def test_features_of_a_bias_capturing_network(home: Path) -> None:
    method = {"name": "soft_con", "bias_source": "model", "bias_epochs": 1}
    labels = known(config(method), large())
    assert labels.bias is None
    assert labels.bias_features.shape[0] == 96
    assert torch.isfinite(labels.bias_features).all()
    files = kept(home)
    again = known(config(method, seed=1), large())
    assert torch.equal(again.bias_features, labels.bias_features)
    found = trained(method, large(), epochs=1)[1]
    assert kept(home) == files
    assert found[-1]["train/loss"] != trained({"name": "soft_con"}, large(), epochs=1)[1][-1]["train/loss"]


@pytest.mark.parametrize("name", ["soft_con", "cross_entropy"])
def test_a_bias_capturing_network_needs_images_with_room_for_its_patch(name: str) -> None:
    method = section(name=name, regulariser="fair_kl", bias_source="model", bias_field=17)
    assert list(methods.unmet_needs(method, replace(digits().facts, bias_classes=None, shape=(3, 32, 32)))) == []
    for shape in [(3, 16, 16), (14,)]:
        (lack,) = methods.unmet_needs(method, replace(digits().facts, bias_classes=None, shape=shape))
        assert lack == ("bias_field", "needs images of at least 17 x 17 pixels")


def test_a_bias_capturing_network_of_a_final_training_that_trains_on_val_too() -> None:
    method = {"name": "soft_con", "bias_source": "model", "bias_epochs": 1}
    (last,) = trained(method, large(), epochs=1, with_val=True)[1]
    assert not [name for name in last if name.startswith("val/")]
