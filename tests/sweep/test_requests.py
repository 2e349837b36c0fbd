"""What users ask while a study runs: obeyed once, told in the ledger, and the same after any cut."""

import errno
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from course import Course, outcome, prefixes, spec_of

from study.home.driver_requests import (
    MAX_REQUEST_BYTES,
    MAX_REQUESTS_AT_ONCE,
    DriverRequest,
    pending_requests,
    submit_request,
)
from study.home.events import SearchExtended
from study.home.ledger import Ledger, read_entries
from study.home.record import StudyRecord
from study.spec import StudySpec
from study.sweep.tune_adapters import RequestInbox

PARAMS = {"method.alpha": 0.5, "method.lambda": 1.25, "method.epsilon": 0.25}
ASKED = [DriverRequest("enqueue", PARAMS, id="a" * 32), DriverRequest("stop", trial=6, id="b" * 32)]
END = DriverRequest("end", id="e" * 32)


class Asking(Course):
    """A course whose users ask the same at the same places, whoever drives it."""

    def __init__(self, path: Path, spec: StudySpec, end: bool = False) -> None:
        self._end = end
        super().__init__(path, spec)

    def _step(self, work: list[Any]) -> bool:
        trials = self.record.trials
        if len(trials) > 3:
            self.agenda.obey_request(ASKED[0])
        if len(trials) > 6 and (trials[6].n_epochs or trials[6].state == "pruned"):
            self.agenda.obey_request(ASKED[1])
        if self._end and len(trials) > 8:
            self.agenda.obey_request(END)
        return super()._step(work)


def test_a_request_comes_as_it_was_asked(tmp_path: Path) -> None:
    """Whole numbers stay whole: a key that takes no other would refuse them."""
    params = {"train.batch_size": 64, "a": 1.0, "b": True, "c": None, "d": "64", "e": 2**53 + 1}
    submit_request(tmp_path, DriverRequest("enqueue", params))
    ((_, found),) = pending_requests(tmp_path)
    assert found is not None
    assert {key: (type(value), value) for key, value in found.params.items()} == {
        key: (type(value), value) for key, value in params.items()
    }


@pytest.fixture
def spec() -> StudySpec:
    return spec_of("search.early_stopping={}", "search.trials=10", "search.sampler=random")


@pytest.mark.slow
@pytest.mark.parametrize("end", [False, True], ids=["to its end", "ended"])
def test_resumed_at_any_line_a_study_that_was_asked_things_ends_as_if_never_cut(tmp_path: Path, end: bool) -> None:
    spec = spec_of("search.early_stopping={}", "search.trials=10", "search.sampler=random", "search.confirm={top: 0}")
    whole = Asking(tmp_path / "whole.jsonl", spec, end).play()
    asked = {event["event"]: event for event in read_entries(whole.ledger.path) if "request" in event}
    assert set(asked) == {"enqueued", "stopping", *(["ending"] if end else [])}
    for count, kept in enumerate(prefixes(whole)):
        (tmp_path / f"{count}.jsonl").write_bytes(kept)
        resumed = Asking(tmp_path / f"{count}.jsonl", spec, end).play()
        assert outcome(resumed.record) == outcome(whole.record), f"cut after line {count + 1}"
        assert resumed.record.request_refusals == whole.record.request_refusals
        assert resumed.record.search_ended_by == whole.record.search_ended_by


def test_what_is_enqueued_is_tried_next(tmp_path: Path, spec: StudySpec) -> None:
    record = Asking(tmp_path / "ledger.jsonl", spec).play().record
    assert record.trials[4].params == PARAMS
    assert record.trials[4].is_enqueued
    assert len(list(record.trials_of_stages("baseline", "search"))) == 10  # it counts as one of them


def test_a_trial_that_is_stopped_ends_at_its_next_report(tmp_path: Path, spec: StudySpec) -> None:
    trial = Asking(tmp_path / "ledger.jsonl", spec).play().record.trials[6]
    assert (trial.state, trial.reason, trial.n_epochs) == ("pruned", "a user", 2)


def test_a_search_that_is_ended_finishes_what_runs_and_the_study_goes_on(tmp_path: Path, spec: StudySpec) -> None:
    course = Asking(tmp_path / "ledger.jsonl", spec, end=True).play(slots=3)
    searched = list(course.record.trials_of_stages("search"))
    assert len(searched) == 8
    assert [trial.state for trial in searched].count("complete") == 7
    assert course.record.search_ended_by == "a user"
    assert len(list(course.record.trials_of_stages("confirm"))) == 6
    assert any(trial.test_metrics for trial in course.record.trials.values())


def test_a_search_that_was_ended_can_be_extended(tmp_path: Path, spec: StudySpec) -> None:
    path = tmp_path / "ledger.jsonl"
    Asking(path, spec, end=True).play()
    ledger = Ledger(path)
    ledger.append(SearchExtended(trials=12))
    ledger.close()
    record = Course(path, spec).play().record
    assert len(list(record.trials_of_stages("baseline", "search"))) == 12
    assert record.search_ended_by == "trials"


