"""Tune's controller and its trials, as far as this package uses what Ray does not promise to keep of them.

What fails here is to be mended in `study/upstream/tune.py`; the message says who needs it."""

import inspect
from pathlib import Path
from typing import Any

import pytest
from contract import contract
from ray.actor import ActorHandle
from ray.exceptions import OutOfMemoryError, RayActorError
from ray.tune.experiment import Trial
from ray.tune.registry import register_trainable

from study.sweep import tune_errors
from study.upstream import tune

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("small_ray")]
SCHEDULER = "ReportingScheduler in study/sweep/adapters.py"

with contract("ray", "the modules of TuneController and RayActorManager", SCHEDULER):
    from ray.air.execution import FixedResourceManager, ResourceRequest
    from ray.air.execution._internal import RayActorManager
    from ray.air.execution._internal.tracked_actor_task import TrackedActorTask
    from ray.train._internal.storage import StorageContext
    from ray.tune.execution import tune_controller
    from ray.tune.search.search_algorithm import SearchAlgorithm


@pytest.fixture
def controller(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Tune's own, as `Tuner.fit` makes it."""
    with contract("ray", "TuneController takes its RayActorManager from its module", SCHEDULER):
        monkeypatch.setattr(tune_controller, "RayActorManager", RayActorManager)  # puts it back afterwards
        reset = tune_controller.TuneController._on_trial_reset
        monkeypatch.setattr(tune_controller.TuneController, "_on_trial_reset", reset)
        tune_errors.tell_them()
        storage = StorageContext(storage_path=str(tmp_path), experiment_dir_name="experiment")
        return tune_controller.TuneController(
            storage=storage, resource_manager_factory=lambda: FixedResourceManager({"CPU": 1}), reuse_actors=True
        )


@pytest.fixture
def trial(tmp_path: Path) -> Trial:
    register_trainable("nothing", lambda config: None)
    storage = StorageContext(storage_path=str(tmp_path), experiment_dir_name="experiment", trial_dir_name="trial")
    return Trial("nothing", storage=storage)


def test_tunes_controller_says_which_processes_are_free_and_which_are_waited_for(controller: Any, trial: Trial) -> None:
    with contract("ray", "TuneController._actor_cache, _trial_to_actor and _actor_manager.is_actor_started", SCHEDULER):
        assert not tune.has_free_process(controller)
        controller._actor_cache.cache_object("any", "a process")
        assert tune.has_free_process(controller)
        assert not tune.waits_for_room(controller, trial)
        tracked = controller._actor_manager.add_actor(object, {}, ResourceRequest([{"CPU": 1}]))
        controller._trial_to_actor[trial] = tracked
        assert tune.waits_for_room(controller, trial)
        controller._actor_manager._live_actors_to_ray_actors_resources[tracked] = ()
        assert not tune.waits_for_room(controller, trial)


def test_a_trial_of_tune_knows_its_process_and_where_its_error_is(trial: Trial) -> None:
    with contract("ray", "Trial.temporary_state.ray_actor, error_file, pickled_error_file", SCHEDULER):
        assert tune.actor(trial) is None
        assert tune.error_files(trial) == (None, None)
        trial.run_metadata.error_filename, trial.run_metadata.pickled_error_filename = "text", "pickled"
        pickled, text = tune.error_files(trial)
        assert (Path(str(pickled)).name, Path(str(text)).name) == ("pickled", "text")
    with contract("ray", "handles of one actor are equal, and have one hash", SCHEDULER):
        assert {"__eq__", "__hash__"} <= vars(ActorHandle).keys()


def test_tune_hears_of_a_process_that_the_memory_monitor_ended_as_of_one_that_died(controller: Any) -> None:
    heard: list[Exception] = []
    with contract("ray", "RayActorManager._actor_task_failed(tracked_actor_task, exception)", "memory.survive"):
        manager, request = controller._actor_manager, ResourceRequest([{"CPU": 1}])
        tracked = manager.add_actor(object, {}, request)
        manager._resource_manager.request_resources(request)
        manager._live_actors_to_ray_actors_resources[tracked] = (
            None,
            manager._resource_manager.acquire_resources(request),
        )
        task = TrackedActorTask(tracked, on_error=lambda _, error: heard.append(error))
        manager._actor_task_failed(task, OutOfMemoryError("the node was running low"))
        assert [type(error) for error in heard] == [tune_errors.MemoryKillError]
        assert issubclass(tune_errors.MemoryKillError, RayActorError)


def test_tune_tells_of_a_trial_whose_process_was_still_busy(controller: Any, trial: Trial) -> None:
    """As of one whose process died: by itself it tells nobody, and who waits for that trial waits for ever."""
    heard: list[tuple[Trial, type[BaseException]]] = []
    with contract("ray", "TuneController._on_trial_reset(trial, success), _resetting_trials", "sweep.tune_errors"):
        tune_errors.tell_them()  # again, as the second study of a process does
        controller._trial_task_failure = lambda trial, exception: heard.append((trial, type(exception)))
        controller._resetting_trials.add(trial)
        controller._on_trial_reset(trial, False)
        assert heard == [(trial, tune_errors.ProcessBusyError)]
        assert not controller._resetting_trials
        assert issubclass(tune_errors.ProcessBusyError, RayActorError)


def test_tune_ends_free_processes_and_does_not_block(controller: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A study whose turn it is not goes on with its loop, so that its processes end and requests are heard."""
    update = tune_controller.TuneController._update_trial_queue
    monkeypatch.setattr(tune_controller.TuneController, "_update_trial_queue", update)
    touched = "TuneController._cleanup_cached_actors(force_all), _update_trial_queue(blocking, timeout), _search_alg"
    with contract("ray", touched, SCHEDULER):
        ended: list[Any] = []
        controller._search_alg = SearchAlgorithm()
        tracked = controller._actor_manager.add_actor(object, {}, ResourceRequest([{"CPU": 1}]))
        controller._actor_cache.cache_object("any", tracked)
        controller._remove_actor = lambda tracked_actor: ended.append(tracked_actor)
        tune.end_free_processes(controller)
        assert ended == [tracked]
        assert not tune.has_free_process(controller)
        tune.do_not_block_for_trials()
        tune.do_not_block_for_trials()
        asked: list[None] = []
        monkeypatch.setattr(SearchAlgorithm, "next_trial", lambda self: asked.append(None))
        assert not controller._update_trial_queue(blocking=True)
        assert len(asked) == 1
        assert "self._update_trial_queue(blocking=" in inspect.getsource(tune_controller)
