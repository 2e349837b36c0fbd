"""One trial: the same configuration gives the same metrics bit for bit, and nothing but PyTorch is needed."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers import COST, ROOT, timeless
from one_trial import config, metrics
from safetensors.torch import save_file

from study import data
from study.data import Dataset, Split
from study.metrics import available_metrics
from study.metrics.intervals import is_minimum_over_many_groups
from study.training import probes
from study.training.checkpoint import UnusableCheckpointError
from study.training.config import TrialConfig
from study.training.evaluation import FITTED_PROBE_L2
from study.training.standard_errors import STANDARD_ERROR_FUNCTIONS
from study.training.trial import Trial

FRESH = """
# A machine that has PyTorch and nothing of the sweep: what is not there cannot be imported.
import importlib.abc, importlib.util, json, sys

BANNED = {"ray", "optuna", "mlflow", "pydantic", "pandas"}

class Absent(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path, target=None):
        return importlib.util.spec_from_loader(name, self) if name.partition(".")[0] in BANNED else None

    def create_module(self, spec):
        raise ModuleNotFoundError(spec.name, name=spec.name)

    def exec_module(self, module):
        pass

sys.meta_path.insert(0, Absent())
from study import data, losses, methods, models
from study.training.config import TrialConfig
from study.training.trial import Trial
config = TrialConfig.from_document(json.loads(sys.argv[1]))
trial = Trial(config, data.load(config.data), "cpu")
epochs = [{k: v.hex() for k, v in one.items() if k[:4] not in ("time", "spee", "memo")} for one in trial.train_epochs()]
print(json.dumps({"epochs": epochs, "test": {k: v.hex() for k, v in trial.evaluate("test").items()},
                  "found": sorted(BANNED & set(sys.modules))}))
"""


def in_a_fresh_process(of: TrialConfig, **environment: str) -> dict:
    done = subprocess.run(
        [sys.executable, "-c", FRESH, json.dumps(of.to_document())],
        env=os.environ | {"PYTHONPATH": str(ROOT), "CUDA_VISIBLE_DEVICES": ""} | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_trial_gives_each_epochs_metrics(dataset: Dataset) -> None:
    epochs = list(Trial(config(), dataset, "cpu").train_epochs())
    assert len(epochs) == 2
    names = available_metrics(dataset.facts)
    assert {"accuracy", "top5_accuracy", "worst_group_accuracy", "equalized_odds"} <= set(names)
    for one in epochs:
        timed = {name for name in one if name.startswith(COST)}
        assert {"time/epoch", "time/data", "speed/images_per_second", "memory/peak_mib"} <= timed
        known = [name for name in names if not is_minimum_over_many_groups(name, dataset.facts)]
        errors = [f"{name}_standard_error" for name in known if name in STANDARD_ERROR_FUNCTIONS]
        assert set(one) - timed == {"train/loss", *(f"val/{name}" for name in [*names, *errors])}
        assert all(type(value) is float for value in one.values())


@pytest.mark.slow
def test_the_same_configuration_gives_the_same_bits_whatever_ran_before(dataset: Dataset) -> None:
    first = metrics(Trial(config(), dataset, "cpu"))
    torch.rand(13)
    np.random.rand(7)
    metrics(Trial(config("train.epochs=1", seed=9), dataset, "cpu"))
    torch.set_num_threads(2)
    assert metrics(Trial(config(), dataset, "cpu")) == first


@pytest.mark.slow
def test_a_fresh_process_with_other_threads_gives_the_same_bits_without_any_other_library(dataset: Dataset) -> None:
    here = metrics(Trial(config(), dataset, "cpu"))
    told = in_a_fresh_process(config(), OMP_NUM_THREADS="2", MKL_NUM_THREADS="2", PYTHONHASHSEED="3")
    assert [{name: float.fromhex(value) for name, value in one.items()} for one in told["epochs"]] == here[:-1]
    assert {name: float.fromhex(value) for name, value in told["test"].items()} == here[-1]
    assert told["found"] == []


@pytest.mark.slow
def test_probes_of_a_network_in_half_precision_are_fitted_in_full(dataset: Dataset) -> None:
    """On the same features the same metrics, whatever the precision of the network that gave them."""
    half = Trial(config("train.precision=bfloat16", "train.final=[mlp,lbfgs]"), few(dataset, 300), "cpu")
    list(half.train_epochs())
    features = half.evaluate.compute_features("train")
    assert features.dtype == torch.float32
    target = torch.from_numpy(few(dataset, 300).splits["train"].target.copy())
    expected = probes.fit_mlp_probe(features, target, 10, 0)(half.evaluate.compute_features("val")).argmax(1)
    right = (expected == torch.from_numpy(dataset.splits["val"].target.copy())).double().mean()
    assert half.evaluate("val", final=True)["val/mlp_accuracy"] == float(right)


def test_the_probes_of_the_last_epoch_are_fitted_once(
    dataset: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For all splits, and for the test split that another process reads; not where weights or data are others."""
    fitted = []
    for name, fit in probes.PROBE_FITTERS.items():
        monkeypatch.setitem(
            probes.PROBE_FITTERS, name, lambda *given, name=name, fit=fit: fitted.append(name) or fit(*given)
        )
    settings, data = (
        config("train.final=[lbfgs,mlp,knn]", "train.report_test=true", "train.epochs=2"),
        few(dataset, 300),
    )
    trial = Trial(settings, data, "cpu")
    *_, last = trial.train_epochs()
    assert sorted(fitted) == ["knn", "lbfgs", "mlp"]
    trial.save_model(tmp_path / "model.safetensors")
    again = Trial(settings, data, "cpu", loads_weights=False)
    again.load_model(tmp_path / "model.safetensors")
    assert again.evaluate("test", final=True).items() <= last.items()
    assert sorted(fitted) == ["knn", "knn", "lbfgs", "mlp"]
    others = Trial(config("train.final=[lbfgs]", "train.epochs=2", seed=1), data, "cpu")
    list(others.train_epochs())
    others.save_model(tmp_path / "other.safetensors")
    for weights, of in (("other", data), ("model", few(dataset, 200))):
        (tmp_path / "mixed.safetensors").write_bytes((tmp_path / f"{weights}.safetensors").read_bytes())
        (tmp_path / "mixed.probes.safetensors").write_bytes((tmp_path / "model.probes.safetensors").read_bytes())
        mixed = Trial(config("train.final=[lbfgs]"), of, "cpu", loads_weights=False)
        mixed.load_model(tmp_path / "mixed.safetensors")
        fitted.clear()
        mixed.evaluate("test", final=True)
        assert fitted == ["lbfgs"]


