"""What a command that ran as a job answered, and the exit status that it had."""

import pytest

from study.cluster.job import Job
from study.cluster.jobs import answered
from study.errors import Interrupted, Stopped, UserError


def ended(state: str, code: int | None = None) -> Job:
    return Job("study-evaluate-1", "", "", 0, state, "what Ray says", 1.0, 2.0, "python", {}, None, code)


def test_the_document_is_found_among_what_libraries_write() -> None:
    assert answered(ended("succeeded"), 'a warning: [1\n[warning]\n{\n  "a": 1\n}\nbye\n') == {"a": 1}


def test_a_log_without_a_document_is_told() -> None:
    with pytest.raises(UserError, match="no answer came back: only words"):
        answered(ended("succeeded"), "only words")


@pytest.mark.parametrize(
    ("state", "code", "kind"),
    [
        ("failed", 2, UserError),
        ("failed", 1, Stopped),
        ("failed", None, Stopped),
        ("failed", 130, Interrupted),
        ("stopped", None, Interrupted),
    ],
)
def test_an_error_there_is_the_same_error_here(state: str, code: int | None, kind: type[Exception]) -> None:
    log = "a warning\nTraceback\n  somewhere\nerror: what was wrong\n"
    with pytest.raises(kind, match=r"^what was wrong$"):
        answered(ended(state, code), log)
    with pytest.raises(kind, match=r"^what Ray says$"):
        answered(ended(state, code), "")


def test_a_refusal_of_several_lines_comes_whole() -> None:
    log = "a warning\nerror: two of its keys cannot be used:\n  train.epochs: 0 given\n  search.trials: -1 given\n"
    told = "two of its keys cannot be used:\n  train.epochs: 0 given\n  search.trials: -1 given"
    with pytest.raises(UserError) as refused:
        answered(ended("failed", 2), log)
    assert str(refused.value) == told
    with pytest.raises(UserError) as refused:
        answered(ended("failed", 2), f"error: {'long ' * 10_000}end")
    assert len(str(refused.value)) <= 2000
    assert str(refused.value).endswith("end")
