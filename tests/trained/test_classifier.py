"""A model from its files: the same as it was trained, or refused."""

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from study import data, files
from study.errors import UserError
from study.home.folder import StudyFolder
from study.home.record import StudyRecord
from study.trained import ModelDescription, TrainedClassifier


def recorded(folder: StudyFolder, number: int, name: str) -> float:
    value = {**StudyRecord.load(folder.ledger_file).trials[number].test_metrics}[name]
    assert value is not None
    return value


@pytest.mark.parametrize("number", [0, 1])
def test_it_is_right_as_often_as_the_study_measured(folder: StudyFolder, number: int) -> None:
    classifier = TrainedClassifier.load_from_description(folder.model_description_file(number), "cpu")
    test = data.load(folder.load_spec().trial_data_sections[0]).splits["test"]
    found = classifier.predict_probabilities(test.inputs)
    assert found.shape == (len(test), 10)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found.sum(1), 1, rtol=1e-5)
    assert np.mean(found.argmax(1) == test.target) == pytest.approx(recorded(folder, number, "test/accuracy"))


def test_a_sample_alone_is_as_among_others(folder: StudyFolder) -> None:
    classifier = TrainedClassifier.load_from_description(folder.model_description_file(0), "cpu")
    inputs = data.load(folder.load_spec().trial_data_sections[0]).splits["val"].inputs[:5]
    alone = np.concatenate([classifier.predict_probabilities(inputs[place : place + 1]) for place in range(5)])
    np.testing.assert_allclose(classifier.predict_probabilities(inputs), alone, rtol=1e-4, atol=1e-6)


def test_classes_without_names_are_numbers(folder: StudyFolder) -> None:
    assert TrainedClassifier.load_from_description(folder.model_description_file(0), "cpu").class_names == tuple(
        "0123456789"
    )


@pytest.mark.parametrize(
    "inputs", [np.zeros((2, 3, 8, 9), np.uint8), np.zeros((2, 3, 8, 8), np.float32), np.zeros((0, 3, 8, 8), np.uint8)]
)
def test_samples_of_another_kind_are_refused(folder: StudyFolder, inputs: np.ndarray[Any, Any]) -> None:
    with pytest.raises(UserError, match=r"given, the model takes uint8 \(samples, 3, 8, 8\)"):
        TrainedClassifier.load_from_description(folder.model_description_file(0), "cpu").predict_probabilities(inputs)


def test_a_description_reads_as_it_was_written(folder: StudyFolder, tmp_path: Path) -> None:
    found = ModelDescription.read_file(folder.model_description_file(1))
    found.write_file(tmp_path / "again.json")
    assert ModelDescription.read_file(tmp_path / "again.json") == found
    assert (tmp_path / "again.json").read_bytes() == folder.model_description_file(1).read_bytes()
    assert found.told["seed"] == 4
    assert found.trial_config == folder.load_spec().trial_config({}, 4)


@pytest.mark.parametrize("share", [0.0, 0.3, 0.99])
def test_truncated_files_are_refused(model: Path, share: float) -> None:
    whole = model.read_bytes()
    model.write_bytes(whole[: int(len(whole) * share)])
    with pytest.raises(UserError, match="is not a description of a model, or cut short"):
        TrainedClassifier.load_from_description(model)
    model.write_bytes(whole)
    weights = model.with_suffix(".safetensors")
    weights.write_bytes(weights.read_bytes()[: int(weights.stat().st_size * share)])
    with pytest.raises(UserError, match="is not the file that study train wrote"):
        TrainedClassifier.load_from_description(model)


def test_a_changed_description_is_refused(model: Path) -> None:
    values = json.loads(model.read_text())
    values["told"]["metrics"]["test/accuracy"] = 0.99
    model.write_text(json.dumps(values))
    with pytest.raises(UserError, match="was changed after it was written"):
        TrainedClassifier.load_from_description(model)


def test_another_version_is_named(model: Path) -> None:
    values = json.loads(model.read_text())
    model.write_text(json.dumps({**values, "format": 7}))
    with pytest.raises(UserError, match="format 7, this version of study reads 1"):
        TrainedClassifier.load_from_description(model)


class Malicious:
    """Unpickling it leaves a file behind."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return Path.touch, (self.path,)


@pytest.mark.parametrize("matching", [False, True])
@pytest.mark.parametrize("by_torch", [False, True])
def test_a_pickle_is_never_loaded(model: Path, tmp_path: Path, matching: bool, by_torch: bool) -> None:
    """Not even where someone made the description fit it."""
    mark, weights = tmp_path / "executed", model.with_suffix(".safetensors")
    if by_torch:
        torch.save(Malicious(mark), weights)
    else:
        weights.write_bytes(pickle.dumps(Malicious(mark)))
    if matching:
        values = json.loads(model.read_text())
        values["weights_digest"] = files.sha256_of_file(weights)
        del values["digest"]
        model.write_text(json.dumps({**values, "digest": files.sha256_of_values(values)}))
    with pytest.raises(UserError, match="is not a safetensors file" if matching else "is not the file that"):
        TrainedClassifier.load_from_description(model)
    assert not mark.exists()


def test_weights_that_this_version_has_no_place_for_are_named(model: Path) -> None:
    """As those of `train.thresholds`, without which the scores would be others."""
    weights = model.with_suffix(".safetensors")
    save_file({**load_file(weights), "offsets.values": torch.zeros(2)}, weights)
    values = json.loads(model.read_text()) | {"weights_digest": files.sha256_of_file(weights)}
    del values["digest"]
    model.write_text(json.dumps({**values, "digest": files.sha256_of_values(values)}))
    with pytest.raises(UserError, match=r"does not fit this version of study: .*offsets\.values"):
        TrainedClassifier.load_from_description(model)


@pytest.mark.parametrize(
    "section", [{"model": {"name": "nothing"}}, {"method": {}}, {"train": {"epochs": 1, "odd": 2}}]
)
def test_a_configuration_that_this_version_does_not_know(model: Path, section: dict[str, Any]) -> None:
    values = json.loads(model.read_text())
    values["config"] |= section
    del values["digest"]
    model.write_text(json.dumps({**values, "digest": files.sha256_of_values(values)}))
    with pytest.raises(UserError, match="does not fit this version of study"):
        TrainedClassifier.load_from_description(model)
