"""The answer of a command that runs as a job of a cluster, on a marked line of the job's log.

Whatever libraries write to the log, the answer is the line that begins with `ANSWER_LINE_MARK` and the job's id: a JSON
document with `answer`, or with `error` (a code of `study.errors` and the message). Nothing depends on the words of a
message.
"""

import json
import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from study.errors import StartInterruptedError, StudyNotFoundError, StudyStoppedError, UserError
from study.text import print_text, shorten_text

if TYPE_CHECKING:  # imports study.spec, which a command that prints its answer may not need
    from study.cluster.driver_job import DriverJob

ANSWER_ID_VARIABLE = "STUDY_ANSWER_AS"
"""Variable that holds the job's id in a job that has to answer."""

ANSWER_LINE_MARK = "study-answer"
ERROR_BY_CODE = {kind.code: kind for kind in (UserError, StudyNotFoundError, StudyStoppedError, StartInterruptedError)}
MAX_MESSAGE_CHARACTERS = 2000
"""Most characters that are shown of an error, and of the end of a log without one."""


def write_answer_to_log(document: Any) -> None:
    """Write the answer of a command into its log, where the command is a job that was asked."""
    _write_marked_line({"answer": document})


def write_error_to_log(error: UserError | StudyStoppedError | StartInterruptedError) -> None:
    """Write why there is no answer, where the command is a job that was asked."""
    _write_marked_line({"error": {"code": error.code, "message": str(error)}})


def _write_marked_line(document: dict[str, Any]) -> None:
    if job := os.environ.get(ANSWER_ID_VARIABLE):
        print_text(f"\n{ANSWER_LINE_MARK} {job} {json.dumps(document)}")  # a library may have left a line unfinished


def read_answer_from_log(ended: "DriverJob", log: str) -> Any:
    """Return the answer of a job's command that has ended.

    Args:
        log: what the job wrote. Anybody who reaches the cluster may have written it: nothing in it is trusted.

    Raises:
        UserError, StudyNotFoundError, StudyStoppedError, StartInterruptedError: what went wrong there; a `UserError`,
            too, where a job that succeeded has no answer in its log.
    """
    found = _find_marked_document(log, ended.id)
    if ended.state == "succeeded":
        if "answer" in found:
            return found["answer"]
        raise UserError(f"no answer came back: {log[-MAX_MESSAGE_CHARACTERS:]}")
    error = found.get("error")
    told = error if isinstance(error, dict) else {}
    said = str(told.get("message") or log[-MAX_MESSAGE_CHARACTERS:].strip())
    said = shorten_text(said, MAX_MESSAGE_CHARACTERS) or ended.ray_message
    by_status = {kind.exit_status: kind for kind in (UserError, StudyStoppedError, StartInterruptedError)}
    raise ERROR_BY_CODE.get(str(told.get("code")), by_status[ended.command_exit_status])(said)


def _find_marked_document(log: str, job: str) -> dict[str, Any]:
    """Return the last document that the job marked as its own."""
    for line in reversed(log.splitlines()):
        if line.startswith(f"{ANSWER_LINE_MARK} {job} "):
            with suppress(ValueError, RecursionError):
                document = json.loads(line.removeprefix(f"{ANSWER_LINE_MARK} {job} "))
                return document if isinstance(document, dict) else {}
    return {}
