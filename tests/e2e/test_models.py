"""From an exported file to a model in use, and away again."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from command import Command
from helpers import timeless
from mlflow import MlflowClient
from PIL import Image

from study import data
from study.home.folder import Home
from study.home.record import StudyRecord
from study.trained import TrainedClassifier

pytestmark = pytest.mark.slow

SERVE = """
import json, sys
import mlflow, pandas
mlflow.set_tracking_uri(sys.argv[1])
model = mlflow.pyfunc.load_model("models:/served@candidate")
model.predict(pandas.DataFrame({"file": sys.argv[3:]})).to_csv(sys.argv[2], index=False)
import study
print(study.__file__)
"""


@pytest.fixture(scope="module")
def served(finished: Command) -> Command:
    """With the best configuration trained on two seeds."""
    out = finished.done("train", str(finished.folder("tiny").best_file), "--seeds", "3,4", "--name", "served")
    assert "not everything is in MLflow" not in out
    assert str(finished.folder("served").model_card_file) in out
    return finished


def metrics(served: Command, number: int, split: str) -> dict[str, Any]:
    """What the training recorded of a split."""
    trial = StudyRecord.load(served.folder("served").ledger_file).trials[number]
    found = {**timeless([dict(trial.reports[-1])])[0], **trial.test_metrics}
    return {name: value for name, value in found.items() if name.startswith(f"{split}/")}


def metrics_of_model(served: Command, split: str) -> dict[str, Any]:
    """What the training recorded of its model: of the ensemble, which is better than each of its two seeds here."""
    found = StudyRecord.load(served.folder("served").ledger_file).ensemble
    assert found is not None
    told = {name: value for name, value in found.metrics.items() if name.startswith(f"{split}/")}
    own = found.metrics["val/accuracy"]
    assert all((own or 0.0) > metrics(served, number, "val")["val/accuracy"] for number in (0, 1))
    return {name: pytest.approx(value, rel=1e-5, nan_ok=True) for name, value in told.items()}


def evaluated(served: Command, *arguments: str) -> dict[str, Any]:
    measured = json.loads(served.done("evaluate", *arguments, "--json"))
    assert measured.pop("samples") > 0
    told = measured.pop("worst_group")  # of small groups, too, which the metric leaves out
    assert told["lowest"] <= measured[f"{told['split']}/worst_group_accuracy"]
    assert measured.pop("classes"), "which class is recognised least"
    return measured


def readings(served: Command) -> int:
    return json.loads(served("status", "served", "--json").stdout)["test_readings"]


def test_a_model_evaluates_to_what_was_recorded(served: Command) -> None:
    before = readings(served)
    assert evaluated(served, "served", "--split", "test") == metrics_of_model(served, "test")
    assert evaluated(served, "models:/served@candidate", "--split", "test") == metrics_of_model(served, "test")
    assert readings(served) == before + 2, "each reading of the test split counts"
    for number, seed in enumerate(("3", "4")):
        assert evaluated(served, "served", "--seed", seed) == metrics(served, number, "val")
    assert readings(served) == before + 2, "those of others do not"


def test_the_weights_of_a_frozen_network_are_added_to_a_training_that_is_there(finished: Command) -> None:
    model = "model={name: efficientnet_lite0, weights: imagenet, frozen: true}"
    changes = ("--set", model, "--set", "method={name: cross_entropy}", "--set", "train.augmentation=none")
    training = ("train", str(finished.folder("tiny").best_file), *changes, "--seeds", "3", "--name", "on-features")
    client = MlflowClient(Home(finished.home).tracking_uri)
    for number, options in enumerate(((), ("--whole",), ()), 1):
        finished.done(*training, *options)
        version = client.get_model_version_by_alias("on-features", "candidate")
        assert int(version.version) == min(number, 2)
        inside = sorted(finished.folder("on-features").models_folder.glob("network-*.pth"))
        assert [version.tags.get("study.network")] == ([file.name for file in inside] or [None])
        assert len(inside) == (number > 1)
    picture = finished.home / "one.png"
    Image.fromarray(np.zeros((8, 8, 3), np.uint8)).save(picture)
    from_files, registered = (
        finished.done("predict", of, str(picture)) for of in ("on-features", "models:/on-features@candidate")
    )
    assert from_files == registered


def test_mlflow_has_it_with_card_and_code(served: Command) -> None:
    client = MlflowClient(Home(served.home).tracking_uri)
    version = client.get_model_version_by_alias("served", "candidate")
    card = served.folder("served").model_card_file.read_text()
    assert version.description == card[:5000]
    assert "Configuration: trial" in card
    models = client.search_logged_models([client.get_experiment_by_name("tiny").experiment_id])
    (logged,) = (model for model in models if model.artifact_location == version.source)
    files = {file.path for file in client.list_logged_model_artifacts(logged.model_id)}
    assert {"MLmodel", "artifacts", "code"} <= files
    assert not [file for file in files if file.endswith(".pkl")], "nothing is pickled"
    served.done("train", str(served.folder("tiny").best_file), "--seeds", "3,4", "--name", "served")
    assert len(client.search_model_versions("name = 'served'")) == 1, "it is registered once"


def test_it_serves_from_the_registry_in_another_process(served: Command, tmp_path: Path) -> None:
    """With the code that came along, not with what is installed here; the same probabilities."""
    inputs = data.load(served.folder("served").load_spec().trial_data_sections[0]).splits["val"].inputs[:20]
    files = [str(tmp_path / f"{number}.png") for number in range(len(inputs))]
    for file, image in zip(files, inputs, strict=True):
        Image.fromarray(image.transpose(1, 2, 0)).save(file)
    given = [Home(served.home).tracking_uri, str(tmp_path / "found.csv"), *files]
    done = subprocess.run([sys.executable, "-c", SERVE, *given], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "/code/study/__init__.py" in done.stdout
    found = pd.read_csv(tmp_path / "found.csv")
    assert found["file"].tolist() == files
    classifier = TrainedClassifier.load_from_description(served.folder("served").ensemble_description_file, "cpu")
    expected = classifier.predict_probabilities(inputs)
    np.testing.assert_allclose(found[[f"p({name})" for name in range(10)]], expected, rtol=1e-5, atol=1e-9)
    np.testing.assert_allclose(found["confidence"], expected.max(1), rtol=1e-5)


def test_nothing_of_a_deleted_model_is_left(served: Command) -> None:
    assert served("delete", "served", "--yes").returncode == 0
    client = MlflowClient(Home(served.home).tracking_uri)
    assert "served" not in {model.name for model in client.search_registered_models()}
    left = [path for path in served.home.rglob("*served*") if "code" not in path.relative_to(served.home).parts]
    assert not left, "but for the package's own observed.py, which the models of other studies carry"
