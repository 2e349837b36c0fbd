"""Groups that a biased network finds: without bias labels, trained once, the same for every trial of a study."""

from dataclasses import replace
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
import torch
from small import config, digits, trained

from study import data
from study.data.dataset import Dataset, Facts, Split
from study.metrics import METRICS
from study.spec.trial_sections import train_knobs
from study.training.config import TrialConfig
from study.training.trial import BIAS_FROM_EARLY_LAYERS, INFERRED_GROUP_MODELS, Trial, infer_groups

CPU = torch.device("cpu")
PLAIN = {"name": "cross_entropy"}
INFERRED = {name for name, metric in METRICS.items() if metric.needs_inferred_groups}


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where what networks found is kept."""
    monkeypatch.setenv("STUDY_DATA", str(tmp_path))
    return tmp_path


def as_biased() -> Dataset:
    """biased_digits with a third of the training samples as a validation split that is as biased as they are."""
    whole = data.load({"name": "biased_digits", "rho": 0.95})
    train, order = whole.splits["train"], np.random.default_rng(0).permutation(len(whole.splits["train"]))
    third = len(order) // 3
    parts = {"val": order[:third], "train": order[third:]}
    splits = {
        name: Split(train.inputs[at], train.target[at], train.bias[at], train.condition[at])
        for name, at in parts.items()
    }
    return Dataset(whole.facts, {**splits, "test": whole.splits["test"]})


def test_each_kind_has_its_name() -> None:
    assert {"none", BIAS_FROM_EARLY_LAYERS, *INFERRED_GROUP_MODELS} == set(
        get_args(train_knobs()["inferred_groups"].type)
    )


@pytest.mark.slow
@pytest.mark.parametrize("kind", INFERRED_GROUP_MODELS)
def test_most_conflicting_samples_are_found_and_few_others(kind: str) -> None:
    dataset = as_biased()
    groups = infer_groups(config(PLAIN, inferred_groups=kind), dataset, CPU)
    assert set(groups) == {"val", "test"}
    for name, group in groups.items():
        split = dataset.splits[name]
        conflicting, wrong = split.bias != split.target, (group != torch.from_numpy(split.target)).numpy()
        assert (wrong & conflicting).sum() / conflicting.sum() > 0.75, name
        assert (wrong & conflicting).sum() / wrong.sum() > 0.85, name


def test_bias_labels_are_never_looked_at() -> None:
    dataset = digits()
    without = {name: replace(split, bias=None, condition=None) for name, split in dataset.splits.items()}
    unlabelled = Dataset(replace(dataset.facts, bias_classes=None, condition=None), without, dataset.fingerprint)
    asked = config(PLAIN, inferred_groups="early", bias_model_epochs=1)
    found = infer_groups(asked, unlabelled, CPU)
    again = infer_groups(asked, Dataset(dataset.facts, dataset.splits, "another"), CPU)
    assert all(torch.equal(found[name], again[name]) for name in ("val", "test"))


def test_a_trial_has_the_metrics_of_groups_that_were_asked_for() -> None:
    trial, epochs = trained(PLAIN, digits(), epochs=2, inferred_groups="gce", bias_model_epochs=2)
    assert {name for name in epochs[-1] if "inferred" in name} == {
        f"val/{name}{end}" for name in INFERRED for end in ("", "_standard_error")
    } - {"val/inferred_worst_group_accuracy_standard_error"}, "the smallest of many has none"
    assert {f"test/{name}" for name in INFERRED} <= set(trial.evaluate("test", final=True))
    plain = trained(PLAIN, digits(), epochs=2)[1]
    assert [{name: one[name] for name in other} for one, other in zip(epochs, plain, strict=True)] == plain


def test_the_network_is_trained_once_for_all_that_share_it(home: Path) -> None:
    def kept() -> dict[Path, int]:
        return {path: path.stat().st_mtime_ns for path in home.rglob("*.npz")}

    asked = {"inferred_groups": "early", "bias_model_epochs": 1}
    infer_groups(config(PLAIN, **asked), digits(), CPU)
    files = kept()
    assert len(files) == 2
    infer_groups(config({"name": "sup_con"}, seed=5, epochs=9, learning_rate=0.1, **asked), digits(), CPU)
    assert kept() == files
    infer_groups(config(PLAIN, **{**asked, "inferred_groups": "gce"}), digits(), CPU)
    infer_groups(config(PLAIN, **{**asked, "bias_model_epochs": 2}), digits(), CPU)
    infer_groups(config(PLAIN, **asked), digits(0.9), CPU)
    assert len(kept()) == 8


def test_a_table_has_groups_too() -> None:
    """Rows whose second column tells the bias more clearly than the first tells the class."""
    chance = np.random.default_rng(0)
    splits = {}
    for name, rho in (("train", 0.95), ("val", 0.95), ("test", 0.5)):
        target = chance.integers(0, 2, 600)
        bias = np.where(chance.random(600) < rho, target, 1 - target)
        rows = chance.normal(size=(600, 4)).astype(np.float32)
        rows[:, 0] += target
        rows[:, 1] += 4 * bias
        splits[name] = Split(rows, target, bias)
    dataset = Dataset(Facts(2, 2, (4,)), splits)
    document = config(PLAIN, inferred_groups="gce").to_document() | {"model": {"name": "mlp"}}
    groups = infer_groups(TrialConfig.from_document(document), dataset, CPU)
    assert ((groups["test"].numpy() == splits["test"].bias).mean()) > 0.9


def test_the_validation_samples_that_a_final_training_adds_train_no_biased_network(home: Path) -> None:
    asked = {"inferred_groups": "early", "bias_model_epochs": 1, "epochs": 1}
    searched = Trial(config(PLAIN, **asked), digits(), "cpu")
    final = Trial(config(PLAIN, **asked, with_val=True), digits(), "cpu")
    assert torch.equal(searched.inferred_groups_by_split["test"], final.inferred_groups_by_split["test"])
    assert len(list(home.rglob("*.npz"))) == 2
    list(final.train_epochs())
    assert "test/inferred_unbiased_accuracy" in final.evaluate("test", final=True)
