"""The course of a study without Ray: a plain loop plays the workers. Whatever the cut, nothing is lost or double."""

import errno
import math
import os
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from course import DIED, Course, failing, outcome, prefixes, spec_of
from helpers import quickstart
from hypothesis import given, settings
from hypothesis import strategies as st

from study.home.events import ENDED_STATES
from study.home.ledger import read_entries
from study.home.record import StudyRecord, TrialRecord
from study.ranking import Results
from study.spec import StudySpec, objective
from study.spec.sampler_capabilities import SAMPLER_CAPABILITIES
from study.sweep.agenda import N_ALIKE_FAILURES_TO_STOP
from study.sweep.failures import StudyCannotContinueError, TrialFailure


def assert_whole(spec: StudySpec, record: StudyRecord) -> None:
    """Nothing lost, nothing double."""
    trials = record.trials
    searched = list(record.trials_of_stages("baseline", "search"))
    assert list(trials) == list(range(len(trials)))
    assert len(searched) == spec.search.trials
    assert [trial.number for trial in record.trials_of_stages("baseline")] == [0]
    assert trials[0].params == spec.search.baseline
    assert all(trial.state in ENDED_STATES for trial in trials.values())
    for trial in trials.values():
        assert [one["epoch"] for one in trial.reports] == list(range(1, trial.n_epochs + 1))
        assert (trial.state == "complete") <= (trial.n_epochs == spec.epochs)
        assert trial.stage == "search" or trial.state != "pruned"
    chosen = Results(spec, record).confirmation.trials_to_confirm()
    expected = {(one.number, seed) for one in chosen for seed in (1, 2)}
    assert Counter((trial.repeated_trial, trial.seed) for trial in record.trials_of_stages("confirm")) == Counter(
        expected
    )
    assert all(trial.params == trials[trial.repeated_trial or 0].params for trial in record.trials_of_stages("confirm"))
    final = [one for one in (Results(spec, record).baseline, Results(spec, record).best) if one]
    assert {trial.number for trial in trials.values() if trial.test_metrics} == {
        trial.number for one in final for trial in one.confirm_trials
    }
    assert record.state == "complete"


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Course:
    """A whole study, one job at a time."""
    return Course(tmp_path_factory.mktemp("course") / "ledger.jsonl", spec_of()).play()


def test_the_whole_course(course: Course) -> None:
    record = course.record
    assert_whole(course.spec, record)
    stages = [trial.stage for trial in record.trials.values()]
    assert stages == ["baseline"] + ["search"] * 11 + ["confirm"] * 6
    states = Counter(trial.state for trial in record.trials_of_stages("search"))
    assert states["pruned"] > 3
    assert states["complete"] > 1
    assert all(trial.reason == "asha" for trial in record.trials.values() if trial.state == "pruned")


@pytest.mark.parametrize("sampler", SAMPLER_CAPABILITIES)
def test_whichever_sampler_searches_the_study_comes_to_its_end(tmp_path: Path, sampler: str) -> None:
    space = "search.space={method.alpha: {low: 0, high: 1, step: 0.25}, method.lambda: {low: 0, high: 2, step: 0.25}}"
    baseline = "search.baseline={method.alpha: 1.0, method.lambda: 0.0}"
    spec = spec_of(f"search.sampler={sampler}", space, baseline)
    assert_whole(spec, Course(tmp_path / "ledger.jsonl", spec).play(slots=2).record)


@pytest.mark.parametrize("step", [5, pytest.param(1, marks=pytest.mark.slow)])
def test_resumed_at_any_line_of_its_ledger_the_study_ends_as_if_never_cut(
    course: Course, tmp_path: Path, step: int
) -> None:
    """One job at a time: the same suggestions, the same stops, the same values, nothing lost and nothing double."""
    cuts, expected = list(enumerate(prefixes(course), start=1)), outcome(course.record)
    assert len(cuts) > 100
    for count, kept in cuts[::step]:
        path = tmp_path / f"{count}.jsonl"
        path.write_bytes(kept + b'{"event":"rep')  # the line that was being written is cut off
        resumed = Course(path, course.spec).play()
        assert outcome(resumed.record) == expected, f"cut after line {count}"
        assert outcome(StudyRecord.from_entries(read_entries(path))) == expected


@pytest.mark.slow
def test_resumed_at_every_third_line_a_study_with_failures_ends_as_if_never_cut(tmp_path: Path) -> None:
    spec = spec_of("search.trials=8", "search.sampler=random")
    whole = Course(tmp_path / "whole.jsonl", spec, failing).play()
    states = Counter(trial.state for trial in whole.record.trials.values())
    assert min(states["failed"], states["complete"], states["pruned"]) > 0
    for count, kept in enumerate(prefixes(whole)[::3]):
        (tmp_path / f"{count}.jsonl").write_bytes(kept)
        resumed = Course(tmp_path / f"{count}.jsonl", spec, failing).play()
        assert outcome(resumed.record) == outcome(whole.record), f"cut after line {3 * count + 1}"


