"""What a worker of Ray's and the server that forks its trials' processes tell each other. Without PyTorch."""

import struct
from collections.abc import Callable, Mapping
from typing import NamedTuple

from study.errors import UserError
from study.knobs import Value
from study.sweep.failures import TrialFailedError
from study.sweep.job_payload import JobPayload
from study.training.gpu_errors import NoDeviceError

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


def error_to_values(told: NoDeviceError | OSError | TrialFailedError) -> tuple[Value, ...]:
    """Convert an error to plain values for the other process; `error_from_values` makes it an error again."""
    if isinstance(told, NoDeviceError):
        return "unusable", str(told)
    if isinstance(told, OSError):
        return "disk", told.errno, told.strerror, told.filename
    return "broken", *told.to_document()


def error_from_values(name: str, *given: Value) -> Exception:
    """Return the error that ended a trial, from what its process sent."""
    kinds: Mapping[str, Callable[..., Exception]] = {
        "unusable": NoDeviceError,
        "disk": OSError,
        "broken": TrialFailedError.from_document,
    }
    if name not in kinds:
        return UserError(f"{name}: a trial's process told what is not known")
    return kinds[name](*given)
