"""Features of frozen networks on a cluster: one task makes them, and trials take these."""

from pathlib import Path

import numpy as np
import pytest
import torch
from helpers import searching

from study import data
from study.data.folds import select_fold
from study.errors import UserError
from study.models import initial_weights
from study.models.backbone_network import Backbone
from study.spec import StudySpec
from study.sweep.driver import replace_inputs_with_features
from study.sweep.tune_adapters import StudyOverSignal
from study.training import features
from study.training.config import TrialConfig

pytestmark = pytest.mark.slow


def frozen(*more: str) -> StudySpec:
    model = "model={name: efficientnet_lite0, weights: imagenet, frozen: true}"
    space = "{train.learning_rate: {low: 0.001, high: 0.01}}"
    return searching(space, model, "method={name: bias_balanced_cross_entropy}", *more)


def given(spec: StudySpec, told: list[str], stopping: bool = False) -> dict[str, data.Dataset]:
    places = initial_weights.locate_weights(spec.model_sections)
    return dict(
        replace_inputs_with_features(
            spec, data.load_datasets(spec.trial_data_sections), places, told.append, lambda: stopping
        )
    )


@pytest.mark.usefixtures("small_ray")
@pytest.mark.parametrize("more", [[], ["data.folds=3", "data.val=biased"]], ids=["split", "folds"])
def test_one_task_makes_them_and_this_process_none(
    more: list[str], root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec, told = frozen(*more), list[str]()
    config = TrialConfig.from_document(spec.trial_document({"train.learning_rate": 0.002}))
    with monkeypatch.context() as here:
        here.setattr(Backbone, "forward", lambda *_: pytest.fail("computed here"))
        found = given(spec, told)
        assert [text.rpartition(": ")[2] for text in told] == ["by one task of the cluster"]
        rows = found.pop(
            features.data_key_with_features(config.model, data.section_key(config.data))
        )  # under which a trial looks for them
        assert found == {}  # and nobody sees pictures
        given(spec, told)
        assert len(told) == 1  # they are kept here now
    pictures = data.load(config.data)
    monkeypatch.setenv("STUDY_DATA", str(root / "elsewhere"))
    fold = None if pictures.folds is None else 1
    own = features.replace_inputs_with_frozen_features(config.model, select_fold(pictures, fold), torch.device("cpu"))
    theirs = select_fold(rows, fold)
    assert theirs.facts == own.facts
    assert theirs.fingerprint.partition(", ")[2] == own.fingerprint.partition(", ")[2]
    for name, split in own.splits.items():
        assert np.allclose(split.sample_inputs, theirs.splits[name].sample_inputs, atol=2e-2)
        assert np.array_equal(split.target, theirs.splits[name].target)


@pytest.mark.usefixtures("small_ray")
def test_where_others_see_pictures_they_get_them_and_a_stop_ends_the_task(root: Path) -> None:
    spec = frozen("search.space.model.frozen={choices: [true, false]}")
    assert features.data_key_with_features(spec.base["model"], key := data.section_key(spec.base["data"])) in (
        found := given(spec, [])
    )
    assert found[key].facts.shape == (3, 8, 8)
    whole = {**spec.base["model"], "frozen": False}
    assert found[features.data_key_with_features(whole, key)] is found[key]  # who trains the network sees pictures
    with pytest.raises(StudyOverSignal):
        given(frozen("model.normalisation=data"), [], stopping=True)


@pytest.mark.usefixtures("small_ray")
def test_each_normalisation_of_the_pictures_has_features_of_its_own(root: Path) -> None:
    spec = frozen("search.space.model.normalisation={choices: [data, weights]}")
    key, found = data.section_key(spec.base["data"]), given(spec, [])
    rows = [
        found[features.data_key_with_features({**spec.base["model"], "normalisation": one}, key)]
        for one in ("data", "weights")
    ]
    assert rows[0].fingerprint != rows[1].fingerprint


@pytest.mark.usefixtures("small_ray")
def test_what_ends_the_task_is_told_as_it_said_it(root: Path) -> None:
    spec = frozen("data.rho=0.8")  # of which the processes of this Ray have kept no rows
    damaged = {
        name: (path, "0" * 64) for name, (path, _) in initial_weights.locate_weights(spec.model_sections).items()
    }
    with pytest.raises(UserError, match="has changed while the study runs"):
        replace_inputs_with_features(
            spec, data.load_datasets(spec.trial_data_sections), damaged, lambda _: None, lambda: False
        )
