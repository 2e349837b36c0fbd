"""Everything of Ray that this package uses and that Ray does not promise to keep: here and, for a Ray of a driver's
own, in `study.upstream.own_ray_internals`, for Tune in `tune`. No other
module touches any of it.

The tests in `tests/upstream` try each against the installed Ray and name what depends on it. Ray is imported inside the
functions only: some are called before its settings are made.
"""

import json
import os
import signal
import threading
from pathlib import Path
from typing import Any

NODES = "/nodes?view=summary&nocache=1"
"""What the head's dashboard answers with its nodes, see `study.cluster.head`; its cache would answer with what was true
at the question before this one."""

LOG = "/api/v0/logs/file"
"""Where the head's dashboard gives a file below a node's logs to who has the token. It follows links in them; what it
says where there is no such file, or no such node:"""
NO_FILE, NO_NODE = "A file is not found", "Agent for node id"

LOGS = "/api/v0/logs"
"""Where it lists such files by a pattern: `data.result`, by kind."""

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


def read_the_token_again() -> None:
    """To be called before Ray in this process sends a token: it keeps the first that it read, and what it was given may
    have changed since, from one cluster's to another's, say, or to this process's own."""
    from ray import _raylet

    raylet: Any = _raylet  # whose stub leaves it out
    raylet.AuthenticationTokenLoader.instance().reset_cache()


def gcs_answer(address: str, patience: float) -> str:
    """Return what the GCS at HOST:PORT answers to the token that Ray would send, as gRPC's status: OK, UNAUTHENTICATED,
    UNAVAILABLE where nothing listens, and others. `ray.init` would try for minutes, and print each time.

    Args:
        patience: seconds that it may take to answer.
    """
    import grpc
    from ray._private.grpc_utils import init_grpc_channel
    from ray.core.generated import gcs_service_pb2
    from ray.core.generated.gcs_service_pb2_grpc import NodeInfoGcsServiceStub

    messages: Any = gcs_service_pb2  # which protobuf makes as it is loaded
    channel: Any = init_grpc_channel(address, [("grpc.enable_http_proxy", 0)])
    try:
        NodeInfoGcsServiceStub(channel).GetClusterId(messages.GetClusterIdRequest(), timeout=patience)
    except grpc.RpcError as error:
        return str(error.code().name)
    finally:
        channel.close()
    return "OK"


def leave() -> None:
    """`ray.shutdown`, whose C++ leaves SIGTERM at its default while Ray's processes are ended and afterwards: it would
    end this process in the midst of its report. Here it stays with this process's handler."""
    import ray
    from ray._private import worker

    if (node := worker._global_node) is not None:
        end = node.kill_all_processes
        node.kill_all_processes = lambda *given, **named: (take_signals_back(), end(*given, **named))
    try:
        ray.shutdown()
    finally:
        take_signals_back()


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
    """Return whether this process was started by Ray's jobs."""
    return "RAY_JOB_CONFIG_JSON_ENV_VAR" in os.environ


def job_logs() -> Path | None:
    """The folder of Ray's logs on this node, where Ray writes what a job's process prints; None: this is none."""
    try:
        path = Path(os.readlink("/proc/self/fd/1"))
    except OSError:
        return None
    return path.parent if is_job() and path.name.startswith("job-driver-") else None


def job_metadata() -> dict[str, str]:
    """Return what the job that this process belongs to was submitted with, its id as `job_submission_id`; nothing for
    none."""
    try:
        told = json.loads(os.environ["RAY_JOB_CONFIG_JSON_ENV_VAR"])["metadata"]
        return {str(key): str(value) for key, value in told.items()}
    except (KeyError, ValueError, AttributeError, TypeError):
        return {}


def cpus() -> int:
    """Return how many processors of this machine Ray would place trials on, a container's limits considered."""
    from ray._private.utils import get_num_cpus

    return int(get_num_cpus(override_docker_cpu_warning=True))


def gpus() -> int:
    """Return how many GPUs of this machine Ray would place trials on."""
    from ray._private.accelerators import get_accelerator_manager_for_resource

    manager = get_accelerator_manager_for_resource("GPU")
    if manager is None:
        return 0
    visible = manager.get_current_process_visible_accelerator_ids()
    there = int(manager.get_current_node_num_accelerators())
    return there if visible is None else min(there, len(visible))


def accelerator() -> str | None:
    """The kind of this machine's GPUs as Ray calls it, `H100` for example; None: there is none, or Ray does not know
    it."""
    from ray._private.accelerators import get_accelerator_manager_for_resource

    manager = get_accelerator_manager_for_resource("GPU")
    return manager.get_current_node_accelerator_type() if manager is not None else None
