"""Everything of Ray that this package uses and that Ray does not promise to keep, tried on the installed Ray.

What fails here is to be mended in `study/upstream/ray_internals.py`; the message says who needs it. What the patches do
to a running Ray is shown by `tests/sweep/test_ray_session.py` and `tests/e2e`.
"""

import ast
import inspect
import logging
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from contract import contract
from helpers import ROOT
from ray import ActorID
from ray.actor import ActorHandle
from ray.exceptions import OutOfMemoryError, RayActorError
from ray.tune.experiment import Trial
from ray.tune.registry import register_trainable

from study.sweep import memory_kills
from study.upstream import ray_internals

LOOPBACK = "a Ray of one's own and `study cluster up`, which must listen on loopback alone"
CLUSTER = "study cluster up"
JOBS = "study status, list and doctor of a cluster"
SCHEDULER = "ReportingScheduler in study/sweep/adapters.py"

with contract("ray", "the modules of TuneController and RayActorManager", SCHEDULER):
    from ray.air.execution import FixedResourceManager, ResourceRequest
    from ray.air.execution._internal import RayActorManager
    from ray.air.execution._internal.tracked_actor_task import TrackedActorTask
    from ray.train._internal.storage import StorageContext
    from ray.tune.execution import tune_controller
    from ray.tune.search.search_algorithm import SearchAlgorithm


def test_a_broken_contract_names_version_and_who_depends_on_it() -> None:
    message = r"ray \d+\.\d+\.\d+ does not keep: a thing\. Needed by: a command\. Found: AttributeError: gone"
    with pytest.raises(pytest.fail.Exception, match=message), contract("ray", "a thing", "a command"):
        raise AttributeError("gone")


def test_loopback_addresses_are_replaced_by_one_function_that_is_looked_up_at_each_call() -> None:
    with contract("ray", "services.resolve_ip_for_localhost(host), called by that name", LOOPBACK):
        from ray._private import services, worker
        from ray.scripts import scripts

        assert list(inspect.signature(services.resolve_ip_for_localhost).parameters) == ["host"]
        for caller in (inspect.unwrap(worker.init), scripts.start.callback):
            assert "services.resolve_ip_for_localhost(" in inspect.getsource(caller)


def test_ray_is_told_the_address_that_it_listens_at() -> None:
    with contract("ray", "the argument _node_ip_address of ray.init", LOOPBACK):
        from ray._private import worker

        (name,) = ray_internals.listening_at("127.0.0.1")
        assert f'"{name}"' in inspect.getsource(inspect.unwrap(worker.init))


def test_ray_start_takes_more_than_one_node() -> None:
    with contract("ray", "ray_constants.ENABLE_RAY_CLUSTER, read when `ray start` runs", CLUSTER):
        from ray._private import ray_constants
        from ray.scripts import scripts

        assert isinstance(ray_constants.ENABLE_RAY_CLUSTER, bool)
        assert "ray_constants.ENABLE_RAY_CLUSTER" in inspect.getsource(scripts.start.callback)


def test_rays_command_line_has_the_options_that_nodes_are_started_with() -> None:
    with contract("ray", "ray.scripts.scripts.main and the options of `ray start`", CLUSTER):
        from ray.scripts.scripts import cli, main

        assert inspect.signature(main).parameters == {}
        options = {option for parameter in cli.commands["start"].params for option in parameter.opts}
        assert options >= {"--node-ip-address", "--temp-dir", "--block", "--head"}
        assert options >= {f"--{port}" for port in ray_internals.AGENTS_PORTS}


def test_a_job_knows_that_it_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    with contract("ray", "the variable that jobs are given", "study submit: a home that would end with the job"):
        from ray._private.runtime_env import constants

        monkeypatch.delenv(constants.RAY_JOB_CONFIG_JSON_ENV_VAR, raising=False)
        assert not ray_internals.is_job()
        monkeypatch.setenv(constants.RAY_JOB_CONFIG_JSON_ENV_VAR, "{}")
        assert ray_internals.is_job()


def test_ray_counts_this_machines_processors_and_gpus() -> None:
    with contract("ray", "get_num_cpus and get_accelerator_manager_for_resource", "study doctor"):
        assert 1 <= ray_internals.cpus() <= (os.cpu_count() or 1)
        assert ray_internals.gpus() == torch.cuda.device_count()


def test_the_jobs_client_asks_the_dashboard_for_its_nodes() -> None:
    with contract("ray", f"JobSubmissionClient._do_request(method, endpoint), GET {ray_internals.NODES}", JOBS):
        from ray.dashboard.modules.node import node_head
        from ray.job_submission import JobSubmissionClient

        inspect.signature(JobSubmissionClient._do_request).bind(None, "GET", ray_internals.NODES)
        path, _, query = ray_internals.NODES.partition("?")
        source = inspect.getsource(node_head)
        assert f'routes.get("{path}")' in source
        assert all(f'"{word}"' in source for word in query.split("=")), "the page has no such view"


