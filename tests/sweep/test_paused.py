"""Trials that pause, without Ray: whatever runs first, is lost or is cut off, no paused trial is forgotten."""

import random
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import ClassVar

from course import DIED, Course, outcome, score, spec_of
from hypothesis import given, settings
from hypothesis import strategies as st

from study.home.events import ENDED
from study.home.ledger import read
from study.home.record import StudyRecord, TrialRecord
from study.home.requests import Request
from study.spec import StudySpec
from study.sweep.agenda import Job
from study.sweep.early_stopping import NoEarlyStopping, early_stopping
from study.sweep.failures import Failure
from study.sweep.search_stage import SearchStage

PROMOTION = "search.early_stopping={name: promotion, grace: 1, reduction: 2}"
REPLICATED = ("search.replicates=3", "search.trials=8")


def promoted(*assignments: str) -> StudySpec:
    return spec_of(PROMOTION, *assignments)


def assert_ended(spec: StudySpec, record: StudyRecord) -> None:
    """All have ended, as many as were planned, and one at least in full."""
    searched = list(record.by_stage("baseline", "search"))
    assert len(searched) == spec.search.trials
    assert all(trial.state in ENDED for trial in record.trials.values())
    assert sum(trial.state == "complete" for trial in record.by_stage("search")) >= spec.search.confirm.top
    for trial in record.trials.values():
        assert [one["epoch"] for one in trial.reports] == list(range(1, trial.epochs + 1))
        assert trial.state != "pruned" or trial.epochs in (1, 2) or trial.stage == "replicate"
    assert all(trial.reason == "promotion" for trial in record.by_stage("search") if trial.state == "pruned")


def test_the_course(tmp_path: Path) -> None:
    """One process: each promotion follows at once; all that is left over ends at the end of the search."""
    course = Course(tmp_path / "ledger.jsonl", promoted()).play()
    assert_ended(course.spec, course.record)
    kinds = Counter(event["event"] for event in read(course.ledger.path))
    assert kinds["paused"] > kinds["thawed"] > 0
    states = Counter(trial.state for trial in course.record.by_stage("search"))
    assert kinds["paused"] == kinds["thawed"] + states["pruned"]
    assert outcome(StudyRecord.load(course.ledger.path)) == outcome(course.record)


