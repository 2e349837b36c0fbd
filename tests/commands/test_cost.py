"""What a study has cost. The expected numbers are worked out by hand."""

import json
from pathlib import Path
from typing import Any

import pytest
from helpers import Told, quickstart, record, write_ledger
from typer.testing import CliRunner

from study.analysis.statistics.spent import Saved
from study.cli import app
from study.commands.cost import document, text
from study.home.folder import Home
from study.home.record import StudyRecord
from study.ranking import Results
from study.ranking.documents import plain
from study.spec import StudySpec

SPEC = quickstart("train.epochs=4", "search.early_stopping.grace=1", "resources={cpu: 2, gpu: 0.5}")


def seconds(hours: float) -> float:
    return hours * 3600


def test_the_hours_by_hand() -> None:
    """An event a second: a full trial takes 5, one that ends after an epoch 2; opened at 1, the last event at 12."""
    told = document(Results(SPEC, record(Told("baseline", [0.5] * 4), Told("search", [0.1], "pruned"))))
    assert json.loads(json.dumps(plain(told), allow_nan=False)) == plain(told)
    assert seconds(told.wall_hours) == pytest.approx(11)
    assert seconds(told.trial_hours) == pytest.approx(7)
    assert seconds(told.cpu_hours) == pytest.approx(14)
    assert seconds(told.gpu_hours) == pytest.approx(3.5)
    assert told.trials_at_once == pytest.approx(7 / 11)
    assert told.epochs == 5
    assert told.early_stopping == Saved("asha", 1, 3 / 8, pytest.approx(6))


def test_runs_that_were_lost_or_cut_off_were_paid_for() -> None:
    told: list[dict[str, Any]] = [
        {"event": "created", "id": "study", "time": 0.0},
        {"event": "opened", "owner": "ada", "time": 0.0},
    ]
    told += [{"event": "trial", "trial": 0, "stage": "search", "params": {}, "seed": 0, "time": 0.0}]
    told += [{"event": "started", "trial": 0, "node": "here", "time": 10.0}]
    told += [{"event": "lost", "trial": 0, "attempt": 1, "kind": "PREEMPTED", "reason": "died", "time": 40.0}]
    told += [{"event": "started", "trial": 0, "node": "here", "time": 50.0}]
    told += [{"event": "closed", "state": "interrupted", "time": 55.0}]
    told += [
        {"event": "opened", "owner": "ada", "time": 1000.0},
        {"event": "started", "trial": 0, "node": "here", "time": 1001.0},
    ]
    metrics = {"time/epoch": 4.0, "time/data": 1.0, "time/training": 2.0, "time/evaluation": 0.5}
    told += [{"event": "report", "trial": 0, "epoch": 1, "metrics": metrics, "time": 1006.0}]
    told += [{"event": "ended", "trial": 0, "state": "complete", "time": 1007.0}]
    found = document(Results(SPEC, StudyRecord.fold(told)))
    assert seconds(found.trial_hours) == pytest.approx(30 + 0 + 6), "its last second before the stop is not known"
    assert seconds(found.wall_hours) == pytest.approx(50 + 7), "the pause between the sessions is nobody's work"
    assert {name: seconds(hours) for name, hours in found.epoch_hours.items()} == pytest.approx(
        {"epoch": 4.0, "data": 1.0, "training": 2.0, "evaluation": 0.5}
    )
    assert "25% data, 50% training, 12% evaluation" in text(found)


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STUDY_HOME", str(tmp_path))
    spec: StudySpec = quickstart("name=mine", "train.epochs=4")
    write_ledger(Home(tmp_path).create(spec).ledger_file, Told("baseline", [0.5] * 4), Told("search", [0.1], "pruned"))
    done = CliRunner().invoke(app, ["cost", "mine", "--json"])
    saved = json.loads(done.stdout)["early_stopping"]
    shown = CliRunner().invoke(app, ["cost", "mine"]).stdout
    for words in ("study mine (", "5 epochs", saved):
        assert words in shown
