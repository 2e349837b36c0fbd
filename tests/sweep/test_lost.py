"""Trials that are cut off run again where that can help, from their checkpoints, and change nothing in the study."""

from collections.abc import Callable
from pathlib import Path

import pytest
from course import BROKEN, DIED, Course, outcome, prefixes, score, spec_of

from study.home.ledger import read_entries
from study.home.record import StudyRecord, TrialRecord
from study.spec import StudySpec
from study.sweep.agenda import N_ALIKE_FAILURES_TO_STOP, TrialJob
from study.sweep.failures import HUNG_FAILURE, TrialFailure

SPEC = ("search.trials=8", "search.sampler=random")
DIVERGED = TrialFailure("DIVERGED", "diverged: loss is nan in epoch 2")
CROWDED = TrialFailure("OOM", "OutOfMemoryError: CUDA out of memory", needs_whole_gpu=True)


def flaky(trial: TrialRecord, epoch: int) -> float | TrialFailure | None:
    """Every third trial dies in its third epoch, twice; every fifth hangs in its first, once."""
    if trial.number % 3 == 1 and epoch == 3 and trial.attempt < 2:
        return DIED
    return HUNG_FAILURE if trial.number % 5 == 2 and epoch == 1 and trial.attempt == 0 else score(trial, epoch)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Course:
    return Course(tmp_path_factory.mktemp("course") / "ledger.jsonl", spec_of(*SPEC)).play()


@pytest.mark.parametrize("checkpoints", [True, False])
def test_a_study_whose_trials_are_lost_now_and_then_ends_as_the_undisturbed_one(
    undisturbed: Course, tmp_path: Path, checkpoints: bool
) -> None:
    lossy = Course(tmp_path / "ledger.jsonl", spec_of(*SPEC), flaky, checkpoints).play()
    assert outcome(lossy.record) == outcome(undisturbed.record)
    events = read_entries(lossy.ledger.path)
    assert outcome(StudyRecord.from_entries(events)) == outcome(undisturbed.record)
    lost = [event for event in events if event["event"] == "lost"]
    assert {event["kind"] for event in lost} == {"PREEMPTED", "HUNG"}
    assert max(trial.attempt for trial in lossy.record.trials.values()) == 2
    twice = [event["epoch"] for event in events if event["event"] == "started" and event["trial"] == 1]
    assert twice == ([0, 1, 1] if checkpoints else [0, 0, 0])


@pytest.mark.slow
def test_cut_at_every_seventh_line_too(undisturbed: Course, tmp_path: Path) -> None:
    """Lost trials and lost drivers in one study."""
    whole = Course(tmp_path / "whole.jsonl", spec_of(*SPEC), flaky, checkpoints=True).play()
    for count, kept in enumerate(prefixes(whole)[::7]):
        (path := tmp_path / f"{count}.jsonl").write_bytes(kept)
        resumed = Course(path, spec_of(*SPEC), flaky, checkpoints=True).play()
        assert outcome(resumed.record) == outcome(undisturbed.record), f"cut after line {7 * count + 1}"


@pytest.mark.parametrize(("failure", "attempts"), [(DIED, 2), (HUNG_FAILURE, 2), (BROKEN, 0), (DIVERGED, 0)])
def test_a_trial_that_fails_each_time_has_failed_with_its_kind(
    tmp_path: Path, failure: TrialFailure, attempts: int
) -> None:
    """After `search.retries` further attempts where another can help, at once where it cannot."""

    def fails(trial: TrialRecord, epoch: int) -> float | TrialFailure | None:
        return failure if trial.number == 2 and epoch == 1 else score(trial, epoch)

    record = Course(tmp_path / "ledger.jsonl", spec_of(*SPEC), fails).play().record
    trial = record.trials[2]
    assert (trial.state, trial.failure_kind, trial.reason) == ("failed", failure.kind, failure.reason)
    assert trial.attempt == attempts
    assert record.state == "complete"
    assert [one.number for one in record.trials.values() if one.state == "failed"] == [2]


