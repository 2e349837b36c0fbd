"""What a worker of Ray's and the server that forks its trials' processes tell each other. Without PyTorch.

A trial's process sends each `JobReport`, and at its end the error that ended it, or None.
"""

import struct
from typing import NamedTuple

from study.sweep.job_payload import JobPayload

RUN_TRIAL_COMMAND, END_TRIAL_COMMAND = b"g", b"e"
"""Bytes that tell the server to run a trial, and to end it."""

SERVER_ANSWER_STRUCT = struct.Struct("!ciq")
"""What the server answers: `TRIAL_ENDED_ANSWER`, a status as of waitpid(2) and the most bytes that the process held; or
`UNFIT_FUNCTION_ANSWER`: the function has to be imported for each trial, by another server."""
TRIAL_ENDED_ANSWER, UNFIT_FUNCTION_ANSWER = b"e", b"u"

CONTINUE_ANSWER, STOP_ANSWER = b"on", b"stop"
"""Answers to each report of a trial."""


class ForkTask(NamedTuple):
    """What a trial's process is told first.

    Attributes:
        folder: the working folder.
        try_gpu: whether no trial has tried the GPU of the worker that asks.
    """

    job: JobPayload
    folder: str
    try_gpu: bool
