"""Frozen networks: features once, rows by content, and predictions that equal those of pictures."""

import os
import sqlite3
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import torch
from helpers import ROOT, searching, timeless
from PIL import Image
from safetensors.torch import save_file
from sklearn.datasets import load_sample_images
from small import config
from torchvision import models as torchvision_models
from torchvision.models import EfficientNet_B0_Weights

from study import models
from study.data.dataset import Dataset, Facts, Split
from study.data.folds import divide_into_folds, select_fold
from study.errors import UserError
from study.files import sha256_of_file
from study.models import frozen_networks, initial_weights
from study.models.backbone_network import Backbone
from study.models.efficientnet import EfficientNetLite0
from study.models.network_keys import EARLY_LAYER_MODULES, n_columns_before_features
from study.spec.search_checks import all_trial_faults
from study.trained.classifier import TrainedClassifier
from study.trained.description import ModelDescription
from study.training import features, optimization
from study.training.bias_from_early_layers import infer_bias_classes
from study.training.config import TrialConfig
from study.training.trial import Trial

MODEL: dict[str, Any] = {"name": "efficientnet_lite0", "weights": "imagenet", "frozen": True}
METHOD = {"name": "bias_balanced_cross_entropy"}
CPU, BICUBIC = torch.device("cpu"), Image.Resampling.BICUBIC


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("STUDY_DATA", str(tmp_path / "data"))
    return tmp_path / "data"


def pictures(count: int = 12, side: int = 32) -> Dataset:
    """Two classes of noise, brighter or darker; a bias in the first row."""
    random = np.random.default_rng(0)
    facts, splits = Facts(2, 2, (3, side, side), class_names=("dark", "light")), {}
    for name in facts.splits:
        target, bias = np.arange(count) % 2, np.arange(count) // 2 % 2
        images = random.integers(0, 99, (count, 3, side, side)) + 100 * target[:, None, None, None]
        images[:, :, 0] += 50 * bias[:, None, None]
        splits[name] = Split(images.astype(np.uint8), target, bias)
    return Dataset(facts, splits)


def trial_config(**train: Any) -> TrialConfig:
    return replace(config(METHOD, **{"epochs": 3, "batch_size": 4, **train}), model={**MODEL, "adapter": 0})


def test_the_definition_loads_the_packages_weights_exactly_and_knows_what_it_sees() -> None:
    file, _ = initial_weights.find_weights_file(MODEL)
    net = EfficientNetLite0().eval()
    initial_weights.load_state_exactly(net, torch.load(file, weights_only=True), "does not fit")
    for photograph, known in zip(load_sample_images().images, ("palace", "daisy"), strict=True):
        side = min(photograph.shape[:2])
        left, top = (photograph.shape[1] - side) // 2, (photograph.shape[0] - side) // 2
        square = Image.fromarray(photograph).crop((left, top, left + side, top + side)).resize((224, 224), BICUBIC)
        pixels = torch.from_numpy(np.asarray(square).copy()).permute(2, 0, 1)[None].float()
        with torch.inference_mode():
            found = net((pixels - 127) / 128)[0].argmax()
        assert EfficientNet_B0_Weights.DEFAULT.meta["categories"][found] == known


def test_features_are_computed_once_and_a_changed_picture_changes_its_row_alone(
    monkeypatch: pytest.MonkeyPatch, root: Path
) -> None:
    dataset, computed = pictures(), []
    forward = Backbone.forward

    def counted(self: Backbone, images: torch.Tensor) -> torch.Tensor:
        computed.append(len(images))
        return forward(self, images)

    monkeypatch.setattr(Backbone, "forward", counted)
    first = features.replace_inputs_with_frozen_features(MODEL, dataset, CPU)
    assert sum(computed) == 36
    assert first.facts.shape == (2024,)
    assert first.splits["train"].inputs.dtype == np.float16
    assert features.replace_inputs_with_frozen_features(MODEL, dataset, CPU).fingerprint == first.fingerprint
    assert sum(computed) == 36
    train = dataset.splits["train"]
    changed = train.inputs.copy()
    changed[3] = 255 - changed[3]
    other = replace(dataset, splits={**dataset.splits, "train": replace(train, inputs=changed)})
    second = features.replace_inputs_with_frozen_features(MODEL, other, CPU)
    assert sum(computed) == 37
    same = (first.splits["train"].inputs == second.splits["train"].inputs).all(1)
    assert same.tolist() == [at != 3 for at in range(12)]


