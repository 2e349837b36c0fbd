"""A trial whose checkpoint holds states that this version cannot take begins again, and says why."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from helpers import timeless
from one_trial import config

from study import data
from study.sweep import worker
from study.sweep.job_payload import JobPayload
from study.training.trial import Trial


def spoiled(states: dict[str, Any], how: str) -> None:
    """As another version may have written them."""
    if how == "a state is missing":
        del states["probe_optimizer"]
    elif how == "another state":
        states["rates"] = {"schedule": 3}
    else:
        states["method"] = {f"of_old.{name}": value for name, value in states["method"].items()}


@pytest.mark.parametrize("how", ["a state is missing", "another state", "other names"])
def test_it_begins_again_with_a_note(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    given, file = config(), tmp_path / "trial.pt"
    dataset = data.load(dict(given.data))
    expected = timeless(Trial(given, dataset, "cpu").train_epochs(file))
    content = torch.load(file, weights_only=True)
    spoiled(content["states"], how)
    torch.save(content, file)
    told: list[dict[str, Any]] = []
    monkeypatch.setattr(worker.tune, "report", told.append)
    monkeypatch.setattr(worker.ray, "get", lambda reference: reference)
    begun: list[tuple[int, int, str | None]] = []
    monkeypatch.setattr(
        worker,
        "report_start",
        lambda heard, report: begun.append((heard, report.last_done_epoch, report.checkpoint_problem)),
    )
    document = json.dumps(given.to_document())
    job = JobPayload("train", 3, 1, 1, document, "cpu", 0, False, False, file, None, None, None, ())
    worker.run_job({"job": job}, datasets={data.section_key(given.data): dataset}, weights={})
    ((heard, behind, note),) = begun
    assert (heard, behind) == (1, 0)
    assert "is not a state that this trial can take" in (note or "")
    assert timeless([json.loads(one["metrics"]) for one in told]) == expected
