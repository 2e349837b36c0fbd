"""Ray's memory monitor, as Ray Tune should hear of it."""

from ray.exceptions import OutOfMemoryError, RayActorError

from study.upstream import tune


class EndedForMemory(RayActorError):
    """The memory monitor ended a trial's process because its node was running out of memory."""


def survive() -> None:
    """Make the Tune of this process outlive trials that run out of memory: it takes a process that the memory monitor
    ended for one that died. By itself it knows no such error, and ends."""
    tune.change_errors_of_processes(_as_known_to_tune)


def _as_known_to_tune(error: Exception) -> Exception:
    return EndedForMemory(error_msg=str(error)) if isinstance(error, OutOfMemoryError) else error