KILLED = """
import test_frozen as here
here.features.BATCH = 4
here.features.replace_inputs_with_frozen_features(here.MODEL, here.pictures(200), here.CPU)
"""


def test_what_was_killed_goes_on_with_the_rows_that_it_had(monkeypatch: pytest.MonkeyPatch, root: Path) -> None:
    path = os.pathsep.join(map(str, (Path(__file__).parent, ROOT / "tests", ROOT / "tests" / "support")))
    process = subprocess.Popen([sys.executable, "-c", KILLED], env=os.environ | {"PYTHONPATH": path})
    try:
        while not (kept := _kept(root)) and process.poll() is None:
            time.sleep(0.02)
    finally:
        process.kill()
        process.wait()
    kept, dataset, forward, computed = _kept(root), pictures(200), Backbone.forward, []
    assert 0 < kept < 600

    def counted(self: Backbone, images: torch.Tensor) -> torch.Tensor:
        computed.append(len(images))
        return forward(self, images)

    monkeypatch.setattr(Backbone, "forward", counted)
    resumed = features.replace_inputs_with_frozen_features(MODEL, dataset, CPU)
    assert sum(computed) == 600 - kept
    monkeypatch.setenv("STUDY_DATA", str(root / "again"))
    whole = features.replace_inputs_with_frozen_features(MODEL, dataset, CPU)
    for name, split in whole.splits.items():
        assert np.allclose(split.inputs, resumed.splits[name].inputs, rtol=2e-3, atol=2e-3)


def _kept(root: Path) -> int:
    """Rows in the file of the one network that has some."""
    for store in root.rglob("*.sqlite"):
        if store.parent.name == features.FEATURE_STORES_FOLDER:
            with closing(sqlite3.connect(store)) as database, suppress(sqlite3.OperationalError):  # no table yet
                return int(database.execute("SELECT count(*) FROM rows").fetchone()[0])
    return 0


@pytest.mark.parametrize(
    ("joined", "trained", "size"), [(0, "none", 1e5), (4, "none", 1e5), (4, "last", 1e7), (1, "last_two", 2e7)]
)
def test_a_classifier_of_pictures_predicts_what_the_trial_does_of_rows(
    tmp_path: Path, joined: int, trained: str, size: float
) -> None:
    dataset, own = pictures(), trial_config(augmentation="noise", learning_rate=0.001)
    own = replace(own, model={**own.model, "joined": joined, "trained_stages": trained, "lr_factor": 0.3})
    trial = Trial(own, dataset, "cpu")
    losses = [metrics["train/loss"] for metrics in trial.train_epochs()]
    assert losses[-1] < losses[0]
    trial.save_model(tmp_path / "mine.safetensors")
    assert size / 10 < (tmp_path / "mine.safetensors").stat().st_size < size  # what is frozen is not in it
    digest = sha256_of_file(tmp_path / "mine.safetensors")
    told = models.describe_weights(own.model)
    description = ModelDescription(own.to_document(), dataset.facts, "mine.safetensors", digest, {}, None, told)
    description.write_file(tmp_path / "mine.json")
    given = TrainedClassifier.load_from_description(tmp_path / "mine.json", "cpu").predict_probabilities(
        dataset.splits["test"].inputs
    )
    of_rows = trial.evaluate.class_scores("encoder", trial.evaluate.compute_features("test")).softmax(1)
    assert np.abs(given - of_rows.numpy()).max() < 1e-4
    assert told is not None
    replace(description, frozen={**told, "sha256": "0" * 64}).write_file(tmp_path / "mine.json")
    with pytest.raises(UserError, match="sha256 was 0000"):
        TrainedClassifier.load_from_description(tmp_path / "mine.json", "cpu")


PARTLY = {**MODEL, "trained_stages": "last_two", "joined": 3}


