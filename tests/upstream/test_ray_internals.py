"""Everything of Ray that this package uses and that Ray does not promise to keep, tried on the installed Ray.

What fails here is to be mended in `study/upstream/ray_internals.py`; the message says who needs it. What the patches do
to a running Ray is shown by `tests/sweep/test_ray_runtime.py` and `tests/e2e`.
"""

import ast
import inspect
import logging
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest
from contract import contract
from helpers import ROOT

from study.upstream import ray_internals
from study.upstream.ray_internals import differing_versions

LOOPBACK = "a Ray of one's own and `study cluster up`, which must listen on loopback alone"
CLUSTER = "study cluster up"
JOBS = "study status, list and doctor of a cluster"


def test_without_what_ray_may_drop_a_node_is_started_as_ray_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """It then prints, and a signal to the driver's group ends it; no study fails."""
    from ray._private import services, worker

    for module, name in ((services, "ConsolePopen"), (worker, "listen_error_messages")):
        monkeypatch.delattr(module, name)
    with ray_internals.start_ray_apart_and_quiet(logs=False):
        assert not hasattr(services, "ConsolePopen")
    monkeypatch.setitem(sys.modules, "ray._private.services", None)
    monkeypatch.delattr("ray._private.services")
    with ray_internals.start_ray_apart_and_quiet(logs=False):
        assert hasattr(worker, "init")


@pytest.mark.slow
def test_loopback_addresses_are_replaced_by_one_function_that_is_looked_up_at_each_call() -> None:
    with contract("ray", "services.resolve_ip_for_localhost(host), called by that name", LOOPBACK):
        from ray._private import services, worker
        from ray.scripts import scripts

        assert list(inspect.signature(services.resolve_ip_for_localhost).parameters) == ["host"]
        for caller in (inspect.unwrap(worker.init), scripts.start.callback):
            assert "services.resolve_ip_for_localhost(" in inspect.getsource(caller)


def test_rays_command_line_has_the_options_that_nodes_are_started_with() -> None:
    with contract("ray", "the command `ray` and the options of `ray start`", CLUSTER):
        from ray.scripts.scripts import cli

        (command,) = entry_points(group="console_scripts", name="ray")
        assert inspect.signature(command.load()).parameters == {}
        options = {option for parameter in cli.commands["start"].params for option in parameter.opts}
        assert options >= {"--node-ip-address", "--temp-dir", "--block", "--head"}
        assert options >= {f"--{port}" for port in ray_internals.AGENT_PORT_OPTIONS}


def test_a_job_knows_that_it_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    with contract("ray", "the variable that jobs are given", "study submit: a home that would end with the job"):
        from ray._private.runtime_env import constants

        monkeypatch.delenv(constants.RAY_JOB_CONFIG_JSON_ENV_VAR, raising=False)
        assert not ray_internals.is_ray_job()
        monkeypatch.setenv(constants.RAY_JOB_CONFIG_JSON_ENV_VAR, "{}")
        assert ray_internals.is_ray_job()


def test_the_dashboard_tells_of_its_nodes() -> None:
    with contract("ray", f"GET {ray_internals.DASHBOARD_NODES_PATH}", JOBS):
        from ray.dashboard import optional_utils
        from ray.dashboard.modules.node import node_head

        path, _, query = ray_internals.DASHBOARD_NODES_PATH.partition("?")
        source = inspect.getsource(node_head)
        assert f'routes.get("{path}")' in source
        view, fresh = query.split("&")
        assert all(f'"{word}"' in source for word in view.split("=")), "the page has no such view"
        key, value = fresh.split("=")
        assert f'req.query.get("{key}") == "{value}"' in inspect.getsource(optional_utils.aiohttp_cache)


def test_the_jobs_client_speaks_by_the_loggers_that_are_hushed() -> None:
    with contract("ray", "the loggers of the client of jobs", "quiet study submit, logs and status"):
        from ray.dashboard.modules import dashboard_sdk
        from ray.dashboard.modules.job import sdk

        assert {module.logger.name for module in (dashboard_sdk, sdk)} <= set(ray_internals.JOB_CLIENT_LOGGERS)
        assert all(name in logging.Logger.manager.loggerDict for name in ray_internals.JOB_CLIENT_LOGGERS)


def test_the_token_that_was_read_can_be_forgotten() -> None:
    with contract("ray", "AuthenticationTokenLoader.reset_cache", "a process that has read another token"):
        ray_internals.forget_ray_token()