@pytest.mark.slow
@settings(max_examples=12)
@given(seed=st.integers(0, 10**6), slots=st.integers(2, 5), cuts=st.lists(st.floats(0.02, 1), max_size=3))
def test_whatever_the_order_of_results_and_the_cuts_nothing_is_lost_or_double(
    tmp_path_factory: pytest.TempPathFactory, seed: int, slots: int, cuts: list[float]
) -> None:
    spec = spec_of("search.trials=9", "search.sampler=random")
    path = tmp_path_factory.mktemp("order") / "ledger.jsonl"
    decided: dict[int, Any] = {}
    for share in [*cuts, None]:
        course = Course(path, spec).play(slots, random.Random(seed).randrange)
        assert_whole(spec, course.record)
        before = dict(decided)
        if share is not None:
            lines = path.read_bytes().splitlines(keepends=True)
            path.write_bytes(b"".join(lines[: max(1, int(share * len(lines)))]))
            decided = {trial.number: (trial.params, trial.seed) for trial in StudyRecord.load(path).trials.values()}
        for number, one in before.items():
            assert (course.record.trials[number].params, course.record.trials[number].seed) == one


def test_a_trial_that_early_stopping_let_go_on_is_not_stopped_by_a_resume(begin: Callable[..., Course]) -> None:
    """Trial 3 passed its rung before the better ones came; judged again in the order of numbers it would stop."""
    values = {1: 0.8, 2: 0.9, 3: 0.1}
    first = begin(spec_of("search.baseline=null", "search.trials=4"), trials=4)
    assert first.agenda.record_epoch(3, 1, {"val/accuracy": values[3]})
    assert first.agenda.record_epoch(2, 1, {"val/accuracy": values[2]})
    assert first.agenda.record_epoch(1, 1, {"val/accuracy": values[1]})
    assert first.agenda.record_epoch(3, 2, {"val/accuracy": values[3]})
    assert first.agenda.record_epoch(3, 3, {"val/accuracy": values[3]})
    first.ledger.close()
    resumed = begin(first.spec)
    assert resumed.record.trials[3].state == "interrupted"


def test_the_baseline_comes_first_and_what_is_enqueued_next(tmp_path: Path) -> None:
    spec = spec_of("search.trials=4", "search.enqueue=[{method.alpha: 0.5}, {method.lambda: 1.5, method.alpha: 0.1}]")
    trials = Course(tmp_path / "ledger.jsonl", spec).play().record.trials
    assert [trial.params for trial in trials.values()][:3] == [spec.search.baseline, *spec.search.enqueue]
    assert set(trials[3].params) == set(spec.search.space)


def test_the_baseline_is_never_stopped_early(tmp_path: Path) -> None:
    course = Course(tmp_path / "ledger.jsonl", spec_of(), lambda trial, epoch: 0.01 if trial.number == 0 else 0.9)
    assert course.play(slots=4, pick=lambda count: count - 1).record.trials[0].state == "complete"


def test_a_study_whose_first_trials_all_fail_stops(tmp_path: Path) -> None:
    course = Course(tmp_path / "ledger.jsonl", spec_of(), lambda trial, epoch: None).play()
    assert course.agenda.stopping == course.record.state == "failed"
    assert len(course.record.trials) == N_ALIKE_FAILURES_TO_STOP


OF_STUDY = TrialFailure("BUG", "train: did not yield val/log_los in epoch 1", affects_all_trials=True)


def test_a_first_yield_that_no_trial_can_do_without_stops_a_study_at_once(begin: Callable[..., Course]) -> None:
    course = begin(spec_of(), trials=2)
    course.agenda.record_trial_failure(1, OF_STUDY)
    assert course.agenda.refusal == OF_STUDY.reason
    assert course.agenda.next_job() == "done"
    assert not [trial for trial in course.record.trials.values() if trial.state == "failed"]


def test_such_a_yield_is_a_failed_trial_where_others_have_reported(begin: Callable[..., Course]) -> None:
    course = begin(spec_of(), trials=2)
    assert course.agenda.record_epoch(0, 1, {"val/accuracy": 0.5})
    course.agenda.record_trial_failure(1, OF_STUDY)
    assert course.agenda.refusal is course.agenda.stopping is None
    assert course.record.trials[1].reason == OF_STUDY.reason


