"""What a Ray of a study's own uses of Ray and Ray does not promise: its parts, its processes, Tune's classes of actors.

What fails here is to be mended in `study/upstream/ray_internals.py`; what the patches do to a running Ray is shown by
`tests/sweep/test_processes.py`.
"""

import inspect
from contextlib import suppress

import pytest
from contract import contract

from study.upstream import ray_internals

OWN_RAY = "a study's own Ray, which starts what trials need and nothing else (study/sweep/ray_session.py)"
READY = "trials that begin in processes that are ready (study/sweep/driver.py)"


def test_a_node_starts_its_parts_by_methods_that_can_be_left_out() -> None:
    with contract(
        "ray", "Node.start_monitor(), start_api_server(...) and start_log_monitor(), made by ray.init", OWN_RAY
    ):
        from ray._private import node, worker

        assert not [*inspect.signature(node.Node.start_monitor).parameters][1:]
        assert not [*inspect.signature(node.Node.start_log_monitor).parameters][1:]
        server = inspect.signature(node.Node.start_api_server)
        assert all(parameter.kind is parameter.KEYWORD_ONLY for parameter in [*server.parameters.values()][1:])
        assert "ray._private.node.Node(" in inspect.getsource(inspect.unwrap(worker.init))
        assert "self._webui_url" in inspect.getsource(node.Node.start_api_server)


def test_the_raylet_is_started_by_one_function_with_an_option_for_its_first_processes() -> None:
    with contract("ray", "services.start_ray_process(command, process_type, env_updates=...)", OWN_RAY):
        from ray._private import ray_constants, services

        command, process_type = [*inspect.signature(services.start_ray_process).parameters][:2]
        assert (command, process_type) == ("command", "process_type")
        assert "env_updates" in inspect.signature(services.start_ray_process).parameters
        source = inspect.getsource(services.start_raylet)
        assert ray_internals.PRESTART in source
        assert "start_ray_process(" in source
        assert ray_internals.RAYLET == ray_constants.PROCESS_TYPE_RAYLET


def test_an_agent_without_dashboard_serves_nothing() -> None:
    with contract("ray", "utils.get_dashboard_dependency_error(), asked at each start", OWN_RAY):
        from ray._private import services, utils

        assert inspect.signature(utils.get_dashboard_dependency_error).parameters == {}
        assert "ray._private.utils.get_dashboard_dependency_error()" in inspect.getsource(services.start_raylet)


def test_everything_is_as_ray_has_it_afterwards() -> None:
    from ray._private import node, services, utils

    def parts() -> list[object]:
        return [node.Node, services.start_ray_process, utils.get_dashboard_dependency_error]

    theirs = parts()
    with suppress(OSError), ray_internals.without_spare_parts(2, {}, logs=False):
        ours = parts()
        raise OSError("Ray cannot start")
    assert all(part is not their for part, their in zip(ours, theirs, strict=True))
    assert parts() == theirs


def test_tune_asks_its_module_for_the_classes_of_its_actors(monkeypatch: pytest.MonkeyPatch) -> None:
    with contract("ray", "tune_controller._ActorClassCache with get(trainable), made in TuneController", READY):
        from ray.tune.execution import tune_controller
        from ray.tune.execution.class_cache import _ActorClassCache

        monkeypatch.setattr(tune_controller, "_ActorClassCache", _ActorClassCache)  # puts it back afterwards
        assert [*inspect.signature(_ActorClassCache.get).parameters] == ["self", "trainable_cls"]
        assert "self._class_cache = _ActorClassCache()" in inspect.getsource(tune_controller.TuneController.__init__)
        assert set(_ActorClassCache.__dict__) & {"get", "put"} == {"get"}
        ray_internals.let_trials_inherit_environment()
        classes = tune_controller._ActorClassCache()

        class Trainable:
            pass

        assert classes.get(Trainable) is classes.get(Trainable)
        assert hasattr(classes.get(Trainable), "remote")