@pytest.mark.slow
def test_test_metrics_of_each_epoch_change_nothing(dataset: Dataset) -> None:
    """They are those that the test split gives when it is read, and nothing else differs."""
    plain = timeless(Trial(config(), dataset, "cpu").train_epochs())
    trial, watched = Trial(config("train.report_test=true"), dataset, "cpu"), []
    for one in trial.train_epochs():
        assert trial.evaluate("test").items() <= one.items()
        watched.append({name: value for name, value in one.items() if not name.startswith("test/")})
    assert timeless(watched) == plain


def test_a_share_of_the_training_samples_is_the_same_for_every_seed(dataset: Dataset) -> None:
    """A quarter of each (class, bias) cell, as near as one sample; the other splits are whole."""
    trials = [Trial(config("train.data_share=0.25", seed=seed), dataset, "cpu") for seed in (0, 1)]
    whole, parts = dataset.splits["train"], [trial.dataset.splits["train"] for trial in trials]
    assert parts[0].bias is not None
    assert whole.bias is not None
    for of_class in range(10):
        for of_bias in range(10):
            there = ((whole.target == of_class) & (whole.bias == of_bias)).sum()
            taken = ((parts[0].target == of_class) & (parts[0].bias == of_bias)).sum()
            assert abs(taken - there / 4) < 1
    assert (parts[0].inputs == parts[1].inputs).all()
    assert trials[0].dataset.splits["val"] is dataset.splits["val"]
    assert trials[0].dataset.fingerprint != dataset.fingerprint
    assert len(list(trials[0].train_epochs())) == 2


@pytest.mark.slow
def test_saved_weights_give_the_same_evaluation(dataset: Dataset, tmp_path: Path) -> None:
    trial = Trial(config(), dataset, "cpu")
    list(trial.train_epochs())
    file = tmp_path / "models" / "one.safetensors"
    trial.save_model(file)
    assert [path.name for path in file.parent.iterdir()] == ["one.safetensors"]
    again = Trial(config(seed=5), dataset, "cpu")
    assert again.evaluate("test") != trial.evaluate("test")
    again.load_model(file)
    assert again.evaluate("test") == trial.evaluate("test")
    assert again.evaluate("val") == trial.evaluate("val")


