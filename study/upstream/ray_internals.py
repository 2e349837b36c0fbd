"""Everything of Ray that this package uses and that Ray does not promise to keep: here and, for a Ray of a driver's
own, in `study.upstream.own_ray_internals`. No other module touches any of it.

`tests/upstream/test_ray_internals.py` tries each against the installed Ray and names what depends on it. Ray is
imported inside the functions only: some are called before its settings are made.
"""

import os
import signal
import threading
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ray.job_submission import JobSubmissionClient
    from ray.tune.experiment import Trial

NODES = "/nodes?view=summary"
"""What the head's dashboard answers with its nodes, see `study.cluster.nodes`."""

CLIENT_LOGGERS = ("ray", "ray.dashboard.modules.dashboard_sdk", "ray.dashboard.modules.job.sdk")
"""Loggers by which the client of Ray's jobs says what it uploads where."""


def stay_on_loopback() -> None:
    """Have this process's Ray take a loopback address as it is given: else it puts the machine's in its place, on which
    a cluster that `study cluster up` started does not listen, and one of this process's own would for everybody."""
    from ray._private import services

    services.resolve_ip_for_localhost = lambda host: host


def leave_signals_alone() -> None:
    """Have `ray.init` leave this process's handler of SIGTERM as it is; Ray's ends the process with exit status 15."""
    from ray._private import utils

    utils.set_sigterm_handler = lambda handler: None


def take_signals_back() -> None:
    """To be called after `ray.init`, in whose C++ a handler of SIGTERM comes before this process's: it prints, and ends
    the process by SIGABRT three seconds later."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, signal.getsignal(signal.SIGTERM))


AGENTS_PORTS = (
    "dashboard-agent-listen-port",
    "dashboard-agent-grpc-port",
    "metrics-export-port",
    "runtime-env-agent-port",
)
"""Options of `ray start`. What is not given, the agents choose and write into files, and Ray's node ends itself where a
busy machine lets them take longer than 15 s."""

BELOW = "r"
"""Name of Ray's own folder in a private one. Ray opens the folder that it is given to everybody, so it is not given the
private one."""


def listening_at(host: str) -> dict[str, Any]:
    """The arguments of `ray.init` that have the processes of a new Ray listen at an address."""
    return {"_node_ip_address": host}


def let_trials_inherit_environment() -> None:
    """Have the Tune of this process run trials in whatever processes the node has ready. By itself it asks for ones
    with a variable for PyTorch Lightning in their environment, which Ray would yet have to start."""
    import ray
    from ray.tune.execution import tune_controller

    class Classes:
        def __init__(self) -> None:
            self._remote: dict[Any, Any] = {}

        def get(self, trainable: Any) -> Any:
            if trainable not in self._remote:
                self._remote[trainable] = ray.remote(trainable)
            return self._remote[trainable]

    module: Any = tune_controller
    module._ActorClassCache = Classes


def allow_several_nodes() -> None:
    """Have `ray start` take more than one node though its processes are told to keep to loopback."""
    from ray._private import ray_constants

    ray_constants.ENABLE_RAY_CLUSTER = True


def command() -> None:
    """Ray's command line, in this process and with its arguments."""
    from ray.scripts.scripts import main

    main()


def is_job() -> bool:
    """Whether this process was started by Ray's jobs."""
    return "RAY_JOB_CONFIG_JSON_ENV_VAR" in os.environ


def cpus() -> int:
    """How many processors of this machine Ray would place trials on, a container's limits considered."""
    from ray._private.utils import get_num_cpus

    return int(get_num_cpus(override_docker_cpu_warning=True))


def gpus() -> int:
    """How many GPUs of this machine Ray would place trials on."""
    from ray._private.accelerators import get_accelerator_manager_for_resource

    manager = get_accelerator_manager_for_resource("GPU")
    if manager is None:
        return 0
    visible = manager.get_current_process_visible_accelerator_ids()
    there = int(manager.get_current_node_num_accelerators())
    return there if visible is None else min(there, len(visible))


def nodes(client: "JobSubmissionClient") -> Any:
    """The dashboard's answer about its nodes, as they are now.

    Raises:
        RuntimeError, OSError: it does not answer.
    """
    fresh = f"{NODES}&nocache=1"  # the cache answers with what was true at the question before this one
    return client._do_request("GET", fresh).json()


def actor(trial: "Trial") -> Any:
    """The handle of the process that a running trial of Tune has."""
    return trial.temporary_state.ray_actor


def actor_id(trial: "Trial") -> str:
    """Ray's id of that process."""
    return str(actor(trial)._actor_id.hex())


def has_free_process(controller: Any) -> bool:
    """Whether Tune has a process whose trial has ended, and that another may have."""
    return bool(controller._actor_cache.num_cached_objects)


def waits_for_room(controller: Any, trial: "Trial") -> bool:
    """Whether Tune asked for a process for a trial, and Ray has not begun to start it."""
    tracked = controller._trial_to_actor.get(trial)
    return tracked is not None and not controller._actor_manager.is_actor_started(tracked)


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
    """Where Tune wrote what ended a trial's run: the pickled exception, and its text."""
    return trial.pickled_error_file, trial.error_file


def change_errors_of_processes(change: Callable[[Exception], Exception]) -> None:
    """Have the Tune of this process see what `change` makes of each error that ended a trial's process or call."""
    from ray.air.execution._internal import RayActorManager
    from ray.tune.execution import tune_controller

    class Actors(RayActorManager):
        def _actor_task_failed(self, tracked_actor_task: Any, exception: Exception) -> None:
            super()._actor_task_failed(tracked_actor_task, change(exception))

    module: Any = tune_controller
    module.RayActorManager = Actors