def test_without_retries_every_cut_is_a_failure(tmp_path: Path) -> None:
    record = Course(tmp_path / "ledger.jsonl", spec_of(*SPEC, "search.retries=0"), flaky).play().record
    assert record.trials[1].state == "failed"
    assert record.trials[1].failure_kind == "PREEMPTED"


def test_a_late_report_of_a_trial_that_was_given_up_changes_nothing(begin: Callable[[StudySpec], Course]) -> None:
    course = begin(spec_of(*SPEC))
    job = course.agenda.next_job()
    assert isinstance(job, TrialJob)
    course.agenda.record_trial_start(0, "here")
    course.agenda.record_trial_failure(0, DIED)
    before = course.ledger.path.read_bytes()
    assert job.trial.state == "waiting"
    assert not course.agenda.record_epoch(0, 1, {"val/accuracy": 0.9})
    assert course.ledger.path.read_bytes() == before
    again = course.agenda.next_job()
    assert isinstance(again, TrialJob)
    assert (again.trial.number, again.trial.attempt) == (0, 1)


def test_a_trial_alone_on_its_gpu_comes_after_the_others_of_the_search(begin: Callable[[StudySpec], Course]) -> None:
    """Where shares of the GPU are handed out to others, a whole one is never free."""
    course = begin(spec_of("search.trials=3", "search.sampler=random", "resources.gpu=0.5"))
    order = []
    while isinstance(job := course.agenda.next_job(), TrialJob) and len(order) < 4:
        number, alone = job.trial.number, job.trial.needs_gpu_alone
        order.append((number, alone))
        course.agenda.record_trial_start(number, "here")
        if number == 1 and not alone:
            course.agenda.record_trial_failure(number, CROWDED)
        else:
            for epoch in range(1, 5):
                course.agenda.record_epoch(number, epoch, {"val/accuracy": 0.5})
    assert order == [(0, False), (1, False), (2, False), (1, True)]
    assert course.record.trials[1].state == "complete"


def test_a_replicate_whose_first_seed_failed_does_not_begin(begin: Callable[[StudySpec], Course]) -> None:
    course = begin(spec_of("search.trials=1", "search.baseline=null", "search.replicates=2"))
    for _ in range(2):
        assert isinstance(course.agenda.next_job(), TrialJob)
    course.agenda.record_trial_start(0, "here")
    course.agenda.record_trial_failure(0, BROKEN)
    assert not course.agenda.record_trial_start(1, "here")
    assert course.record.trials[1].state == "pruned"


def test_reading_the_test_split_is_tried_again(begin: Callable[[StudySpec], Course]) -> None:
    course = begin(spec_of("search.trials=1", "search.confirm={top: 1, seeds: 2}"))
    tries = []
    while isinstance(job := course.agenda.next_job(), TrialJob):
        number = job.trial.number
        if job.kind == "train":
            course.agenda.record_trial_start(number, "here")
            for epoch in range(1, 5):
                course.agenda.record_epoch(number, epoch, {"val/accuracy": 0.5})
            continue
        tries.append(number)
        assert not course.agenda.is_over
        if number == 1 and len(tries) < 3:
            course.agenda.record_test_failure(number, DIED)
        elif number == 2:
            course.agenda.record_test_failure(number, BROKEN)
        else:
            course.agenda.record_test_metrics(number, {"test/accuracy": 0.5})
    assert tries == [1, 1, 1, 2]
    assert course.agenda.is_over
    assert course.record.trials[1].test_metrics
    assert course.record.trials[2].test_failure == "broken"


def test_trials_that_fail_in_different_ways_do_not_stop_a_study(tmp_path: Path) -> None:
    """The first ones all failed, but not in the same way: another configuration may work."""

    def fails(trial: TrialRecord, epoch: int) -> float | TrialFailure | None:
        if trial.number > N_ALIKE_FAILURES_TO_STOP:
            return score(trial, epoch)
        return BROKEN if trial.number % 2 else DIVERGED

    record = Course(tmp_path / "ledger.jsonl", spec_of(*SPEC), fails).play().record
    assert record.state == "complete"
    assert {trial.state for trial in record.trials_of_stages("search")} > {"failed"}
