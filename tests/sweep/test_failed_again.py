"""What failed runs again, once a user has mended its cause."""

import math
from pathlib import Path

import pytest
from course import BROKEN, Course, outcome, score, spec_of

from study.commands import extend_study
from study.errors import UserError
from study.home.events import ConfirmRequested, TrialUntested
from study.home.folder import StudyFolder
from study.home.record import StudyRecord, TrialRecord
from study.ranking import Results
from study.spec import StudySpec
from study.sweep.failures import TrialFailure

NONE = "search.early_stopping.name=none"
STOPPINGS = {"asha": "search.early_stopping={name: asha, grace: 1, reduction: 2}", "none": NONE}


def broken(trial: TrialRecord, epoch: int) -> float | TrialFailure | None:
    """The baseline, searched trials, a replicate, and a fresh seed; by an exception, or without a number at the end."""
    if trial.stage == "baseline" or (trial.stage == "confirm" and trial.seed % 2):
        return BROKEN
    if trial.stage == "replicate" and trial.number % 4 == 0:
        return BROKEN
    if trial.stage == "search" and trial.number % 5 == 1:
        return BROKEN if epoch == 2 else score(trial, epoch)
    return math.nan if trial.stage == "search" and trial.number % 5 == 3 else score(trial, epoch)


def retried(path: Path, spec: StudySpec) -> StudyRecord:
    return extend_study.retry_failed_trials(StudyFolder(path.parent), spec)


@pytest.mark.slow
@pytest.mark.parametrize("replicates", [1, 2])
@pytest.mark.parametrize("stopping", STOPPINGS)
def test_what_failed_runs_again_with_its_configuration_and_seed_and_resumes_as_it_would_have_gone(
    tmp_path: Path, stopping: str, replicates: int
) -> None:
    spec, path = spec_of(STOPPINGS[stopping], f"search.replicates={replicates}"), tmp_path / "ledger.jsonl"
    before = Course(path, spec, broken).play().record
    failed = {trial.number for trial in before.trials.values() if trial.state == "failed"}
    assert {before.trials[number].stage for number in failed} >= {"baseline", "search", "confirm"}
    begun = len(path.read_bytes().splitlines())
    waiting = retried(path, spec)
    assert waiting.state == "interrupted"
    again = {trial.number for trial in waiting.trials.values() if trial.state == "waiting"}
    assert again >= failed
    after = Course(path, spec).play().record
    for number, trial in before.trials.items():
        now = after.trials[number]
        assert (now.params, now.seed, now.stage) == (trial.params, trial.seed, trial.stage)
        assert now.attempt == trial.attempt + (number in again)
        if number in again:
            assert now.state in ("complete", "pruned")
        else:
            assert (now.state, now.reports) == (trial.state, trial.reports)
    assert {trial.state for trial in after.trials_of_stages("baseline")} == {"complete"}
    assert len(after.repeat_trials(0)) == 2
    lines = path.read_bytes().splitlines(keepends=True)
    for cut in range(begun + 1, len(lines), 7):
        (copy := tmp_path / str(cut)).mkdir()
        (copy / "ledger.jsonl").write_bytes(b"".join(lines[:cut]))
        resumed = Course(copy / "ledger.jsonl", spec).play().record
        assert [one[:4] for one in outcome(resumed)] == [one[:4] for one in outcome(after)]
        assert [trial.state for trial in resumed.trials.values()] == [trial.state for trial in after.trials.values()]


def test_a_study_that_gave_up_begins_again_and_one_that_fails_again_gives_up_again(tmp_path: Path) -> None:
    spec, path = spec_of("search.trials=3", STOPPINGS["none"]), tmp_path / "ledger.jsonl"
    first = Course(path, spec, lambda trial, epoch: BROKEN).play()
    assert first.agenda.outcome == "failed"
    assert extend_study.has_only_failures_left(Results(spec, first.record))
    retried(path, spec)
    assert Course(path, spec, lambda trial, epoch: BROKEN).play().agenda.outcome == "failed"
    assert retried(path, spec).trials[0].attempt == 2
    last = Course(path, spec).play()
    assert last.agenda.outcome == "complete"
    assert {trial.state for trial in last.record.trials.values()} == {"complete"}
    with pytest.raises(UserError, match="no trial has failed"):
        retried(path, spec)


def test_a_test_split_that_was_read_at_last_is_not_read_again(tmp_path: Path) -> None:
    """It failed once and was read once its cause was mended: nothing is left, however often a user asks."""
    spec, path = spec_of("search.trials=2", "search.confirm={top: 1, seeds: 2}", NONE), tmp_path / "ledger.jsonl"
    course = Course(path, spec)
    course.agenda.record_test_metrics = lambda number, metrics: course.agenda.record_test_failure(number, BROKEN)  # type: ignore[method-assign]
    unread = [trial.number for trial in course.play().record.trials.values() if trial.test_failure]
    assert len(unread) == 4
    for _ in range(2):  # as long as nobody mends it, each asks for it again
        assert not any(trial.test_metrics for trial in retried(path, spec).trials.values())
    again = Course(path, spec).play().record
    assert [number for number, trial in again.trials.items() if trial.test_metrics] == unread
    with pytest.raises(UserError, match="no trial has failed"):
        retried(path, spec)


def test_a_test_split_that_is_no_longer_to_be_read_does_not_begin_a_session(tmp_path: Path) -> None:
    """It could not be read for what was the best then; another configuration is the best now."""
    spec, path = spec_of("search.trials=3", "search.confirm={top: 1, seeds: 2}", NONE), tmp_path / "ledger.jsonl"
    first = Course(path, spec).play()
    best = next(each for each in first.record.trials_of_stages("confirm") if each.repeated_trial != 0)
    course = Course(path, spec)
    course.record.apply(course.ledger.append(TrialUntested(trial=best.number, reason="broken")))
    course.ledger.append(ConfirmRequested(top=3, seeds=2))
    course.ledger.close()
    later = Course(path, spec, lambda trial, epoch: 0.99 if trial.number > best.number else score(trial, epoch)).play()
    assert later.record.trials[best.number].test_failure
    with pytest.raises(UserError, match="no trial has failed"):
        retried(path, spec)
