"""A study whose data were changed is not gone on with: `study resume` names the data set and the files."""

import re
import time
from dataclasses import replace
from typing import NoReturn

import numpy as np
import pytest
from folded import folded
from image_folders import rows, write
from PIL import Image
from typer.testing import CliRunner

from study import data
from study.cli import app
from study.data import summarise_datasets
from study.data.dataset import fingerprint_without_fold
from study.errors import StudyStoppedError
from study.home.events import SessionClosed, SessionOpened
from study.home.folder import Home
from study.home.ledger import Ledger
from study.home.record import StudyRecord
from study.spec import load_study
from study.sweep.driver import drive_study

STUDY = """
name: mine
data: {name: image_folder, path: photos, target: target, bias: gender, size: 8}
model: {name: small_conv_net, width: 8}
method: {name: cross_entropy}
train: {epochs: 1, batch_size: 8, learning_rate: 0.01}
search: {trials: 1, metric: val/accuracy}
"""


@pytest.fixture
def stopped(tmp_path, monkeypatch):
    """The folder of the pictures of a study that began, and was stopped before its first trial."""
    monkeypatch.setenv("STUDY_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("STUDY_HOME", str(tmp_path / "studies"))
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "photos", rows())
    (tmp_path / "mine.yaml").write_text(STUDY)
    spec = load_study("mine.yaml")
    datasets = data.load_datasets(spec.trial_data_sections)
    ledger = Ledger(Home(tmp_path / "studies").create_study(spec).ledger_file)
    told = {"data": data.joint_fingerprint(datasets), "datasets": summarise_datasets(datasets)}
    ledger.append(SessionOpened(owner="ada", version="1", libraries={}, **told))
    ledger.append(SessionClosed(state="interrupted"))
    ledger.close()
    time.sleep(0.05)
    return tmp_path / "photos"


def refusal() -> str:
    done = CliRunner().invoke(app, ["resume", "mine"])
    assert done.exit_code != 0
    return str(done.exception)


@pytest.mark.slow
def test_pictures_that_were_changed_in_place_are_named(stopped):
    for number in (3, 5, 7, 8):
        Image.fromarray(np.full((6, 5, 3), number, np.uint8)).save(stopped / f"{number}.png")
    said = refusal()
    assert said.startswith("mine: its data have changed since it began; trials on other data do not compare. photos: ")
    assert re.search(r"photos: fingerprint \w{16}, was \w{16}\. Written since then: \S*photos/\d\.png, ", said)
    assert "and 1 more. Put the earlier files back, or begin a study of another name" in said


@pytest.mark.slow
def test_labels_that_were_changed_are_named(stopped):
    table = stopped / "labels.csv"
    table.write_text(table.read_text().replace("0.png,cat", "0.png,dog"))
    assert re.search(r"Written since then: \S*photos/labels\.csv\. Put the earlier", refusal())


def test_several_data_sets_of_an_earlier_version_which_had_fewer_options_are_the_same():
    sections = [{"name": "biased_digits", "rho": rho} for rho in (0.9, 0.95)]
    datasets = data.load_datasets(sections)
    digests = [one["digest"] for one in summarise_datasets(datasets).values()]
    earlier = "another hash, of keys without the option"
    assert data.is_data_unchanged(earlier, digests, datasets)
    assert not data.is_data_unchanged(earlier, digests, dict(reversed(datasets.items())))
    assert not data.is_data_unchanged(earlier, [], datasets)


def test_a_final_training_on_all_folds_says_so_and_goes_on_where_an_earlier_version_said_otherwise(tmp_path):
    """Its driver told those of fold 0: 2 of 3 parts to train on, and one to validate."""
    spec = replace(folded(), name="mine", final_seeds=(7,))
    datasets = data.load_datasets(spec.trial_data_sections)
    folder = Home(tmp_path / "studies").create_study(spec)
    ledger = Ledger(folder.ledger_file)
    record = StudyRecord.load(folder.ledger_file)

    def no_ray(*given: object) -> NoReturn:
        raise StudyStoppedError("no Ray here")

    for _ in range(2):
        with pytest.raises(StudyStoppedError, match="no Ray here"):
            drive_study(folder, spec, datasets, ledger, record, start_ray=no_ray)
        told = record.sessions[-1]
        (summary,) = told.datasets.values()
        assert told.data == summary["digest"] == f"{fingerprint_without_fold(told.data)}: fold none"
        assert summary["rows"].keys() == {"train", "test"}
        record.sessions[-1] = replace(told, data=told.data.replace("fold none", "fold 0"))
    ledger.close()
