"""`search.stop` ends a search, on every way to the same trials."""

from pathlib import Path

from course import Course, outcome, spec_of

from study.ranking import Results
from study.ranking.remaining_gain import remaining_gain

STOP = (
    "search.stop={gain: 0.3, trials: 10}",
    "search.trials=40",
    "search.sampler=random",
    "search.early_stopping.name=none",
    "search.confirm={top: 0}",
)


def test_a_search_ends_when_more_would_gain_little_and_resumes_as_ended(tmp_path: Path) -> None:
    spec = spec_of(*STOP)
    course = Course(tmp_path / "ledger.jsonl", spec).play()
    record = course.record
    count = len(list(record.by_stage("search")))
    assert course.agenda.enough == "stop"
    assert 10 <= count < 39
    found = remaining_gain(Results(spec, record))
    assert found.gain is not None
    assert found.gain <= 0.3
    again = Course(course.ledger.path, spec).play()
    assert (outcome(again.record), again.agenda.enough) == (outcome(record), "stop")
    lines = course.ledger.path.read_bytes().splitlines(keepends=True)
    for cut in (20, len(lines) - 3):
        path = tmp_path / f"{cut}.jsonl"
        path.write_bytes(b"".join(lines[:cut]))
        assert outcome(Course(path, spec).play().record) == outcome(record)


def test_a_search_goes_on_while_more_would_gain_much(tmp_path: Path) -> None:
    course = Course(tmp_path / "ledger.jsonl", spec_of(*STOP, "search.stop.gain=0.0001", "search.trials=20")).play()
    assert course.agenda.enough == "trials"
