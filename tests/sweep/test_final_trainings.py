"""The course of a last training: one trial per seed, nothing searched."""

import math
from pathlib import Path

from course import Course, spec_of
from helpers import quickstart

from study.commands.final_training import final_training_spec
from study.home.ledger import read_entries


def test_a_final_training_has_one_trial_per_seed_and_reads_the_test_split_for_each(tmp_path: Path) -> None:
    spec = final_training_spec(spec_of(), [3, 1, 2])
    record = Course(tmp_path / "ledger.jsonl", spec).play().record
    assert [(trial.stage, trial.seed, trial.params) for trial in record.trials.values()] == [
        ("final", 3, {}),
        ("final", 1, {}),
        ("final", 2, {}),
    ]
    assert all(trial.test_metrics for trial in record.trials.values())
    more = final_training_spec(spec_of(), [3, 1, 2, 9])
    record = Course(tmp_path / "ledger.jsonl", more).play().record
    assert [trial.seed for trial in record.trials.values()] == [3, 1, 2, 9]
    assert all(trial.test_metrics and trial.n_epochs == 4 for trial in record.trials.values())


def test_a_final_training_without_validation_is_complete(tmp_path: Path) -> None:
    """There is no metric to look at then; a search without one has failed trials."""
    spec = final_training_spec(spec_of(), [3], with_val=True)
    course = Course(tmp_path / "ledger.jsonl", spec, lambda trial, epoch: math.nan).play()
    assert course.agenda.outcome == "complete"


def test_a_final_training_with_a_failed_seed_has_failed_and_is_tried_again(tmp_path: Path) -> None:
    """Not complete, so that it can be resumed; the seed that failed runs again, the other is kept."""
    spec = quickstart("final_seeds=[0, 1]", "search.early_stopping.grace=1", "train.epochs=3")
    path = tmp_path / "ledger.jsonl"
    first = Course(path, spec, lambda trial, epoch: None if trial.seed == 1 else 0.5).play()
    assert first.agenda.outcome == "failed"
    second = Course(path, spec, lambda trial, epoch: 0.5).play()
    assert second.agenda.outcome == "complete"
    assert [(trial.seed, trial.state) for trial in second.record.trials.values()] == [(0, "complete"), (1, "complete")]
    assert [event["trial"] for event in read_entries(path) if event["event"] == "started"] == [0, 1, 1]
