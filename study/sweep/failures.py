"""Why a trial did not run to its end, whether running it again can help, and what ends a study at once."""

import traceback
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from study.errors import UserError, disk_remedy, error_message, find_disk_error
from study.sweep.host_memory import KILLED_PROCESS_PATTERN, MemoryLimit
from study.text import escape_control, shorten_text
from study.training.function_loading import FirstYieldError, function_error_location, traceback_from_function
from study.training.gpu_errors import NoDeviceError, find_gpu_error_pattern

if TYPE_CHECKING:  # takes tenths of a second, and workers do not need it
    from study.home.events import FailureKind
    from study.home.ledger import LeaseLostError
    from study.home.record import TrialRecord
    from study.spec import StudySpec

MAX_ATTEMPTS_AFTER_NODE_DEATHS = 100
"""Attempts of one trial after which a dead node counts as any other failure: perhaps the trial is what kills nodes."""

NODE_DIED_TEXT = "because its node has died"
"""Part of Ray's message about a process whose node is gone."""

MAX_TRACEBACK_CHARACTERS = 2**20
"""Most characters of a traceback that are kept."""


@dataclass(frozen=True)
class TrialFailure:
    """The failure of a trial's run.

    Attributes:
        kind: PREEMPTED: its process or node died, or its GPU is in no state to go on; OOM: out of memory; HUNG: it did
            not report for too long; DIVERGED: its loss, networks or metric are no numbers; BUG: an exception in its
            code.
        reason: what happened, for the user.
        needs_whole_gpu: the GPU's memory ran out; with a whole GPU to itself the trial may fit.
        node_died: the node or GPU died under the trial, which is no fault of the trial's.
        affects_all_trials: it is no matter of the configuration: every trial of the study would fail in the same way.
    """

    kind: "FailureKind"
    reason: str
    needs_whole_gpu: bool = False
    node_died: bool = False
    affects_all_trials: bool = False

    def may_run_again(self, trial: "TrialRecord", spec: "StudySpec", before: int) -> bool:
        """Return whether the trial gets another attempt.

        Within `search.retries`; once after running out of memory, which other trials may have taken, and then alone on
        a GPU; up to `MAX_ATTEMPTS_AFTER_NODE_DEATHS` attempts where nodes die.

        Args:
            before: attempts that were lost so far.
        """
        if self.node_died:
            return trial.attempt < MAX_ATTEMPTS_AFTER_NODE_DEATHS
        most = min(1, spec.search.retries) if self.kind == "OOM" else spec.search.retries
        if self.kind in ("DIVERGED", "BUG") or before >= most:
            return False
        return not self.needs_whole_gpu or (not trial.needs_gpu_alone and spec.resources.gpu < 1)

    def with_memory_remedy(self, spec: "StudySpec", *, others: bool) -> "TrialFailure":
        """Return this failure, with a remedy where the machine's memory ran out.

        Args:
            others: whether other trials ran at the same time.
        """
        if self.kind != "OOM" or self.needs_whole_gpu:
            return self
        fewer = ["fewer trials at once: --set search.concurrency=N"] if others else []
        smaller = "a smaller train.batch_size, or train.micro_batch"
        less = "a function that holds less" if spec.training_function else smaller
        return replace(self, reason=f"{self.reason}. Remedy: {'; or '.join([*fewer, less])}")


HUNG_FAILURE = TrialFailure("HUNG", "did not report any more")
PROCESS_DIED_FAILURE = TrialFailure("PREEMPTED", "its process died")
NODE_LOST_FAILURE = TrialFailure("PREEMPTED", "its node died", node_died=True)


class NodeUnusableError(Exception):
    """A trial's process cannot use the GPU that it was given.

    Args:
        machine: Ray's id of the node.
        host: its name.
        reason: why, and the remedy.
    """

    def __init__(self, machine: str, host: str, reason: str) -> None:
        super().__init__(machine, host, reason)
        self.machine, self.host, self.reason = machine, host, reason


