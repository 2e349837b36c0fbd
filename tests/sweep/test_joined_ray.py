"""Whether a cluster that a driver has joined still answers."""

import socket
from collections.abc import Iterator

import pytest

from study.sweep import ray_runtime
from study.sweep.ray_runtime import HEAD_ENDED_TEXT, RAYLET_ENDED_TEXT, JoinedCluster
from study.upstream import environment

Place = tuple[str, int]


@pytest.fixture(autouse=True)
def _asked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_runtime, "CLUSTER_POLL_INTERVAL_S", 0.0)
    monkeypatch.delenv("RAY_JOB_CONFIG_JSON_ENV_VAR", raising=False)


@pytest.fixture
def process() -> Iterator[socket.socket]:
    """What takes connections, and is never busy enough to answer."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


@pytest.fixture
def gone() -> Place:
    with socket.create_server(("127.0.0.1", 0)) as server:
        place: Place = server.getsockname()
    return place


def test_while_both_take_connections_nothing_is_said(process: socket.socket) -> None:
    ray = JoinedCluster(process.getsockname(), process.getsockname())
    assert (ray.describe_ended_process(), ray.describe_missing_process(), ray.grace_s) == (None, None, 10.0)


def test_the_drivers_own_node_is_told_at_once(process: socket.socket, gone: Place) -> None:
    """The driver is killed a second later."""
    ray = JoinedCluster(process.getsockname(), gone)
    assert (ray.describe_ended_process(), ray.grace_s) == (RAYLET_ENDED_TEXT, 0.0)
    assert JoinedCluster(gone, gone).describe_ended_process() == HEAD_ENDED_TEXT


def test_a_head_that_may_come_back_is_waited_for_as_long_as_ray_does(
    process: socket.socket, gone: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(environment.RECONNECT_TIMEOUT_VARIABLE, "3600")
    ray = JoinedCluster(gone, process.getsockname())
    assert (
        ray.describe_missing_process()
        == f"Ray's head (its gcs_server, at {gone[0]}:{gone[1]}) does not answer any more"
    )
    assert ray.describe_ended_process() is None
    monkeypatch.setattr(ray_runtime, "UNRECOVERABLE_HEAD_TIMEOUT_S", 0.0)
    for given in ("10", "not a number"):
        monkeypatch.setenv(environment.RECONNECT_TIMEOUT_VARIABLE, given)
        monkeypatch.setattr(ray_runtime, "RAY_RECONNECT_TIMEOUT_S", 0.0)
        assert JoinedCluster(gone, process.getsockname()).describe_ended_process() == ray.describe_missing_process()


def test_a_job_on_the_heads_machine_waits_only_where_its_state_is_in_redis(
    process: socket.socket, gone: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray_runtime, "UNRECOVERABLE_HEAD_TIMEOUT_S", 0.0)
    monkeypatch.setenv("RAY_JOB_CONFIG_JSON_ENV_VAR", "{}")
    assert JoinedCluster(gone, process.getsockname()).describe_ended_process()
    monkeypatch.setenv("RAY_REDIS_ADDRESS", "redis:6379")
    assert JoinedCluster(gone, process.getsockname()).describe_ended_process() is None