def test_maps_are_kept_before_the_rows_of_the_whole_network_and_stages_begin_where_it_is() -> None:
    dataset = pictures()
    plain, partly = (features.replace_inputs_with_frozen_features(model, dataset, CPU) for model in (MODEL, PARTLY))
    assert partly.facts.shape == (112 * 2 * 2 + 2024,)
    assert models.facts_of_pooled_features(PARTLY, partly.facts) == plain.facts
    for name, split in plain.splits.items():
        assert np.array_equal(split.inputs, partly.splits[name].inputs[:, -2024:])
    one, other = (
        models.build_encoder_without_head({**model, "joined": 3}, of.facts).eval()(
            torch.from_numpy(of.splits["train"].inputs.copy())
        )
        for model, of in ((MODEL, plain), (PARTLY, partly))
    )
    assert one.shape == other.shape == (12, 112 + 192 + 320 + 1280)
    assert torch.equal(one[:, :112], other[:, :112])
    assert torch.allclose(one, other, atol=0.02)
    assert not torch.equal(one, other)
    for bias in ("train", "test"):
        assert torch.equal(*(infer_bias_classes(*of, bias, CPU) for of in ((MODEL, plain), (PARTLY, partly))))


@pytest.mark.parametrize(
    ("architecture", "trained", "maps", "width"),
    [("resnet18", "last", 256 * 2 * 2, 512), ("resnet50", "last_two", 512 * 4 * 4, 2048)],
)
def test_the_last_stages_of_a_resnet_begin_where_it_is_and_are_trained(
    tmp_path: Path, architecture: str, trained: str, maps: int, width: int
) -> None:
    torch.manual_seed(0)
    weights = tmp_path / "mine.safetensors"
    save_file(torchvision_models.get_model(architecture).state_dict(), weights)
    model = {"name": "torchvision", "architecture": architecture, "weights": str(weights), "frozen": True}
    model |= {"trained_stages": trained, "adapter": 0}
    dataset = pictures()
    found = features.replace_inputs_with_frozen_features(model, dataset, CPU)
    assert found.facts.shape == (maps + EARLY_LAYER_MODULES[architecture][1] + width,)
    kept = torch.from_numpy(found.splits["train"].inputs.copy())
    begun = models.build_encoder_without_head(model, found.facts).eval()
    assert torch.allclose(begun(kept), kept[:, -width:].float(), rtol=0.01, atol=0.02)
    own = replace(trial_config(learning_rate=0.001, epochs=1), model=model)
    trial = Trial(own, dataset, "cpu")
    list(trial.train_epochs())
    trial.save_model(tmp_path / "trained.safetensors")
    digest = sha256_of_file(tmp_path / "trained.safetensors")
    described = (
        own.to_document(),
        dataset.facts,
        "trained.safetensors",
        digest,
        {},
        None,
        models.describe_weights(model),
    )
    given = TrainedClassifier(ModelDescription(*described), tmp_path, "cpu").predict_probabilities(
        dataset.splits["test"].inputs
    )
    of_rows = trial.evaluate.class_scores("encoder", trial.evaluate.compute_features("test")).softmax(1)
    assert np.abs(given - of_rows.numpy()).max() < 1e-4
    encoder = trial.method.encoders()["encoder"]
    encoder.load_state_dict({**encoder.state_dict(), "mean": begun.mean, "deviation": begun.deviation})
    assert not torch.allclose(encoder(kept), begun(kept))


