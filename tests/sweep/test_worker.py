"""What a worker does around a trial."""

import json
import sys
from pathlib import Path

import pytest
from one_trial import config

from study import data
from study.sweep import worker
from study.sweep.job_payload import JobPayload


def test_a_file_of_the_working_folder_stands_for_no_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "colorsys.py").write_text("raise RuntimeError('of the user')")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])  # as Ray does it
    monkeypatch.delitem(sys.modules, "colorsys", raising=False)
    monkeypatch.setattr(worker.tune, "report", lambda metrics: __import__("colorsys"))
    monkeypatch.setattr(worker.ray, "get", lambda reference: reference)
    monkeypatch.setattr(worker, "tell_start", lambda *_: None)
    given = config()
    document, dataset = json.dumps(given.to_document()), data.load(dict(given.data))
    file = tmp_path / "trial.pt"
    job = JobPayload("train", 3, 1, 1, document, "cpu", 0, False, False, file, None, {}, None, None, None, ())
    worker.run_job({"job": job}, datasets={data.key(given.data): dataset}, weights={}, folder=str(tmp_path))
    assert sys.path[-1] == str(tmp_path)
