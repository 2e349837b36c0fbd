"""What a command that ran as a job answered, and the exit status that it had."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from study.cluster.driver_job import DriverJob
from study.cluster.job_answer import ANSWER_ID_VARIABLE, MAX_MESSAGE_CHARACTERS, read_answer_from_log
from study.errors import StartInterruptedError, StudyNotFoundError, StudyStoppedError, UserError

JOB = "study-evaluate-1"


def ended(state: str, code: int | None = None) -> DriverJob:
    return DriverJob(JOB, "", "", 0, state, "what Ray says", 1.0, 2.0, "python", {}, None, code)


def marked(job: str = JOB, **document: object) -> str:
    return f"study-answer {job} {json.dumps(document)}\n"


def test_the_answer_is_what_the_job_marked_whatever_libraries_write() -> None:
    log = '{"a": 0}\n[warning]\n' + marked("study-evaluate-2", answer={"a": 2}) + marked(answer={"a": 1}) + "bye\n"
    assert read_answer_from_log(ended("succeeded"), log) == {"a": 1}


@pytest.mark.parametrize(
    "log", ["only words", '{"a": 1}', marked("another", answer=1), f"study-answer {JOB} [", f"study-answer {JOB} 3"]
)
def test_a_log_without_an_answer_is_told(log: str) -> None:
    with pytest.raises(UserError, match="no answer came back"):
        read_answer_from_log(ended("succeeded"), log)


@pytest.mark.parametrize(
    ("state", "code", "kind"),
    [
        ("failed", 2, UserError),
        ("failed", 1, StudyStoppedError),
        ("failed", None, StudyStoppedError),
        ("failed", 130, StartInterruptedError),
        ("stopped", None, StartInterruptedError),
    ],
)
def test_a_job_that_says_nothing_itself_has_failed_by_its_exit_status(
    state: str, code: int | None, kind: type[Exception]
) -> None:
    with pytest.raises(kind, match=r"^Killed$"):
        read_answer_from_log(ended(state, code), "Killed\n")
    with pytest.raises(kind, match=r"^what Ray says$"):
        read_answer_from_log(ended(state, code), "")


@pytest.mark.parametrize("kind", [UserError, StudyNotFoundError, StudyStoppedError, StartInterruptedError])
def test_an_error_there_is_the_same_error_here_whatever_its_words(kind: type[StudyNotFoundError]) -> None:
    error = {"code": kind.code, "message": "two keys cannot be used:\n  a: 0 given\n  b: -1 given"}
    with pytest.raises(kind) as raised:
        read_answer_from_log(ended("failed", 1), "error: in other words\n" + marked(error=error))
    assert type(raised.value) is kind
    assert str(raised.value) == error["message"]


def test_a_long_message_is_cut() -> None:
    error = {"code": "stopped", "message": f"{'long ' * 10_000}end"}
    with pytest.raises(StudyStoppedError) as raised:
        read_answer_from_log(ended("failed", 1), marked(error=error))
    assert len(str(raised.value)) <= MAX_MESSAGE_CHARACTERS


@pytest.mark.parametrize(
    ("command", "state", "code", "kind"),
    [
        (("status", "no-such", "--json"), "failed", 2, StudyNotFoundError),
        (("trial", "no-such.yaml", "--json"), "failed", 2, UserError),
        (("list", "--json"), "succeeded", 0, None),
    ],
)
def test_a_command_answers_where_it_is_asked_as_a_job(
    command: tuple[str, ...],
    state: str,
    code: int,
    kind: type[Exception] | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("STUDY_HOME", str(tmp_path))
    monkeypatch.setenv(ANSWER_ID_VARIABLE, JOB)
    done = subprocess.run([sys.executable, "-m", "study", *command], capture_output=True, text=True, check=False)
    assert done.returncode == code
    if kind is None:
        assert read_answer_from_log(ended(state), done.stdout) is not None
        return
    with pytest.raises(kind) as raised:
        read_answer_from_log(ended(state, code), done.stdout + done.stderr)
    assert type(raised.value) is kind