def test_stages_train_at_their_own_rate_without_decay_and_go_on_bit_by_bit(tmp_path: Path) -> None:
    dataset, own = pictures(), trial_config(weight_decay=0.1, learning_rate=0.001)
    own = replace(own, model={**own.model, **PARTLY, "lr_factor": 0.3})
    trial = Trial(own, dataset, "cpu")
    stages = cast(frozen_networks.LayersOnFrozenNetwork, trial.method.encoders()["encoder"]).stages
    assert stages is not None
    ours, rest = cast(list[dict[str, Any]], list(optimization.parameter_groups(trial.method, own.train)))
    assert {id(part) for part in ours["params"]} == {id(part) for part in stages.parameters()}
    assert (ours["lr"], ours["weight_decay"], rest["lr"]) == (0.0003, 0.0, 0.001)
    assert "weight_decay" not in rest
    before = {name: tensor.clone() for name, tensor in stages.state_dict().items()}
    file = tmp_path / "state"
    first = timeless(islice(trial.train_epochs(file), 2))[:1]
    resumed, whole = Trial(own, dataset, "cpu"), Trial(own, dataset, "cpu")
    assert [*first, *timeless(resumed.train_epochs(file))] == timeless(whole.train_epochs())
    after, again = (each.method.state_dict() for each in (whole, resumed))
    assert all(torch.equal(tensor, again[name]) for name, tensor in after.items())
    now = cast(frozen_networks.LayersOnFrozenNetwork, whole.method.encoders()["encoder"]).stages
    assert now is not None
    moved = {name for name, tensor in now.state_dict().items() if not torch.equal(tensor, before[name])}
    assert moved == {name for name, _ in now.named_parameters()}  # and no statistics of batch norm


def test_stages_train_without_an_adapter_under_a_loss_that_shapes_features_and_as_a_reference() -> None:
    method = {"name": "eps_sup_info_nce", "regulariser": "fair_kl"}
    own = replace(config(method, epochs=2, batch_size=8), model={**PARTLY, "adapter": 0, "head": "mlp"})
    sections = {**own.to_document(), "data": {"name": "stripes"}}
    assert not [at for at, _ in all_trial_faults(sections, pictures().facts) if at == ("model", "adapter")]
    assert len(list(Trial(own, pictures(), "cpu").train_epochs())) == 2
    fitted = {"name": "reference", "model": "logistic_regression"}
    for model in (MODEL, PARTLY):
        trial = Trial(replace(config(fitted, epochs=1), model={**model, "adapter": 0}), pictures(), "cpu")
        assert next(trial.train_epochs())["val/accuracy"] > 0.5


def test_a_search_decides_whether_stages_are_trained_and_a_study_without_them_is_the_one_of_before() -> None:
    section = "model={name: efficientnet_lite0, weights: imagenet, frozen: true}"
    space = "{model.trained_stages: {choices: [none, last_two]}, model.lr_factor: {low: 0.1, high: 1.0}}"
    spec = searching(space, section, "method={name: bias_balanced_cross_entropy}")
    plain, partly = spec.model_sections
    assert (plain["trained_stages"], "lr_factor" in plain) == ("none", False)
    assert (partly["trained_stages"], "lr_factor" in partly) == ("last_two", True)
    before = {key: value for key, value in plain.items() if key != "trained_stages"}
    assert (
        features.data_key_with_features(plain, "")
        == features.data_key_with_features(before, "")
        != features.data_key_with_features(partly, "")
    )
    assert not spec.space.applies_to("model.lr_factor", {"model.trained_stages": "none"})
    fixed = searching("{train.learning_rate: {low: 0.001, high: 0.01}}", section, f"method={METHOD}")
    assert "trained_stages" in fixed.base["model"]
    without = {key: value for key, value in fixed.base["model"].items() if key != "trained_stages"}
    assert replace(fixed, base={**fixed.base, "model": without}).hash == fixed.hash


def test_stages_are_trained_only_of_networks_whose_stages_are_known_and_of_square_pictures() -> None:
    square, oblong = pictures().facts, replace(pictures().facts, shape=(3, 32, 48))
    assert models.why_network_unsuited(PARTLY, square) is None
    assert "square images" in str(models.why_network_unsuited(PARTLY, oblong))
    other = {"name": "torchvision", "architecture": "convnext_tiny", "weights": "imagenet", "frozen": True}
    assert models.why_network_unsuited(other, square) is None
    told = str(models.why_network_unsuited({**other, "trained_stages": "last"}, square))
    assert "Networks that have: efficientnet_lite0, resnet18" in told