class TrialFailedError(Exception):
    """The exception that ended a trial, as its process passes it to the driver.

    It is sent as text: an exception class of the user's cannot always be unpickled in another process.

    Attributes:
        failure: what it means.
        text: its traceback, from the trial's own frames on.
    """

    def __init__(self, failure: TrialFailure, text: str) -> None:
        super().__init__(failure, text)
        self.failure, self.text = failure, text

    def __str__(self) -> str:
        return self.text

    @classmethod
    def from_exception(cls, error: BaseException, memory: MemoryLimit) -> "TrialFailedError":
        """Build one from what was raised in a trial, in characters that every file and database takes.

        Args:
            memory: of its process when the trial began. A process that the trial started may have been ended for it.
        """
        found = _classify_exception(error)
        text = "".join(traceback.format_exception(type(error), error, traceback_from_function(error))).rstrip()
        if at := function_error_location(error):
            found = replace(found, reason=f"{at}: {found.reason}")
        if KILLED_PROCESS_PATTERN.search(error_message(error)) and memory.kills_since_start() > 0:
            limit = f"memory is limited to {memory.limit_bytes / 2**30:.1f} GiB"
            reason = f"the kernel's OOM killer ended a process of the trial's: {limit}. {found.reason}"
            found = TrialFailure("OOM", reason)
        return cls(found, escape_control(shorten_text(text, MAX_TRACEBACK_CHARACTERS)))


JobError = NoDeviceError | OSError | TrialFailedError
"""Error that ended a job, as the driver is told it, see `study.sweep.job_execution.error_for_driver`."""


def failure_of_error(error: BaseException) -> TrialFailure:
    """Return what an error that ended a trial's run means.

    Args:
        error: from Ray: a task's error holds what the trial raised, others are about its process or node.
    """
    from ray import exceptions

    if isinstance(error, exceptions.RayTaskError):
        error = error.cause
    if isinstance(error, TrialFailedError):
        return error.failure
    if isinstance(error, NodeUnusableError):
        return TrialFailure("PREEMPTED", f"{error.host} is not used: {error.reason}"[:300], node_died=True)
    if isinstance(error, exceptions.OutOfMemoryError):
        return TrialFailure("OOM", _exception_line(error))
    if isinstance(error, exceptions.NodeDiedError):
        return NODE_LOST_FAILURE
    if isinstance(error, exceptions.RayActorError):
        if NODE_DIED_TEXT in str(error):
            return NODE_LOST_FAILURE
        return TrialFailure("BUG", _exception_line(error)) if error.actor_init_failed else PROCESS_DIED_FAILURE
    if isinstance(error, exceptions.RayError):
        return TrialFailure("PREEMPTED", _exception_line(error))  # a node, or an object that was lost with one
    return _classify_exception(error)


def _classify_exception(error: BaseException) -> TrialFailure:
    """Return what an error of a trial's own code means."""
    import torch

    if isinstance(error, torch.OutOfMemoryError):
        return TrialFailure("OOM", _exception_line(error), needs_whole_gpu=True)
    if isinstance(error, MemoryError):
        return TrialFailure("OOM", _exception_line(error))
    if isinstance(error, FirstYieldError):
        return TrialFailure("BUG", _exception_line(error), affects_all_trials=True)
    reason, pattern = _exception_line(error), find_gpu_error_pattern(error_message(error))
    if pattern is None:
        return TrialFailure("BUG", reason)
    if pattern.meaning in ("memory", "host memory"):
        return TrialFailure("OOM", reason, needs_whole_gpu=pattern.meaning == "memory")
    advised = f"{reason}. Remedy: {pattern.advice}" if pattern.advice else reason
    return TrialFailure("BUG" if pattern.meaning == "code" else "PREEMPTED", advised)


def _exception_line(error: BaseException) -> str:
    """Return the first line of an error's message, after its class where it is not one of this software."""
    of_class = "" if isinstance(error, UserError) else f"{type(error).__name__}: "
    return escape_control(f"{of_class}{error_message(error)}".strip(": \n").splitlines()[0][:300])[:300]


class StudyCannotContinueError(BaseException):
    """The study has to stop at once, through no fault of a trial; what is in the ledger stays.

    Not an `Exception`, so that nothing on the way takes it for a trial's.

    Args:
        problem: error of the file system, or of the lease.
        place: what could not be written, where the problem names no file.
    """

    def __init__(self, problem: "OSError | LeaseLostError", place: Path) -> None:
        text = str(problem)
        if isinstance(problem, OSError):
            text = f"{problem.filename or place}: {problem.strerror}"
            text += f". {disk_remedy(problem)}" if find_disk_error(problem) else ""
        super().__init__(text)
