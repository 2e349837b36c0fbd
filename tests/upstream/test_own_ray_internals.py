"""What a Ray of a driver's own uses of Ray and Ray does not promise: its parts, the waits of its start, its end.

What fails here is to be mended in `study/upstream/ray_internals.py`; what the patches do to a running Ray is shown
by `tests/sweep/test_processes.py`, `tests/sweep/test_own_ray.py` and `tests/e2e/test_ray_ends.py`.
"""

import inspect
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from contract import contract
from packaging.version import Version

from study.upstream import ray_internals
from study.upstream.environment import SETTINGS, ProcessKind

OWN_RAY = "a study's own Ray, which starts what trials need and nothing else (study/sweep/own_ray.py)"
PATIENCE = "a start of Ray that waits for a busy machine (study/sweep/own_ray.py)"
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


def test_the_raylet_is_started_by_one_function_with_options_for_its_first_processes_and_its_agents() -> None:
    with contract("ray", "services.start_ray_process(command, process_type, env_updates=...).process", OWN_RAY):
        from ray._private import ray_constants, services

        command, process_type = [*inspect.signature(services.start_ray_process).parameters][:2]
        assert (command, process_type) == ("command", "process_type")
        assert "env_updates" in inspect.signature(services.start_ray_process).parameters
        source = inspect.getsource(services.start_raylet)
        for option in (ray_internals.PRESTART, *ray_internals.AGENTS, "--session_dir=", "--node_id="):
            assert option in source
        assert "start_ray_process(" in source
        assert ray_internals.RAYLET == ray_constants.PROCESS_TYPE_RAYLET
        assert "process" in services.ProcessInfo._fields


def test_agents_write_their_ports_into_files_by_these_names(tmp_path: Path) -> None:
    with contract("ray", "persist_port and wait_for_persisted_port of four named ports, -1 for none", OWN_RAY):
        import ray._raylet as raylet

        node = "a" * 56
        ray_internals._without_agents([f"--session_dir={tmp_path}", f"--node_id={node}"])
        assert len([*tmp_path.iterdir()]) == 4
        for port in ray_internals.WAITED_PORTS:
            name = getattr(raylet, f"{port}_PORT_NAME")
            assert raylet.wait_for_persisted_port(str(tmp_path), node, name, timeout_ms=0) == ray_internals.NO_PORT


@pytest.mark.slow
def test_what_is_in_the_agents_place_ends_with_its_input() -> None:
    with subprocess.Popen(ray_internals.IN_THEIR_PLACE, stdin=subprocess.PIPE) as process:
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(timeout=0.5)
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(timeout=100) == 0


def test_a_start_waits_by_two_functions_that_are_looked_up_at_each_call() -> None:
    with contract("ray", "node.wait_for_persisted_port, services.get_node, which raises RuntimeError", PATIENCE):
        from ray._private import node, services

        assert [*inspect.signature(services.get_node).parameters] == ["gcs_address", "node_id"]
        source = inspect.getsource(node.Node)
        assert "ray._private.services.get_node(" in source
        assert "except RuntimeError" in source
        assert "= wait_for_persisted_port(" in source
        assert Path(node.get_port_filename("a" * 56, "name")).name.startswith("name_")


NEWER = {"RAY_gcs_server_port_wait_time_s"}
"""Settings that the lowest Ray that is allowed does not have."""


def test_ray_knows_the_settings_that_a_busy_machine_needs() -> None:
    """A misspelt one would be ignored without a word."""
    with contract("ray", "its settings RAY_..., read by its own programs", PATIENCE):
        import ray

        raylet = (Path(ray.__file__).parent / "core" / "src" / "ray" / "raylet" / "raylet").read_bytes()
        python = "".join(
            (Path(ray.__file__).parent / "_private" / name).read_text(encoding="utf-8") for name in ("node.py",)
        )
        names = {one.variable for one in SETTINGS if {ProcessKind.OWN_RAY, ProcessKind.LOCAL_NODE} & one.parts}
        lower = {name for name in names if name.removeprefix("RAY_").islower()}
        assert len(lower) > 5
        unknown = {name for name in lower if name.encode() not in raylet and name not in python}
        assert unknown == (set() if Version(ray.__version__) >= Version("2.60") else unknown & NEWER)


