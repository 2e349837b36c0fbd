"""What a Ray of a driver's own uses of Ray and Ray does not promise: its parts, the waits of its start, its end.

What fails here is to be mended in `study/upstream/ray_internals.py`; what the patches do to a running Ray is shown
by `tests/sweep/test_own_ray.py` and `tests/e2e/test_ray_ends.py`.
"""

import inspect
import subprocess
import threading
from pathlib import Path

import pytest
from contract import contract
from packaging.version import Version

from study.upstream import ray_internals
from study.upstream.environment import VARIABLES_OF_PROCESS_KINDS, ProcessKind

OWN_RAY = "a study's own Ray, which starts what trials need and nothing else (study/sweep/own_ray.py)"
PATIENCE = "a start of Ray that waits for a busy machine (study/sweep/own_ray.py)"

NEWER = {"RAY_gcs_server_port_wait_time_s"}
"""Settings that the lowest Ray that is allowed does not have."""


def test_ray_knows_the_settings_that_a_busy_machine_needs() -> None:
    """A misspelt one would be ignored without a word."""
    with contract("ray", "its settings RAY_..., read by its own programs", PATIENCE):
        import ray

        raylet = (Path(ray.__file__).parent / "core" / "src" / "ray" / "raylet" / "raylet").read_bytes()
        python = (Path(ray.__file__).parent / "_private" / "node.py").read_text(encoding="utf-8")
        names = {
            one.variable
            for one in VARIABLES_OF_PROCESS_KINDS
            if {ProcessKind.OWN_RAY, ProcessKind.LOCAL_NODE} & one.process_kinds
        }
        lower = {name for name in names if name.removeprefix("RAY_").islower()}
        assert len(lower) > 5
        unknown = {name for name in lower if name.encode() not in raylet and name not in python}
        assert unknown == (set() if Version(ray.__version__) >= Version("2.60") else unknown & NEWER)


def test_a_session_is_kept_where_it_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with contract("ray", "the variable RAY_TMPDIR, worker.shutdown at exit", OWN_RAY):
        import ray
        from ray._common import utils
        from ray._private import worker

        monkeypatch.setenv(ray_internals.RAY_FOLDER_VARIABLE, str(tmp_path))
        assert Path(utils.get_ray_address_file(None)).parent == tmp_path / ray_internals.RAY_SUBFOLDER
        assert "atexit.register(shutdown" in inspect.getsource(worker)
        assert worker.shutdown is ray.shutdown


def test_a_ray_of_ones_own_is_not_told_of_a_jobs_environment() -> None:
    with contract("ray", "RAY_JOB_CONFIG_JSON_ENV_VAR, RAY_RUNTIME_ENV_HOOK", OWN_RAY):
        from ray._private import ray_constants, worker

        names = {worker.RAY_JOB_CONFIG_JSON_ENV_VAR, ray_constants.RAY_RUNTIME_ENV_HOOK}
        assert names == {ray_internals.RAY_JOB_VARIABLE, ray_internals.RUNTIME_ENV_HOOK_VARIABLE}


def test_rays_processes_are_started_by_a_class_that_is_looked_up_at_each_start() -> None:
    with contract("ray", "services.ConsolePopen, called by start_ray_process", "signals to a group reach no Ray"):
        from ray._private import services

        assert issubclass(services.ConsolePopen, subprocess.Popen)
        assert "= ConsolePopen(" in inspect.getsource(services.start_ray_process)
        before = services.ConsolePopen
        with ray_internals.start_ray_apart_and_quiet(logs=True):
            assert services.ConsolePopen is not before
        assert services.ConsolePopen is before


def test_rays_own_lines_are_printed_by_a_thread_that_is_found_by_its_name() -> None:
    with contract("ray", "worker.listen_error_messages, begun by ray.init", "no coloured lines in a quiet study"):
        from ray._private import worker

        assert "target=listen_error_messages" in inspect.getsource(worker.connect)
        before = worker.listen_error_messages
        with ray_internals.start_ray_apart_and_quiet(logs=False):
            stopped = threading.Event()
            stopped.set()
            worker.listen_error_messages(None, stopped)
        assert worker.listen_error_messages is before
