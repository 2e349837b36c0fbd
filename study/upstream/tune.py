"""The parts of Ray Tune's controller and trials that are used and that Ray does not promise to keep.

`tests/upstream/test_tune_controller.py` tries each against the installed Ray and names what depends on it. Ray is
imported inside the functions only.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ray.tune.experiment import Trial


def actor(trial: "Trial") -> Any:
    """Return the handle of the process of a running trial of Tune."""
    return trial.temporary_state.ray_actor


def actor_id(trial: "Trial") -> str:
    """Return a name of that process, the same for all of its handles."""
    return f"{hash(actor(trial)):x}"


def has_free_process(controller: Any) -> bool:
    """Return whether Tune has a process whose trial has ended, and that another trial may have."""
    return bool(controller._actor_cache.num_cached_objects)


def waits_for_room(controller: Any, trial: "Trial") -> bool:
    """Return whether Tune asked for a process for a trial, and Ray has not begun to start it."""
    tracked = controller._trial_to_actor.get(trial)
    return tracked is not None and not controller._actor_manager.is_actor_started(tracked)


def end_free_processes(controller: Any) -> None:
    """Make Tune end the processes whose trials have ended, and free what they take."""
    controller._cleanup_cached_actors(force_all=True)


def error_files(trial: "Trial") -> tuple[str | None, str | None]:
    """Return where Tune wrote what ended a trial's run: the pickled exception, and its text."""
    return trial.pickled_error_file, trial.error_file


def do_not_block_for_trials() -> None:
    """Make the Tune of this process go on with its loop while no trial runs and the searcher has none to give.

    By itself it asks the searcher again and again for ten minutes, and ends no process meanwhile.
    """
    from ray.tune.execution.tune_controller import TuneController

    controller_class: Any = TuneController
    update = getattr(controller_class._update_trial_queue, "__wrapped__", controller_class._update_trial_queue)

    def once(controller: Any, blocking: bool = False, timeout: int = 600) -> Any:
        return update(controller, blocking=False, timeout=timeout)

    once.__wrapped__ = update  # type: ignore[attr-defined]
    controller_class._update_trial_queue = once


def change_errors_of_processes(change: Callable[[Exception], Exception]) -> None:
    """Make the Tune of this process see what `change` makes of each error that ended a trial's process or call."""
    from ray.air.execution._internal import RayActorManager
    from ray.tune.execution import tune_controller

    class Actors(RayActorManager):
        def _actor_task_failed(self, tracked_actor_task: Any, exception: Exception) -> None:
            super()._actor_task_failed(tracked_actor_task, change(exception))

    module: Any = tune_controller
    module.RayActorManager = Actors


def change_failed_reuse(error: Callable[[], Exception]) -> None:
    """Make the Tune of this process fail a trial, by this error, whose process could not end the trial before."""
    from ray.tune.execution.tune_controller import TuneController

    def heard(controller: Any, trial: Any, success: bool) -> None:
        if success:
            handed_over(controller, trial, success)
            return
        controller._resetting_trials.remove(trial)
        controller._trial_task_failure(trial, exception=error())

    controller_class: Any = TuneController
    handed_over = getattr(controller_class._on_trial_reset, "__wrapped__", controller_class._on_trial_reset)
    heard.__wrapped__ = handed_over  # type: ignore[attr-defined]
    controller_class._on_trial_reset = heard