def test_a_session_is_kept_where_it_is_told(tmp_path: Path) -> None:
    def started(name: str, process: object) -> None: ...

    def wait(there: Callable[[], bool]) -> None: ...

    with contract("ray", "the variable RAY_TMPDIR, worker.shutdown at exit", OWN_RAY):
        import ray
        from ray._common import utils
        from ray._private import worker

        with ray_internals.lean_node(2, {}, started, wait, tmp_path, logs=False):
            assert utils.get_default_ray_temp_dir() == str(tmp_path / ray_internals.BELOW)
        assert ray_internals.PLACE not in os.environ
        assert "atexit.register(shutdown" in inspect.getsource(worker)
        assert worker.shutdown is ray.shutdown


def test_no_environment_is_asked_of_a_ray_without_agents(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """In a Ray job, or where a hook of the user's would make one."""

    def started(name: str, process: object) -> None: ...

    def wait(there: Callable[[], bool]) -> None: ...

    with contract("ray", "RAY_JOB_CONFIG_JSON_ENV_VAR, RAY_RUNTIME_ENV_HOOK", OWN_RAY):
        from ray._private import ray_constants, worker

        names = {worker.RAY_JOB_CONFIG_JSON_ENV_VAR, ray_constants.RAY_RUNTIME_ENV_HOOK}
        for name in names:
            monkeypatch.setenv(name, "{}")
        with ray_internals.lean_node(2, {}, started, wait, tmp_path, logs=False):
            assert not names & os.environ.keys()
        assert [os.environ[name] for name in names] == ["{}", "{}"]


def test_everything_is_as_ray_has_it_afterwards(tmp_path: Path) -> None:
    from ray._private import node, services, utils

    def parts() -> list[object]:
        return [
            node.Node,
            node.wait_for_persisted_port,
            services.start_ray_process,
            services.get_node,
            services.ConsolePopen,
            utils.set_kill_on_parent_death_linux,
        ]

    def started(name: str, process: object) -> None: ...

    def wait(there: Callable[[], bool]) -> None: ...

    theirs = parts()
    with suppress(OSError), ray_internals.lean_node(2, {}, started, wait, tmp_path, logs=False):
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


@pytest.mark.slow
def test_a_process_of_rays_ends_with_the_one_that_started_it() -> None:
    """Even where that ended before it could ask for it; and it is the command that it was given, without the option for
    the script that it is in the place of."""
    start = [sys.executable, "-I", "-S", ray_internals.end_with_parent.__file__, "python"]
    parent = f"""
import os, subprocess, sys, time
open("/proc/self/comm", "w").write("python")
print(subprocess.Popen([*{start!r}, "/bin/sleep", "--language=PYTHON", "120"]).pid, flush=True)
time.sleep(120)
"""
    with subprocess.Popen([sys.executable, "-c", parent], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        child = psutil.Process(int(process.stdout.readline()))
        deadline = time.monotonic() + 100
        while child.cmdline() != ["/bin/sleep", "120"]:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        process.kill()
        assert psutil.wait_procs([child], timeout=100)[1] == []
    alone = subprocess.run([*start[:-1], "another", "/bin/sleep", "120"], timeout=100, check=False)
    assert alone.returncode == 0, "at once"


def test_the_command_of_a_raylets_processes_begins_with_a_script_that_can_be_left_out() -> None:
    with contract("ray", "--python_worker_command=PYTHON .../setup_worker.py SCRIPT of its raylet", OWN_RAY):
        import ray
        from ray._private import services, utils

        workers = Path(ray.__file__).parent / "_private" / "workers"
        assert (workers / ray_internals.SETUP).exists()
        source = inspect.getsource(services.start_raylet)
        assert ray_internals.WORKER in source
        setup = str(workers / ray_internals.SETUP)
        for folder in ("", "with blanks/"):
            words = [sys.executable, setup.replace("_private/", f"_private/{folder}"), "script.py", "--a=1"]
            given = f"{ray_internals.WORKER}{subprocess.list2cmdline(words)}"
            (made,) = ray_internals._ending_with_it([given])
            assert made.endswith(f"end_with_parent.py raylet {sys.executable} script.py --a=1")
        assert "set_kill_on_parent_death_linux()" in inspect.getsource(services.start_ray_process)
        assert callable(utils.set_kill_on_parent_death_linux)


def test_rays_own_lines_are_printed_by_a_thread_that_is_found_by_its_name() -> None:
    with contract("ray", "worker.listen_error_messages, begun by ray.init", "no coloured lines in a quiet study"):
        from ray._private import worker

        assert "target=listen_error_messages" in inspect.getsource(worker.connect)
        before = worker.listen_error_messages
        with ray_internals.without_rays_own_lines(logs=False):
            stopped = threading.Event()
            stopped.set()
            worker.listen_error_messages(None, stopped)
        assert worker.listen_error_messages is before