def test_the_head_is_asked_for_its_id_by_a_message_without_fields() -> None:
    with contract("ray", "NodeInfoGcsService.GetClusterId", "a cluster that refuses the token, or does not answer"):
        from ray.core.generated import gcs_service_pb2 as messages

        _, service, name = ray_internals.CLUSTER_ID_METHOD.split("/")
        (method,) = (
            one
            for of in messages.DESCRIPTOR.services_by_name.values()
            if of.full_name == service
            for one in of.methods
            if one.name == name
        )
        assert messages.GetClusterIdRequest().SerializeToString() == b""
        assert method.input_type.full_name == "ray.rpc.GetClusterIdRequest"


def test_a_job_writes_its_output_among_the_logs_that_the_dashboard_shows(tmp_path: Path) -> None:
    with contract("ray", "logs/job-driver-ID.log, and GET /api/v0/logs/file", "study logs"):
        from ray.dashboard.modules.job import job_log_storage_client
        from ray.dashboard.modules.log.log_agent import LogAgentV1Grpc
        from ray.dashboard.modules.state import state_head

        assert job_log_storage_client.JOB_LOGS_PATH_TEMPLATE == "job-driver-{submission_id}.log"
        assert '"/api/v0/logs/{media_type}"' in inspect.getsource(state_head)
        (tmp_path / "logs").mkdir()
        (tmp_path / "outside").touch()
        (tmp_path / "logs" / "link").symlink_to(tmp_path / "outside")
        found = LogAgentV1Grpc._resolve_filename(tmp_path / "logs", "link")
        assert found == tmp_path / "outside"
    command = (
        "from study.upstream.ray_internals import job_logs_folder; import sys; print(job_logs_folder(), "
        "file=sys.stderr)"
    )
    for name, folder in (("job-driver-a.log", f"{tmp_path}/logs"), ("other.log", "None")):
        with (tmp_path / "logs" / name).open("wb") as log:
            environment = {**os.environ, "RAY_JOB_CONFIG_JSON_ENV_VAR": "{}"}
            job = [sys.executable, "-c", command]
            done = subprocess.run(job, stdout=log, stderr=subprocess.PIPE, text=True, env=environment)
        assert done.stderr.strip() == folder


ROOMS = ("sweep", "cluster", "tracking", "commands", "doctor")
"""Those that use Ray or MLflow."""

HIDDEN = re.compile(r"ray\.(_|[\w.]*\._|scripts|dashboard|air|(tune|train)\.execution)")
"""Modules of Ray that are not for its users."""


@pytest.mark.slow
def test_no_other_module_touches_what_ray_does_not_promise() -> None:
    """Neither by import nor by an argument or attribute whose name begins with `_` of an object that is not its own."""
    touches = [
        f"{path.relative_to(ROOT)}:{node.lineno}: {name}"
        for room in ROOMS
        for path in (ROOT / "study" / room).rglob("*.py")
        for node, name in hidden(path)
        if (path.name, name) not in PYTHONS
    ]
    assert touches == []


PYTHONS = {("fork_server.py", "_exit"), ("worker.py", "_exit"), ("fork_server.py", "_run_exitfuncs")}
"""How a forked or stuck process ends (os._exit is documented), and does what a function asked for at its end."""


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


@pytest.mark.parametrize(
    ("cluster", "differing"),
    [
        ({"ray_version": "2.55.1"}, {"Ray": "2.55.1"}),
        ({"python_version": "3.9.25"}, {"Python": "3.9.25"}),
        ({"ray_version": "3.0.0.dev0", "python_version": "3.9.24"}, {"Ray": "3.0.0.dev0", "Python": "3.9.24"}),
    ],
)
def test_ray_says_which_versions_a_cluster_was_started_with(cluster: dict[str, str], differing: dict[str, str]) -> None:
    """`study.sweep.ray_runtime` tells what to install."""
    from ray._private.utils import check_version_info, compute_version_info

    ray_version, python_version = compute_version_info()[:2]
    mine = {"ray_version": ray_version, "python_version": python_version}
    check_version_info(mine, "10.0.0.1")
    with pytest.raises(RuntimeError) as raised:
        check_version_info(mine | cluster, "10.0.0.1")
    own = {"Ray": ray_version, "Python": python_version}
    assert differing_versions(str(raised.value)) == {name: (there, own[name]) for name, there in differing.items()}


def test_another_error_of_ray_is_not_about_versions() -> None:
    assert differing_versions("Failed to connect to Ray cluster at 127.0.0.1:6379") is None
    assert differing_versions("Version mismatch: they differ") == {}
