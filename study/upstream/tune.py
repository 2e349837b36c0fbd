"""What of Ray Tune is used, or left out, that Ray does not promise to keep: controller and trials, loop, reports."""

from collections.abc import Callable, Collection
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ray.tune.experiment import Trial
    from ray.tune.search import Searcher


# Everything of Tune's controller and trials that this package uses and that Ray does not promise to keep.
#
# `tests/upstream/test_tune_controller.py` tries each against the installed Ray and names what depends on it. Ray is
# imported inside the functions only.


def actor(trial: "Trial") -> Any:
    """The handle of the process that a running trial of Tune has."""
    return trial.temporary_state.ray_actor


def actor_id(trial: "Trial") -> str:
    """Ray's id of that process."""
    return str(actor(trial)._actor_id.hex())


def has_free_process(controller: Any) -> bool:
    """Return whether Tune has a process whose trial has ended, and that another may have."""
    return bool(controller._actor_cache.num_cached_objects)


def waits_for_room(controller: Any, trial: "Trial") -> bool:
    """Return whether Tune asked for a process for a trial, and Ray has not begun to start it."""
    tracked = controller._trial_to_actor.get(trial)
    return tracked is not None and not controller._actor_manager.is_actor_started(tracked)


def end_free_processes(controller: Any) -> None:
    """Have Tune end the processes whose trials have ended, and give back what they take."""
    controller._cleanup_cached_actors(force_all=True)


def ended_trials(controller: Any) -> set["Trial"]:
    """The trials that have ended, of those that Tune still keeps."""
    ended: set[Trial] = controller._stopped_trials | controller._failed_trials
    return ended - set(controller._trial_to_actor)


def forget(controller: Any, trials: Collection["Trial"]) -> None:
    """Have Tune let go of trials that have ended. By itself it keeps each, with statistics of all of its metrics, until
    the study ends: tens of kB per trial."""
    for kept in (controller._stopped_trials, controller._failed_trials, controller._trials_to_cache):
        kept.difference_update(trials)
    for trial in trials:
        controller._trial_metadata.pop(trial.trial_id, None)
    controller._trials[:] = [trial for trial in controller._trials if trial not in trials]


def error_files(trial: "Trial") -> tuple[str | None, str | None]:
    """Return where Tune wrote what ended a trial's run: the pickled exception, and its text."""
    return trial.pickled_error_file, trial.error_file


def do_not_block_for_trials() -> None:
    """Have the Tune of this process go on with its loop while no trial runs and the searcher has none to give. By
    itself it asks the searcher again and again for ten minutes, and ends no process meanwhile."""
    from ray.tune.execution.tune_controller import TuneController

    controller_class: Any = TuneController
    update = getattr(controller_class._update_trial_queue, "__wrapped__", controller_class._update_trial_queue)

    def once(controller: Any, blocking: bool = False, timeout: int = 600) -> Any:
        return update(controller, blocking=False, timeout=timeout)

    once.__wrapped__ = update  # type: ignore[attr-defined]
    controller_class._update_trial_queue = once


def change_errors_of_processes(change: Callable[[Exception], Exception]) -> None:
    """Have the Tune of this process see what `change` makes of each error that ended a trial's process or call."""
    from ray.air.execution._internal import RayActorManager
    from ray.tune.execution import tune_controller

    class Actors(RayActorManager):
        def _actor_task_failed(self, tracked_actor_task: Any, exception: Exception) -> None:
            super()._actor_task_failed(tracked_actor_task, change(exception))

    module: Any = tune_controller
    module.RayActorManager = Actors


def change_failed_reuse(error: Callable[[], Exception]) -> None:
    """Have the Tune of this process take a trial for failed, by this error, where the process that it was handed to
    could not end the trial before."""
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


# What Ray Tune does by itself for each trial and each report, as far as it is left out here.
#
# `tests/upstream/test_tune_trials.py` tries each touch against the installed Ray.
#
# By itself Tune asks Ray's head three times for the class that trials run, and unpickles it, so that no two trials wish
# for the same resources; it copies the experiment, brings it into the form of a command line and parses that; it asks
# the process twice what it is; and it keeps six statistics of each number of each report. That was a quarter of what a
# trial cost its driver.


@cache
def _classes() -> tuple[Any, Any]:
    """Subclasses of Tune's Trial and of its SearchGenerator."""
    from ray.tune.experiment import Trial
    from ray.tune.registry import get_trainable_cls
    from ray.tune.search.search_generator import SearchGenerator

    class PlainTrial(Trial):
        """A trial that is told what it runs, and keeps its last report alone."""

        def __init__(self, trainable: Any, *names: Any, **told: Any) -> None:
            self._trainable = trainable
            super().__init__(*names, stub=True, **told)  # a stub does not look for what it runs
            self.stub = False

        def get_trainable_cls(self) -> Any:
            return self._trainable

        def set_ray_actor(self, ray_actor: Any) -> None:
            self.temporary_state.ray_actor = ray_actor

        def update_last_result(self, result: dict[str, Any]) -> None:
            self.run_metadata.last_result = result

    class PlainTrials(SearchGenerator):
        """Makes a trial of what the searcher suggests, and of nothing else."""

        _trainable: Any = None

        def create_trial_if_possible(self, experiment_spec: dict[str, Any]) -> Any:
            trial_id = Trial.generate_id()
            config = self.searcher.suggest(trial_id)
            if config == self.searcher.FINISHED:
                self._finished = True
            if config is None or self._finished:
                return None
            self._trainable = self._trainable or get_trainable_cls(experiment_spec["run"])
            self._counter += 1
            return PlainTrial(
                self._trainable,
                experiment_spec["run"],
                config=config,
                trial_id=trial_id,
                storage=experiment_spec["storage"],
                trial_dirname_creator=experiment_spec["trial_dirname_creator"],
            )

    return PlainTrial, PlainTrials


def plain_trials(searcher: "Searcher") -> Any:
    """Return what a searcher suggests, as trials, for `TuneConfig.search_alg`. Of the experiment these take what is
    run, where that is stored and the names of their folders."""
    return _classes()[1](searcher)


def check_no_missing_arguments() -> None:
    """Have the Ray of this process compare a call without arguments with no signature: nearly all of a driver's are
    calls for the next report. One that lacks an argument would fail in the process that it is for."""
    from ray._common import signature

    module: Any = signature
    flatten = getattr(module.flatten_args, "__wrapped__", module.flatten_args)

    def flattened(parameters: Any, arguments: Any, named: Any) -> list[Any]:
        return list(flatten(parameters, arguments, named)) if arguments or named else []

    flattened.__wrapped__ = flatten  # type: ignore[attr-defined]
    module.flatten_args = flattened


def report_nothing_else() -> None:
    """Have the Tune of this process, which runs trials, add neither the trial's configuration nor the date, the machine
    and the times so far to each report: the driver would read them, and uses none."""
    from ray.tune import Trainable

    trainable: Any = Trainable
    trainable.get_auto_filled_metrics = lambda trial, *times, **more: {}