def test_the_jobs_client_speaks_by_the_loggers_that_are_hushed() -> None:
    with contract("ray", "the loggers of the client of jobs", "quiet study submit, logs and status"):
        from ray.dashboard.modules import dashboard_sdk
        from ray.dashboard.modules.job import sdk

        assert {module.logger.name for module in (dashboard_sdk, sdk)} <= set(ray_internals.CLIENT_LOGGERS)
        assert all(name in logging.Logger.manager.loggerDict for name in ray_internals.CLIENT_LOGGERS)


@pytest.fixture
def controller(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Tune's own, as `Tuner.fit` makes it; no Ray runs."""
    with contract("ray", "TuneController takes its RayActorManager from its module", SCHEDULER):
        monkeypatch.setattr(tune_controller, "RayActorManager", RayActorManager)  # puts it back afterwards
        memory_kills.survive()
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
        assert not ray_internals.has_free_process(controller)
        controller._actor_cache.cache_object("any", "a process")
        assert ray_internals.has_free_process(controller)
        assert not ray_internals.waits_for_room(controller, trial)
        tracked = controller._actor_manager.add_actor(object, {}, ResourceRequest([{"CPU": 1}]))
        controller._trial_to_actor[trial] = tracked
        assert ray_internals.waits_for_room(controller, trial)
        controller._actor_manager._live_actors_to_ray_actors_resources[tracked] = ()
        assert not ray_internals.waits_for_room(controller, trial)


@pytest.mark.parametrize("status", [Trial.TERMINATED, Trial.ERROR])
def test_tune_lets_go_of_a_trial_that_has_ended(controller: Any, trial: Trial, status: str) -> None:
    kept = "TuneController._trials, _stopped_trials, _failed_trials, _trials_to_cache, _trial_metadata, _trial_to_actor"
    with contract("ray", kept, SCHEDULER):
        controller._search_alg, other = SearchAlgorithm(), Trial("nothing", storage=trial.storage)
        for added in (trial, other):
            controller.add_trial(added)
        controller._set_trial_status(trial, status)
        controller._live_trials.discard(trial)
        controller._trial_to_actor[trial] = "a process that is yet to end"
        assert ray_internals.ended_trials(controller) == set()
        del controller._trial_to_actor[trial]
        assert ray_internals.ended_trials(controller) == {trial}
        controller._trial_metadata[trial.trial_id] = "its state"
        ray_internals.forget(controller, {trial})
        assert ray_internals.ended_trials(controller) == set()
        assert controller.get_trials() == [other]
        assert trial.trial_id not in controller._get_trial_checkpoints()
        assert not controller.is_finished()


def test_a_trial_of_tune_knows_its_process_and_where_its_error_is(trial: Trial) -> None:
    with contract("ray", "Trial.temporary_state.ray_actor, error_file, pickled_error_file", SCHEDULER):
        assert ray_internals.actor(trial) is None
        assert ray_internals.error_files(trial) == (None, None)
        trial.run_metadata.error_filename, trial.run_metadata.pickled_error_filename = "text", "pickled"
        pickled, text = ray_internals.error_files(trial)
        assert (Path(str(pickled)).name, Path(str(text)).name) == ("pickled", "text")
    with contract("ray", "ActorHandle._actor_id, an id with hex()", SCHEDULER):
        assert isinstance(ActorHandle._actor_id, property)
        assert callable(ActorID.hex)


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
        assert [type(error) for error in heard] == [memory_kills.EndedForMemory]
        assert issubclass(memory_kills.EndedForMemory, RayActorError)


ROOMS = ("sweep", "cluster", "tracking", "commands", "doctor")
"""Those that use Ray or MLflow."""

HIDDEN = re.compile(r"ray\.(_|[\w.]*\._|scripts|dashboard|air|(tune|train)\.execution)")
"""Modules of Ray that are not for its users."""


def test_no_other_module_touches_what_ray_does_not_promise() -> None:
    """Neither by import nor by an argument or attribute whose name begins with `_` of an object that is not its own."""
    touches = [
        f"{path.relative_to(ROOT)}:{node.lineno}: {name}"
        for room in ROOMS
        for path in (ROOT / "study" / room).rglob("*.py")
        for node, name in hidden(path)
        if (path.name, name) not in MLFLOWS
    ]
    assert touches == []


MLFLOWS = {
    ("bounded.py", "_get_request_session"),
    ("connection.py", "_tracking_client"),
    ("database.py", "_engine_map"),
    ("database.py", "_hard_delete_logged_model"),
    ("database.py", "_hard_delete_run"),
    ("database.py", "_hard_delete_experiment"),
}
"""What `tests/tracking/test_mlflow_internals.py` holds."""


def hidden(path: Path) -> Iterator[tuple[Any, str]]:
    """What a module imports or reads that is not its own and not public, with its place."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((node, alias.name) for alias in node.names if HIDDEN.match(alias.name))
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = (f"{node.module}.{alias.name}" for alias in node.names)
            yield from ((node, name) for name in names if HIDDEN.match(name))
        elif isinstance(node, ast.keyword) and node.arg and node.arg.startswith("_"):
            yield node, node.arg
        elif isinstance(node, ast.Attribute) and re.match("_[^_]", node.attr) and node.attr != "_replace":
            own = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
            above = isinstance(node.value, ast.Call) and getattr(node.value.func, "id", None) == "super"
            if not own and not above:
                yield node, node.attr
