"""Tune's trials and errors, as far as this package uses what Ray does not promise to keep of them.

What fails here is to be mended in `study/sweep/tune_adapters.py` or `study/upstream/ray_internals.py`; the message says
who needs it."""

import subprocess
import sys
from pathlib import Path

import pytest
from contract import contract
from ray.actor import ActorHandle
from ray.exceptions import RayTaskError
from ray.tune.experiment import Trial
from ray.tune.registry import register_trainable

from study.sweep.failures import PROCESS_DIED_FAILURE, TrialFailedError
from study.sweep.tune_adapters import actor_handle_of_trial, error_of_tune_trial

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("small_ray")]
SCHEDULER = "ReportingScheduler in study/sweep/tune_adapters.py"

with contract("ray", "the module of StorageContext", SCHEDULER):
    from ray.train._internal.storage import StorageContext


@pytest.fixture
def trial(tmp_path: Path) -> Trial:
    register_trainable("nothing", lambda config: None)
    storage = StorageContext(storage_path=str(tmp_path), experiment_dir_name="experiment", trial_dir_name="trial")
    return Trial("nothing", storage=storage)


def test_a_trial_of_tune_knows_its_process_and_its_error(trial: Trial) -> None:
    with contract("ray", "Trial.temporary_state.ray_actor, error_file, pickled_error_file", SCHEDULER):
        assert actor_handle_of_trial(trial) is None
        trial.init_local_path()
        trial.handle_error(ValueError("it broke"))
        assert "it broke" in str(error_of_tune_trial(trial))
        trial.handle_error(RayTaskError("train", "Traceback", TrialFailedError(PROCESS_DIED_FAILURE, "it broke")))
        error = error_of_tune_trial(trial)
        assert isinstance(error, RayTaskError)
        assert isinstance(error.cause, TrialFailedError)
        assert error.cause.failure == PROCESS_DIED_FAILURE
    with contract("ray", "handles of one actor are equal, and have one hash", SCHEDULER):
        assert {"__eq__", "__hash__"} <= vars(ActorHandle).keys()


def test_tune_hears_of_a_process_that_the_memory_monitor_ended_as_of_one_that_died() -> None:
    """By itself it ends; and so it does in a process that does not ask for this."""
    script = """
import sys
from ray.exceptions import OutOfMemoryError
from ray.air.execution import FixedResourceManager, ResourceRequest
from ray.air.execution._internal import RayActorManager
from ray.air.execution._internal.tracked_actor_task import TrackedActorTask
from study.upstream.ray_internals import count_memory_kills_as_deaths

def told():
    manager, request, heard = RayActorManager(FixedResourceManager({"CPU": 1})), ResourceRequest([{"CPU": 1}]), []
    tracked = manager.add_actor(object, {}, request)
    manager._resource_manager.request_resources(request)
    acquired = manager._resource_manager.acquire_resources(request)
    manager._live_actors_to_ray_actors_resources[tracked] = None, acquired
    task = TrackedActorTask(tracked, on_error=lambda _, error: heard.append(error))
    manager._actor_task_failed(task, OutOfMemoryError("the node was running low"))
    return heard

try:
    told()
except RuntimeError as error:
    assert isinstance(error.__cause__, OutOfMemoryError)
else:
    sys.exit("Tune takes it by itself: `count_memory_kills_as_deaths` is not needed any more")
for _ in range(2):
    count_memory_kills_as_deaths()
    (error,) = told()
    assert type(error) is OutOfMemoryError
    assert not error.preempted  # Tune looks
    assert str(error) == "the node was running low"
"""
    with contract("ray", "RayActorManager._actor_task_failed tells of each RayActorError", SCHEDULER):
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