def test_weights_that_cannot_be_taken_are_told(dataset: Dataset, tmp_path: Path) -> None:
    trial, file = Trial(config(), dataset, "cpu"), tmp_path / "one.safetensors"
    trial.save_model(file)
    whole = file.read_bytes()
    for content in (b"", whole[:7], whole[:-1], b"{}" * 50, whole[: len(whole) // 2]):
        file.write_bytes(content)
        with pytest.raises(UnusableCheckpointError, match=r"one\.safetensors: is damaged or cut short"):
            trial.load_model(file)
    file.unlink()
    with pytest.raises(UnusableCheckpointError, match=r"one\.safetensors: is damaged or cut short .*No such file"):
        trial.load_model(file)
    save_file({"another": torch.zeros(3)}, file)
    with pytest.raises(
        UnusableCheckpointError, match=r"one\.safetensors: does not fit these data or this version of study"
    ):
        trial.load_model(file)


def few(dataset: Dataset, count: int) -> Dataset:
    train = dataset.splits["train"]
    cut = Split(train.inputs[:count], train.target[:count], train.bias[:count])
    return Dataset(dataset.facts, {**dataset.splits, "train": cut})


def test_the_last_partial_batch_is_kept(dataset: Dataset) -> None:
    one = Trial(config("train.batch_size=64", "train.epochs=1"), few(dataset, 96), "cpu")
    steps = []
    encoder = one.method.network.encoder
    handle = encoder.register_forward_hook(lambda *called: steps.append((encoder.training, len(called[2]))))
    list(one.train_epochs())
    handle.remove()
    assert [count for training, count in steps if training] == [64, 32]


def test_a_last_batch_of_one_sample_does_no_harm(dataset: Dataset) -> None:
    found = metrics(Trial(config("train.batch_size=64"), few(dataset, 65), "cpu"))
    assert all(np.isfinite(one["train/loss"]) for one in found[:-1])


@pytest.mark.slow
def test_the_encoder_does_not_hear_the_probe(dataset: Dataset) -> None:
    """The probe's loss reaches the probe alone: its learning rate changes no feature."""
    weights = []
    for rate in (0.01, 0.5):
        trial = Trial(config(f"train.probe_learning_rate={rate}", "train.epochs=1"), dataset, "cpu")
        list(trial.train_epochs())
        weights.append([value.clone() for value in trial.method.network.encoder.state_dict().values()])
    assert all(torch.equal(one, other) for one, other in zip(*weights, strict=True))


@pytest.mark.slow
def test_data_without_bias_labels_trains_a_method_that_needs_none(dataset: Dataset) -> None:
    facts = replace(dataset.facts, bias_classes=None)
    plain = Dataset(facts, {name: Split(one.inputs, one.target, None) for name, one in dataset.splits.items()})
    document = config().to_document()
    document["method"] = {key: value for key, value in document["method"].items() if key != "lambda"}
    document["method"]["regulariser"] = "none"
    (_, last, _) = metrics(Trial(TrialConfig.from_document(document), plain, "cpu"))
    names = {"accuracy", "top5_accuracy", "balanced_accuracy", "worst_class_accuracy", "log_loss", "balanced_log_loss"}
    errors = {f"{name}_standard_error" for name in names - {"top5_accuracy", "worst_class_accuracy"}}
    assert set(last) == {"train/loss", *(f"val/{name}" for name in names | errors)}


@pytest.mark.slow
def test_a_trial_does_not_write_to_its_data(dataset: Dataset) -> None:
    for split in dataset.splits.values():
        for array in (split.inputs, split.target, split.bias):
            array.flags.writeable = False
    before = data.load({"name": "biased_digits"}).fingerprint
    metrics(Trial(config(), dataset, "cpu"))
    fresh = Dataset(dataset.facts, dataset.splits)
    assert fresh.fingerprint == before


def test_a_fitted_probe_is_a_logistic_regression_of_each_epochs_features_and_leaves_the_encoder_as_it_is(
    tmp_path: Path,
) -> None:
    """It is the same stopped and resumed; a trial that does not ask for it has no other bits than before."""
    from sklearn.linear_model import LogisticRegression
    from torch.nn.functional import normalize

    asked, dataset = config("train.epochs=3", "train.probe=fitted"), data.load(config().data)
    online = Trial(config("train.epochs=3"), dataset, "cpu")
    learned = list(online.train_epochs())
    trial = Trial(asked, dataset, "cpu")
    whole = list(trial.train_epochs())
    assert [one["train/loss"] for one in whole] == [one["train/loss"] for one in learned]
    features = {split: trial.evaluate.compute_features(split) for split in ("train", "val")}
    assert torch.equal(features["val"], online.evaluate.compute_features("val"))
    rows, target = normalize(features["train"], dim=1).double().numpy(), dataset.splits["train"].target
    strength = 1 / (2 * FITTED_PROBE_L2 * len(target))
    regression = LogisticRegression(C=strength, tol=1e-8, max_iter=5000).fit(rows, target)
    found = trial.evaluate.class_scores("encoder", features["val"]).softmax(1).numpy()
    expected = regression.predict_proba(normalize(features["val"], dim=1).double().numpy())
    assert np.abs(found - expected).max() < 0.02
    assert np.abs(found - online.evaluate.class_scores("encoder", features["val"]).softmax(1).numpy()).max() > 0.1
    stopped = Trial(asked, dataset, "cpu").train_epochs(resume=tmp_path / "kept")
    next(stopped), next(stopped)
    resumed = [*timeless(Trial(asked, dataset, "cpu").train_epochs(resume=tmp_path / "kept"))]
    assert 0 < len(resumed) < len(whole)
    assert resumed == [*timeless(whole)][-len(resumed) :]