@pytest.mark.parametrize(
    ("request_", "why"),
    [
        (DriverRequest("stop", trial=0), "trial 0 is one of stage baseline; only trials of the search can be stopped"),
        (DriverRequest("stop", trial=7), "there is no trial 7"),
        (DriverRequest("enqueue", {**PARAMS, "method.alpha": 7.0}), "the search could not give this configuration"),
        (DriverRequest("enqueue", {"method.alpha": 0.5}), "the search could not give this configuration"),
        (DriverRequest("enqueue", {**PARAMS, "method.lambda": True}), "the search could not give this configuration"),
    ],
    ids=["the baseline", "no such trial", "out of range", "keys are missing", "no number"],
)
def test_what_cannot_be_done_is_refused_and_changes_nothing_else(
    tmp_path: Path, spec: StudySpec, begin: Callable[..., Course], request_: DriverRequest, why: str
) -> None:
    course = begin(spec, trials=2)
    before = outcome(course.record)
    course.agenda.obey_request(request_)
    assert read_entries(course.ledger.path)[-1]["event"] == "refused"
    assert course.record.request_refusals == {request_.id: why}
    assert outcome(course.record) == before


def test_the_same_wish_twice_is_refused_once(tmp_path: Path, spec: StudySpec, begin: Callable[..., Course]) -> None:
    course = begin(spec, trials=2)
    for request in (DriverRequest("enqueue", PARAMS), DriverRequest("stop", trial=1), DriverRequest("end")):
        course.agenda.obey_request(request)
        course.agenda.obey_request(request)  # the file of a driver that died before it removed it
        course.agenda.obey_request(DriverRequest(request.kind, request.params, request.trial))
    refused = [event["reason"] for event in read_entries(course.ledger.path) if event["event"] == "refused"]
    assert refused == ["it is enqueued already", "trial 1 ends at its next report already", "the search is over"]


def test_the_driver_meets_requests_in_their_order_and_removes_them(
    tmp_path: Path, spec: StudySpec, begin: Callable[..., Course]
) -> None:
    course, folder = begin(spec, trials=2), tmp_path / "requests"
    requests = [DriverRequest("stop", trial=1), DriverRequest("enqueue", PARAMS), DriverRequest("end")]
    for request in requests:
        submit_request(folder, request)
    (folder / ".part").write_text("half")
    (folder / f"{'0' * 20}-{'a' * 32}.json").write_text('{"kind": "end"')
    (folder / f"{'1' * 20}-{'b' * 32}.json").write_text("9" * (MAX_REQUEST_BYTES + 1))
    (folder / f"{'2' * 20}-{'c' * 32}.json").symlink_to(course.ledger.path)
    inbox = RequestInbox(course.agenda, folder)
    inbox.obey_requests_if_due()
    wrong = ["a" * 32, "b" * 32, "c" * 32]
    assert list(course.record.request_refusals) == [wrong[0], *(request.id for request in requests), *wrong[1:]]
    assert {course.record.request_refusals[name] for name in wrong} == {"its file cannot be read as a request"}
    assert [path.name for path in folder.iterdir()] == [".part"]
    submit_request(folder, DriverRequest("stop", trial=1))
    inbox.obey_requests_if_due()  # not within a second
    assert len(pending_requests(folder)) == 1


def test_a_folder_that_cannot_be_read_holds_nothing_and_ends_no_study(
    tmp_path: Path, spec: StudySpec, begin: Callable[..., Course], monkeypatch: pytest.MonkeyPatch
) -> None:
    course, folder = begin(spec, trials=2), tmp_path / "requests"
    submit_request(folder, DriverRequest("end"))

    def refuse(*_: Any, **__: Any) -> None:
        raise OSError(errno.EACCES, "Permission denied")

    for name in ("scandir", "unlink"):
        with monkeypatch.context() as patched:
            patched.setattr(os, name, refuse)
            RequestInbox(course.agenda, folder).obey_pending_requests()
    assert course.record.has_search_end_request
    assert len(pending_requests(folder)) == 1
    RequestInbox(course.agenda, folder).obey_pending_requests()
    assert not pending_requests(folder)


def test_what_cannot_be_removed_keeps_no_request_from_being_read(
    tmp_path: Path, spec: StudySpec, begin: Callable[..., Course]
) -> None:
    course, folder = begin(spec, trials=2), tmp_path / "requests"
    for number in range(MAX_REQUESTS_AT_ONCE):
        (folder / f"{number:020}-{'a' * 32}.json").mkdir(parents=True)
    submit_request(folder, DriverRequest("end"))
    RequestInbox(course.agenda, folder).obey_pending_requests()
    assert course.record.has_search_end_request


@pytest.mark.parametrize(
    "damage",
    [
        {"kind": "delete"},
        {"kind": ["end"]},
        {"params": [1]},
        {"params": {"a": {"b": 1}}},
        {"trial": -1},
        {"trial": True},
        {"id": "d" * 32},
    ],
    ids=str,
)
def test_what_is_no_request_is_none(tmp_path: Path, damage: dict[str, Any]) -> None:
    path = submit_request(tmp_path / "requests", DriverRequest("end"))
    path.write_text(json.dumps(json.loads(path.read_text()) | damage))
    assert pending_requests(tmp_path / "requests") == [(path, None)]


def test_a_record_tells_what_was_asked(tmp_path: Path, spec: StudySpec) -> None:
    course = Asking(tmp_path / "ledger.jsonl", spec, end=True).play()
    record = StudyRecord.load(course.ledger.path)
    assert record.enqueued_configurations == [PARAMS]
    assert record.has_search_end_request
    assert list(record.request_refusals.values()) == [None, None, None]