def test_an_adapter_and_its_contrastive_loss_train_on_rows() -> None:
    method = {"name": "eps_sup_info_nce", "regulariser": "fair_kl"}
    own = replace(config(method, epochs=2, batch_size=8), model={**MODEL, "adapter": 1, "head": "mlp"})
    trial = Trial(own, pictures(), "cpu")
    before = [parameter.clone() for parameter in trial.method.encoders()["encoder"].parameters()]
    list(trial.train_epochs())
    after = list(trial.method.encoders()["encoder"].parameters())
    assert len(after) == 4
    assert not any(torch.equal(one, other) for one, other in zip(before, after, strict=True))


@pytest.mark.parametrize(
    ("model", "method", "key"),
    [
        ({"weights": None}, {}, ("model", "name")),
        ({}, {"name": "eps_sup_info_nce", "temperature": 0.1}, ("model", "adapter")),
        ({}, {"name": "cross_entropy", "regulariser": "fair_kl", "lambda": 1.0}, ("model", "adapter")),
    ],
)
def test_what_would_learn_nothing_is_refused(
    model: dict[str, Any], method: dict[str, Any], key: tuple[str, str]
) -> None:
    own = trial_config()
    sections = {**own.to_document(), "data": {"name": "stripes"}}
    sections["model"] |= model
    sections["method"] = {**config(method or METHOD).to_document()["method"]}
    assert key in [at for at, _ in all_trial_faults(sections, pictures().facts)]


def test_views_of_pictures_are_refused_and_those_of_rows_are_not() -> None:
    for augmentation, refused in (("simclr", True), ("noise", False)):
        sections = {**trial_config(augmentation=augmentation).to_document(), "data": {"name": "stripes"}}
        assert (("train", "augmentation") in [at for at, _ in all_trial_faults(sections, pictures().facts)]) == refused
    table = replace(pictures().facts, shape=(5,))
    assert list(all_trial_faults({**trial_config().to_document(), "data": {"name": "adult"}}, table))


def test_two_studies_at_once_make_features_once(monkeypatch: pytest.MonkeyPatch) -> None:
    dataset, forward, computed = pictures(), Backbone.forward, []

    def counted(self: Backbone, images: torch.Tensor) -> torch.Tensor:
        computed.append(len(images))
        return forward(self, images)

    monkeypatch.setattr(Backbone, "forward", counted)
    with ThreadPoolExecutor(2) as both:
        found = list(
            both.map(lambda _: features.replace_inputs_with_frozen_features(MODEL, dataset, CPU).fingerprint, range(2))
        )
    assert found[0] == found[1]
    assert sum(computed) == 36


def test_folds_are_views_of_features_that_are_made_once_and_scaled_by_their_own_training_rows(root: Path) -> None:
    whole = divide_into_folds(pictures(), 3, 0)
    parts = {
        fold: features.replace_inputs_with_frozen_features(MODEL, select_fold(whole, fold), CPU)
        for fold in (0, 1, 2, None)
    }
    assert len(list(root.rglob("features-*/train.npy"))) == 1
    assert len({part.fingerprint for part in parts.values()}) == 4
    assert whole.folds is not None
    of_all = parts[None].splits["train"].sample_inputs
    for fold in range(3):
        for name, held in (("train", False), ("val", True)):
            own = parts[fold].splits[name]
            assert own.inputs is parts[fold].splits["train"].inputs
            assert np.array_equal(own.sample_inputs, of_all[(whole.folds.fold_of_sample == fold) == held])
        own = config({**METHOD, "bias_source": "early_layers"}, epochs=1, batch_size=4)
        trial = Trial(replace(own, model={**MODEL, "adapter": 0}), select_fold(whole, fold), "cpu")
        list(trial.train_epochs())
        mean, encoder = (
            parts[fold].splits["train"].sample_inputs[:, -1280:].mean(0, dtype=np.float64),
            trial.method.encoders(),
        )
        assert np.allclose(
            cast(frozen_networks.LayersOnFrozenNetwork, encoder["encoder"]).mean.numpy(), mean, atol=1e-4
        )


