"""Ray's memory monitor, as Ray Tune should hear of it."""

from typing import Any

from ray.air.execution._internal import RayActorManager
from ray.air.execution._internal.tracked_actor_task import TrackedActorTask
from ray.exceptions import OutOfMemoryError, RayActorError
from ray.tune.execution import tune_controller


class EndedForMemory(RayActorError):
    """The memory monitor ended a trial's process because its node was running out of memory."""


class Actors(RayActorManager):
    """Takes a process that the memory monitor ended for one that died; Tune knows no such error and ends itself."""

    def _actor_task_failed(self, tracked_actor_task: TrackedActorTask, exception: Exception) -> None:
        if isinstance(exception, OutOfMemoryError):
            exception = EndedForMemory(error_msg=str(exception))
        super()._actor_task_failed(tracked_actor_task, exception)


def survive() -> None:
    """Make the Tune of this process outlive trials that run out of memory."""
    controller: Any = tune_controller
    controller.RayActorManager = Actors