def test_all_of_the_best_of_a_rung_go_on(tmp_path: Path) -> None:
    """Of twelve that reach the first rung the best six do, of those the best half; few that were good enough for a
    while go on beside them."""
    course = Course(tmp_path / "ledger.jsonl", promoted("search.trials=13")).play()
    searched = list(course.record.by_stage("search"))
    for rung in (1, 2):
        reached = sorted(
            (trial for trial in searched if trial.epochs >= rung), key=lambda trial: -(score(trial, rung) or 0.0)
        )
        assert all(trial.epochs > rung for trial in reached[: len(reached) // 2])
        assert sum(trial.epochs > rung for trial in reached) <= len(reached) // 2 + 2


def played(path: Path, spec: StudySpec, seed: int, slots: int, losses: float, forgets: bool) -> StudyRecord:
    """A course in a random order, whose trials die at some of their reports.

    Args:
        forgets: a trial that was lost, or goes on after a pause, begins anew: its checkpoint is gone, too.
    """
    draw, died = random.Random(seed), set[tuple[int, int]]()

    def dying(trial: TrialRecord, epoch: int) -> float | Failure | None:
        if draw.random() < losses and (trial.number, epoch) not in died and trial.stage in ("search", "replicate"):
            died.add((trial.number, epoch))
            return DIED
        return score(trial, epoch)

    course = Course(path, spec, dying)
    course.forgets = forgets
    return course.play(slots, draw.randrange).record


@settings(max_examples=12, deadline=None)
@given(
    seed=st.integers(0, 10**6), slots=st.integers(1, 5), losses=st.sampled_from([0.0, 0.2]), forgets=st.booleans(),
    replicated=st.booleans(),
)  # fmt: skip
def test_whatever_comes_first_and_is_lost_all_end(
    seed: int, slots: int, losses: float, forgets: bool, replicated: bool
) -> None:
    spec = promoted("search.sampler=random", "search.retries=40", *(REPLICATED if replicated else ()))
    with TemporaryDirectory() as folder:
        path = Path(folder) / "ledger.jsonl"
        record = played(path, spec, seed, slots, losses, forgets)
        assert_ended(spec, record)
        if replicated:
            assert_seeds_went_together(spec, record)
        assert_decided_alike_at_every_cut(spec, path)


def assert_seeds_went_together(spec: StudySpec, record: StudyRecord) -> None:
    for trial in record.by_stage("replicate"):
        leader = record.trials[trial.repeats or 0]
        assert trial.epochs <= leader.epochs or trial.state == "complete"
        assert (trial.state == "complete") == (leader.state == "complete")


def assert_decided_alike_at_every_cut(spec: StudySpec, path: Path) -> None:
    """A search made anew from any beginning of the ledger says what the one before did next."""
    events = read(path)
    for cut in range(5, len(events), 7):
        record = StudyRecord.fold(events[:cut])
        stage = SearchStage(spec, record, early_stopping(spec))
        following = events[cut]
        if following["event"] == "report" and record.trials[following["trial"]].stage in ("search", "replicate"):
            trial = record.trials[following["trial"]]
            record.apply(following)
            if trial.epochs < spec.epochs:
                paused = cut + 1 < len(events) and events[cut + 1]["event"] == "paused"
                assert stage.judge(trial, trial.epochs) == ("pause" if paused else "on")
        elif following["event"] == "thawed":
            chosen = stage.thaw()
            assert chosen is not None
            assert chosen.number == following["trial"]


@settings(max_examples=4, deadline=None)
@given(seed=st.integers(0, 10**6), replicated=st.booleans())
def test_cut_off_after_any_event_a_study_with_one_process_ends_as_the_undisturbed_one(
    seed: int, replicated: bool
) -> None:
    spec, draw = promoted(*(REPLICATED if replicated else ())), random.Random(seed)
    with TemporaryDirectory() as folder:
        whole = Course(Path(folder) / "whole.jsonl", spec).play()
        lines, path = whole.ledger.path.read_bytes().splitlines(keepends=True), Path(folder) / "cut.jsonl"
        for _ in range(4):
            cut = draw.randrange(2, len(lines))
            path.write_bytes(b"".join(lines[:cut]))
            record = Course(path, spec).play().record
            assert outcome(record) == outcome(whole.record), cut
            path.unlink()


def paused_agenda(path: Path, spec: StudySpec) -> tuple[Course, int]:
    """A study whose first searched trial has just paused."""
    course = Course(path, spec)
    agenda = course.agenda
    while True:
        job = agenda.next()
        assert isinstance(job, Job)
        agenda.started(job.trial.number, "here", job.trial.epochs)
        while agenda.reported(job.trial.number, job.trial.epochs + 1, {"val/accuracy": 0.5}):
            pass
        if job.trial.state == "paused":
            return course, job.trial.number


def test_a_paused_trial_that_a_user_stops_ends_at_once(tmp_path: Path) -> None:
    course, number = paused_agenda(tmp_path / "ledger.jsonl", promoted())
    course.agenda.obey(Request("stop", trial=number))
    trial = course.record.trials[number]
    assert (trial.state, trial.reason) == ("pruned", "a user")
    assert course.agenda.dropped == [number]
    course.agenda.failed(number, DIED)
    course.ledger.close()


def test_what_is_told_of_a_paused_trial_from_its_old_process_is_not_heard(tmp_path: Path) -> None:
    course, number = paused_agenda(tmp_path / "ledger.jsonl", promoted())
    before = len(read(course.ledger.path))
    course.agenda.failed(number, DIED)
    assert not course.agenda.reported(number, 2, {"val/accuracy": 0.5})
    assert len(read(course.ledger.path)) == before
    course.ledger.close()


def test_a_user_who_ends_the_search_has_the_best_of_what_is_paused_run_in_full(tmp_path: Path) -> None:
    course, _ = paused_agenda(tmp_path / "ledger.jsonl", promoted("search.confirm={top: 1, seeds: 2}"))
    course.agenda.obey(Request("end"))
    course.play()
    states = Counter(trial.state for trial in course.record.by_stage("search"))
    assert states == {"complete": 1}


def test_trials_that_diverge_while_others_are_paused_do_not_end_the_study(tmp_path: Path) -> None:
    """Long before any is complete, all that have ended may have failed, and those that are paused are fine."""

    def diverging(trial: TrialRecord, epoch: int) -> float | None:
        return None if trial.number in (2, 4, 6) else score(trial, epoch)

    spec = promoted("search.baseline=null", "search.early_stopping.reduction=3", "search.sampler=random")
    course = Course(tmp_path / "ledger.jsonl", spec, diverging).play()
    assert course.agenda.outcome == "complete"
    states = Counter(trial.state for trial in course.record.by_stage("search"))
    assert (states["failed"], states["paused"]) == (3, 0)


def test_a_rule_that_would_have_paused_what_went_on_is_told_so(tmp_path: Path) -> None:
    """As after an upgrade that changed the rule: what is not paused is not thawed, which a ledger cannot say."""
    course, number = paused_agenda(tmp_path / "ledger.jsonl", promoted())
    course.ledger.close()

    class Otherwise(NoEarlyStopping):
        believed: ClassVar = [0, number]

        def thaw(self, more: bool) -> int | None:
            return next(iter(self.believed), None)

        def thawed(self, trial: int) -> None:
            self.believed.remove(trial)

    stage = SearchStage(course.spec, course.record, Otherwise())
    assert stage.thaw() is course.record.trials[number]
    assert Otherwise.believed == [number]
