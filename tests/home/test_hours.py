"""The hours that a study took. The expected numbers are worked out by hand."""

from typing import Any

import pytest
from helpers import Told, quickstart, record

from study.analysis.report.report_lead import SavedByEarlyStopping, saved_by_early_stopping
from study.home.record import StudyRecord
from study.ranking import Results

SPEC = quickstart("train.epochs=4", "search.early_stopping.grace=1", "resources={cpu: 2, gpu: 0.5}")


def test_the_hours_by_hand() -> None:
    """An event a second: a full trial takes 5, one that ends after an epoch 2; opened at 1, the last event at 12."""
    told = record(Told("baseline", [0.5] * 4), Told("search", [0.1], "pruned"))
    assert told.total_driver_seconds == pytest.approx(11)
    assert told.total_trial_seconds == pytest.approx(7)
    assert told.device_seconds("cpu", SPEC.resources.cpu) == pytest.approx(14)
    assert told.device_seconds("gpu", SPEC.resources.gpu) == pytest.approx(3.5)
    assert saved_by_early_stopping(Results(SPEC, told)) == SavedByEarlyStopping("asha", 1, 3 / 8, pytest.approx(6))


def test_a_clock_that_is_set_back_makes_no_run_last_less_than_nothing() -> None:
    """By an hour, in the middle of a trial that takes eight seconds, three of them unseen."""
    created = {"event": "created", "id": "study", "time": 9_000.0}
    told: list[dict[str, Any]] = [created, {"event": "opened", "owner": "ada", "time": 9_000.0}]
    told += [{"event": "trial", "trial": 0, "stage": "search", "params": {}, "seed": 0, "time": 9_000.0}]
    told += [{"event": "started", "trial": 0, "node": "here", "time": 9_001.0}]
    told += [{"event": "report", "trial": 0, "epoch": 1, "metrics": {}, "time": 9_004.0}]
    told += [{"event": "report", "trial": 0, "epoch": 2, "metrics": {}, "time": 5_407.0}]
    told += [{"event": "ended", "trial": 0, "state": "complete", "time": 5_409.0}]
    found = StudyRecord.from_entries(told)
    assert found.total_driver_seconds == pytest.approx(4 + 2)
    assert found.trials[0].total_run_seconds == found.total_trial_seconds == pytest.approx(3 + 2)


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
    told += [{"event": "report", "trial": 0, "epoch": 1, "metrics": {"time/epoch": 4.0}, "time": 1006.0}]
    told += [{"event": "ended", "trial": 0, "state": "complete", "time": 1007.0}]
    found = StudyRecord.from_entries(told)
    assert found.total_trial_seconds == pytest.approx(30 + 0 + 6), "its last second before the stop is not known"
    assert found.total_driver_seconds == pytest.approx(50 + 7), "the pause between the sessions is nobody's work"
