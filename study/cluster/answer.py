"""What a command of `study` that ran as a job answered."""

import json
import re
from contextlib import suppress
from typing import Any

from study.cluster.job import STOPPED, UNUSABLE, Job
from study.errors import Interrupted, Stopped, UserError

LONGEST = 2000
"""Characters of a log that are shown where it has no error line, counted from its end."""


def answered(ended: Job, log: str) -> Any:
    """The JSON document that the command printed.

    Args:
        ended: its job, which is over.
        log: what it wrote.

    Raises:
        UserError, Stopped, Interrupted: what it said, where it failed, by its exit status 2, 1 or 130.
    """
    if ended.state == "succeeded":
        return _document(log)
    error = next((line for line in log.splitlines() if line.startswith("error: ")), log[-LONGEST:])
    said = error.removeprefix("error: ") or ended.message
    if ended.exit_status == STOPPED:
        raise Interrupted(said)
    raise UserError(said) if ended.exit_status == UNUSABLE else Stopped(said)


def _document(log: str) -> Any:
    """The JSON document in a job's log, among what libraries may have written."""
    for bracket in re.finditer(r"^[{\[]", log, re.MULTILINE):
        with suppress(ValueError, RecursionError):
            return json.JSONDecoder().raw_decode(log, bracket.start())[0]
    raise UserError(f"no answer came back: {log[-LONGEST:]}")