def test_a_study_ends_where_its_events_cannot_be_kept(
    begin: Callable[..., Course], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    course = begin(spec_of(), trials=1)
    before = read_entries(course.ledger.path)
    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(StudyCannotContinueError, match=r"begun\.jsonl: No space left on device\. Make room there"):
        course.agenda.record_epoch(0, 1, {"val/accuracy": 0.5})
    assert read_entries(course.ledger.path) == before
    assert not course.record.trials[0].reports


def test_a_study_ends_where_another_driver_writes_its_ledger(begin: Callable[..., Course]) -> None:
    course = begin(spec_of(), trials=1)
    with course.ledger.path.open("ab") as ledger:
        ledger.write(b"{}\n")
    with pytest.raises(StudyCannotContinueError, match="another driver has written to its ledger"):
        course.agenda.record_epoch(0, 1, {"val/accuracy": 0.5})


def test_one_trial_that_works_keeps_a_study_going(tmp_path: Path) -> None:
    course = Course(tmp_path / "ledger.jsonl", spec_of("search.trials=8"), lambda t, e: 0.5 if t.number == 2 else None)
    assert course.play().record.state == "complete"
    assert Counter(trial.state for trial in course.record.trials_of_stages("baseline", "search"))["failed"] == 7


def test_a_metric_that_is_no_number_at_the_end_is_a_failure(tmp_path: Path) -> None:
    record = Course(tmp_path / "ledger.jsonl", spec_of("search.trials=2"), lambda t, e: math.nan if t.number else 0.5)
    trial = record.play().record.trials[1]
    assert (trial.state, trial.reason) == ("failed", "val/accuracy is not a number")
    assert trial.reports[-1]["val/accuracy"] is None


def test_a_stopping_agenda_hands_out_nothing(begin: Callable[..., Course]) -> None:
    course = begin(spec_of())
    course.agenda.stopping = "interrupted"
    assert course.agenda.next_job() == "done"
    assert not course.record.trials


@pytest.fixture
def complete(begin: Callable[..., Course]) -> Course:
    """A study whose first trial is complete."""
    course = begin(spec_of(), trials=1)
    for epoch in range(1, 5):
        course.agenda.record_epoch(0, epoch, {"val/accuracy": 0.5})
    return course


def test_what_is_heard_twice_or_late_of_a_trial_that_ended_changes_nothing(complete: Course) -> None:
    """A worker may die after its last report was heard."""
    before = complete.ledger.path.read_bytes()
    for epoch in (4, 5, 2):
        assert not complete.agenda.record_epoch(0, epoch, {"val/accuracy": 0.9})
    complete.agenda.record_trial_failure(0, DIED)
    assert complete.record.trials[0].state == "complete"
    assert complete.ledger.path.read_bytes() == before


def test_a_second_reading_of_the_test_split_changes_nothing(course: Course) -> None:
    number = next(trial.number for trial in course.record.trials.values() if trial.test_metrics)
    before = dict(course.record.trials[number].test_metrics)
    course.agenda.record_test_metrics(number, {"test/accuracy": 0.0})
    assert course.record.trials[number].test_metrics == before


def test_a_study_in_which_nothing_completed_has_failed(tmp_path: Path) -> None:
    spec = quickstart("search.trials=2", "search.confirm.top=0")
    assert Course(tmp_path / "ledger.jsonl", spec, lambda trial, epoch: None).play().agenda.outcome == "failed"


def trade_off(trial: TrialRecord) -> dict[str, float]:
    """A gap that grows with what raises the metric, and a little luck by seed."""
    luck = random.Random(f"gap {sorted(trial.params.items())} {trial.seed}").uniform(0.0, 0.1)
    return {"equalized_odds": 0.3 * trial.params.get("method.lambda", 0.0) + luck}


def test_of_several_metrics_the_whole_front_runs_again_and_has_its_test(tmp_path: Path) -> None:
    """Also where it was cut off: what is tested is the front of the fresh seeds and the baseline."""
    given = ("search.metric=[val/accuracy, val/equalized_odds]", "search.early_stopping={name: none}")
    spec = spec_of(*given, "search.confirm={top: 1, seeds: 2}", "search.sampler=random")
    whole = Course(tmp_path / "whole.jsonl", spec, further=trade_off).play(slots=2).record
    of_search = objective.front_positions(
        [candidate.score for candidate in Results(spec, whole).ranked_by_search_value]
    )
    again = Results(spec, whole).confirmation.trials_to_confirm()
    assert len(again) == len(of_search) + 1 > 3
    front = [candidate for candidate, _ in Results(spec, whole).front]
    read = {trial.number for trial in whole.trials.values() if trial.test_metrics}
    baseline = Results(spec, whole).baseline
    assert baseline
    assert read == {trial.number for each in [*front, baseline] for trial in each.confirm_trials}
    assert all(len(each.confirm_trials) == 2 for each in front)
    assert whole.state == "complete"
    lines = (tmp_path / "whole.jsonl").read_text().splitlines(keepends=True)
    for cut in range(len(lines) // 2, len(lines), 25):
        (path := tmp_path / f"{cut}.jsonl").write_text("".join(lines[:cut]))
        resumed = Course(path, spec, further=trade_off).play(slots=2).record
        found = {trial.number for trial in resumed.trials.values() if trial.test_metrics}
        assert [trial.number for trial in Results(spec, resumed).confirmation.trials_to_confirm()] == [
            trial.number for trial in again
        ]
        assert len(found) == len(read)
