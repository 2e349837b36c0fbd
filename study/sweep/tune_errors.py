"""Ends of trials that Ray Tune does not handle by itself."""

from ray.exceptions import OutOfMemoryError, RayActorError

from study.upstream import tune


class MemoryKillError(RayActorError):
    """The memory monitor ended a trial's process because its node was running out of memory."""


class ProcessBusyError(RayActorError):
    """A trial was to run in a process in which the one before it had not come to its end."""


def tell_them() -> None:
    """Make the Tune of this process handle both errors as it handles a process that died.

    By itself it ends at the first, which it does not know, and drops the trial of the second without a word: the study
    would wait for ever.
    """
    tune.change_errors_of_processes(
        lambda error: MemoryKillError(error_msg=str(error)) if isinstance(error, OutOfMemoryError) else error
    )
    tune.change_failed_reuse(lambda: ProcessBusyError(error_msg="its process was still busy with the trial before"))