def rows(early_sees_it: float, count: int = 600, tells: float = 2.0) -> Dataset:
    """Rows of features of three classes without bias labels, whose bias, put into `hidden`, is the class's own in nine
    of ten samples. The last features tell the bias better than the class."""
    random, splits = np.random.default_rng(0), {}
    facts = Facts(3, None, (n_columns_before_features(MODEL) + 30,))
    for name in facts.splits:
        target, any_class = random.integers(0, 3, (2, count))
        bias = np.where((random.random(count) < 0.9) & (name != "test"), target, any_class)
        inputs = random.normal(size=(count, facts.shape[0])).astype(np.float16)
        inputs[:, :3] += early_sees_it * np.eye(3)[bias]
        inputs[:, -6:-3] += 3 * np.eye(3)[bias]
        inputs[:, -3:] += tells * np.eye(3)[target]
        splits[name] = Split(inputs, target, None)
        hidden[name] = bias
    return Dataset(facts, splits)


hidden: dict[str, np.ndarray] = {}


def test_early_layers_find_the_bias_that_they_see_and_without_one_say_nothing() -> None:
    dataset = rows(early_sees_it=6)
    for split in dataset.splits:
        found = infer_bias_classes(MODEL, dataset, split, CPU).numpy()
        assert (found == hidden[split]).mean() > 0.97, split
    for split in dataset.splits:
        assert not infer_bias_classes(MODEL, rows(early_sees_it=0), split, CPU).any()


@pytest.mark.parametrize(("sign", "tells", "sees"), [(2.5, 4.0, True), (1.0, 1.0, False), (0.5, 3.0, False)])
def test_a_bias_is_what_early_layers_tell_almost_as_well_as_all_features_do(
    sign: float, tells: float, sees: bool
) -> None:
    """Also where all features make far fewer errors, as with thousands of pictures; and not where these, too, tell the
    classes badly, as with few."""
    dataset = rows(early_sees_it=sign, tells=tells)
    assert bool(infer_bias_classes(MODEL, dataset, "train", CPU).any()) == sees


def test_a_classifier_that_early_layers_balance_is_right_where_the_bias_misleads() -> None:
    dataset, right = rows(early_sees_it=6), {}
    conflicting = hidden["test"] != dataset.splits["test"].target
    for source in ("none", "early_layers"):
        method = {"name": "cross_entropy"} if source == "none" else {**METHOD, "bias_source": source}
        own = config(method, epochs=20, batch_size=32, weight_decay=0.03, inferred_groups="early_layers")
        trial = Trial(replace(own, model={**MODEL, "adapter": 0}), dataset, "cpu")
        *_, last = trial.train_epochs()
        assert "val/inferred_unbiased_accuracy" in last
        said = trial.evaluate.class_scores("encoder", trial.evaluate.compute_features("test")).argmax(1).numpy()
        right[source] = (said == dataset.splits["test"].target)[conflicting].mean()
    assert right["early_layers"] > right["none"] + 0.1


@pytest.mark.parametrize(("section", "key"), [("method", "bias_source"), ("train", "inferred_groups")])
def test_early_layers_need_a_frozen_network_of_which_they_are_known(section: str, key: str) -> None:
    unbiased = replace(pictures().facts, bias_classes=None)
    for model, refused in (({}, False), ({"frozen": False, "lr_factor": 1.0}, True)):
        sections = {**trial_config().to_document(), "data": {"name": "stripes"}}
        if section == "train":
            sections["method"] = {**config({"name": "cross_entropy"}).to_document()["method"]}
        sections["model"] |= model
        sections[section][key] = "early_layers"
        assert ((section, key) in [at for at, _ in all_trial_faults(sections, unbiased)]) == refused


def test_rows_are_scaled_by_the_training_split_so_that_what_varies_more_counts_more() -> None:
    encoder = frozen_networks.build_layers_on_frozen_network({**MODEL, "adapter": 0}, 3, None)
    encoder.fit_scaling(torch.tensor([[1.0, 5.0, 2.0], [3.0, 5.0, 10.0]]).half())  # deviations 1, 0 and 4
    given = encoder(torch.tensor([[3.0, 6.0, 10.0]]))[0]
    assert given.tolist() == pytest.approx([1 / 2.5**0.5, 1.0, 4 / 10**0.5])
    encoder.fit_scaling(torch.ones(2, 3).half())
    assert encoder(torch.full((1, 3), 3.0)).tolist() == [[2.0, 2.0, 2.0]]
