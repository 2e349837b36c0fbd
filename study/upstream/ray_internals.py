"""Everything of Ray that this package uses and that Ray does not promise to keep, but for Tune, which is in `tune`.

No other module touches any of it. The tests in `tests/upstream` try each against the installed Ray and name what
depends on it. Ray is imported inside the functions only: some are called before its settings are made.
"""

import atexit
import gc
import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from functools import cache, partial
from pathlib import Path
from queue import SimpleQueue
from typing import Any, TypeVar

from study.upstream import end_with_parent

NODES = "/nodes?view=summary&nocache=1"
"""Path at which the head's dashboard answers with its nodes, see `study.cluster.head`; its cache would give the answer
to the question before."""

LOG = "/api/v0/logs/file"
"""Path at which the head's dashboard serves a file below a node's logs to whoever has the token; it follows links."""
NO_FILE, NO_NODE = "A file is not found", "Agent for node id"
"""Beginnings of its answers where there is no such file, or no such node."""

LOGS = "/api/v0/logs"
"""Path at which the dashboard lists such files by a pattern: `data.result`, by kind."""

CLIENT_LOGGERS = ("ray", "ray.dashboard.modules.dashboard_sdk", "ray.dashboard.modules.job.sdk")
"""Loggers with which the client of Ray's jobs says what it uploads where."""


@contextmanager
def without_rays_own_lines(logs: bool) -> Iterator[None]:
    """Keep the `ray.init` of the block from starting its thread that prints what happens to the cluster's processes.

    It prints in colours whatever the level of logs; the study itself tells what becomes of trials.

    Args:
        logs: whether all may be printed.
    """
    from ray._private import worker

    joining: Any = worker
    before = joining.listen_error_messages
    if not logs:
        joining.listen_error_messages = lambda worker, threads_stopped: threads_stopped.wait()
    try:
        yield
    finally:
        joining.listen_error_messages = before


POLL_INTERVAL_S = 0.02
"""Seconds between two looks whether a call into Ray has ended."""

Result = TypeVar("Result")


def with_own_signals(call: Callable[[], Result]) -> Result:
    """Make a call into Ray that sets a handler of SIGTERM, and keep this process's handler.

    Ray's would end the process in the midst of a report, or by SIGABRT. The call is made in a thread: there Ray's
    Python sets no handler, and Python calls this process's at once. What Ray's C++ sets is undone meanwhile and
    afterwards. Outside the main thread, where no handler can be set, the call is just made.
    """
    if threading.current_thread() is not threading.main_thread():
        return call()
    made: Future[Result] = Future()

    def make() -> None:
        try:
            made.set_result(call())
        except BaseException as error:
            made.set_exception(error)

    _calls().put(make)
    try:
        while not made.done():
            with suppress(TimeoutError):
                made.exception(POLL_INTERVAL_S)
            _take_signals_back()
        return made.result()
    except KeyboardInterrupt:
        _calls.cache_clear()  # this one may wait for ever
        raise
    finally:
        _take_signals_back()


@cache
def _calls() -> "SimpleQueue[Callable[[], None]]":
    """Return the queue of calls for a thread that lives as long as this process.

    On Linux the processes that Ray starts end with the thread that started them.
    """
    calls: SimpleQueue[Callable[[], None]] = SimpleQueue()

    def make_each() -> None:
        while True:
            calls.get()()

    threading.Thread(target=make_each, name="ray", daemon=True).start()
    return calls


def _take_signals_back() -> None:
    """Make the system call Python's handler of SIGTERM again, whatever handler C++ has set."""
    signal.signal(signal.SIGTERM, signal.getsignal(signal.SIGTERM))


MISMATCH, VERSION = "Version mismatch", re.compile(r"^\s*(Ray|Python): *(\S+)", re.MULTILINE)
"""Beginning of Ray's error where a cluster has another Ray or Python than this process, and a line in it that names a
version: of the cluster first, then of this process."""


def other_versions(message: str) -> dict[str, tuple[str, str]] | None:
    """Return the versions in such an error that differ, by name: the cluster's, this process's; None: another error.

    The result is empty where the message does not give them as expected.
    """
    if MISMATCH not in message:
        return None
    told: dict[str, list[str]] = {}
    for name, version in VERSION.findall(message):
        told.setdefault(name, []).append(version)
    return {name: (found[0], found[1]) for name, found in told.items() if len(found) == 2 and found[0] != found[1]}


WHO = "/ray.rpc.NodeInfoGcsService/GetClusterId"
"""Question that the GCS answers to whoever has the token; it and its answer are messages of gRPC's."""


def gcs_answer(address: str, token: str | None, patience: float) -> str:
    """Return the answer of the GCS at HOST:PORT to a token, as gRPC's status.

    `ray.init` would try for minutes, and print each time.

    Args:
        patience: seconds that it may take to answer.

    Returns:
        OK (always where Ray uses TLS), UNAUTHENTICATED, UNAVAILABLE where nothing listens, and others.
    """
    import grpc

    if os.environ.get("RAY_USE_TLS", "0").lower() in ("1", "true"):
        return "OK"
    sent = [("authorization", f"Bearer {token}")] if token else []
    channel = grpc.insecure_channel(address, [("grpc.enable_http_proxy", 0)])
    try:
        channel.unary_unary(WHO)(b"", timeout=patience, metadata=sent)
    except grpc.RpcError as error:
        return str(error.code().name)
    finally:
        channel.close()
    return "OK"


AGENTS_PORTS = (
    "dashboard-agent-listen-port",
    "dashboard-agent-grpc-port",
    "metrics-export-port",
    "runtime-env-agent-port",
)
"""Options of `ray start`. Ports that are not given the agents choose and write into files, and Ray's node ends itself
if that takes longer than 15 s on a busy machine."""

BELOW = "ray"
"""Name of Ray's own folder in a private one. Ray opens its folder to everybody, so it is not given the private one."""


def let_trials_inherit_environment() -> None:
    """Make the Tune of this process run trials in whatever processes the node has ready.

    By itself it asks for processes with a variable for PyTorch Lightning, which Ray would have to start first.
    """
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


def command_on_loopback() -> None:
    """Run Ray's command line, with this process's arguments, for nodes on loopback.

    `ray start` then takes a loopback address as given, instead of the machine's, and starts more than one node there.
    """
    from ray._private import ray_constants, services
    from ray.scripts.scripts import main

    ray_constants.ENABLE_RAY_CLUSTER = True
    services.resolve_ip_for_localhost = lambda host: host
    main()


def is_job() -> bool:
    """Return whether this process was started by Ray's jobs."""
    return "RAY_JOB_CONFIG_JSON_ENV_VAR" in os.environ


def job_logs() -> Path | None:
    """Return the folder of Ray's logs on this node, where a job's output is written; None: this is no job."""
    try:
        path = Path(os.readlink("/proc/self/fd/1"))
    except OSError:
        return None
    return path.parent if is_job() and path.name.startswith("job-driver-") else None


def job_metadata() -> dict[str, str]:
    """Return the metadata that this process's job was submitted with, and `job_submission_id`; empty for no job."""
    try:
        told = json.loads(os.environ["RAY_JOB_CONFIG_JSON_ENV_VAR"])["metadata"]
        return {str(key): str(value) for key, value in told.items()}
    except (KeyError, ValueError, AttributeError, TypeError):
        return {}


# A Ray of a driver's own, tested by `tests/upstream/test_own_ray_internals.py`.
#
# Ray gives its agents 15 seconds to write their ports into files, and itself 30 to start, and no setting changes that.
# On a busy machine its node ended itself, again and again. So there are no agents, and the caller decides how long to
# wait.

RAYLET = "raylet"
"""Ray's name of the process of a node that starts the others."""

PRESTART = "--num_prestart_python_workers="
"""Option of the raylet: how many processes it starts before anybody asks."""

AGENTS = ("--dashboard_agent_command=", "--runtime_env_agent_command=")
"""Options of the raylet: how its agents are started; it ends when one of them does."""

IN_THEIR_PLACE = (sys.executable, "-I", "-S", "-c", "import sys; sys.stdin.read()")
"""Command that is started instead of an agent: it costs nothing, and ends with the raylet, which holds the other end of
its input."""

WAITED_PORTS = ("METRICS_AGENT", "METRICS_EXPORT", "DASHBOARD_AGENT_LISTEN", "RUNTIME_ENV_AGENT")
"""Ports that the raylet would wait for."""

WORKER, SETUP = "--python_worker_command=", "setup_worker.py"
"""Option of the raylet: how workers are started; and the script that their command begins with."""

NO_PORT = -1
"""Number that Ray's own agents write for what they do not serve."""

JOB = "RAY_JOB_CONFIG_JSON_ENV_VAR"
"""Variable in which a Ray job finds the environment of its processes. Without agents nobody can make one, and Ray's
node ends itself 30 s after it is asked for."""

HOOK = "RAY_RUNTIME_ENV_HOOK"
"""Variable that names a function which asks for one, too."""

PLACE = "RAY_TMPDIR"
"""Variable that names the folder in which Ray makes its own, `BELOW`."""

Wait = Callable[[Callable[[], bool]], None]
"""Function that waits until something is true, or raises why it never will be."""


@contextmanager
def lean_node(
    processes: int,
    variables: Mapping[str, str],
    started: Callable[[str, "subprocess.Popen[bytes]"], None],
    wait: Wait,
    folder: Path,
    *,
    logs: bool,
) -> Iterator[None]:
    """Make `ray.init` start a Ray for one driver alone: no dashboard, no monitor of an autoscaler, no agents.

    Agents serve metrics, jobs and environments, for which a study has no use; they take seconds of a processor, and
    `ray.init` would wait for them. Signals to this process's whole group, as `timeout` and batch systems send them, do
    not reach Ray's processes: a study could not stop in an orderly way without its Ray.

    Args:
        processes: number that the node starts at once, for the first trials; by itself it starts one per processor.
        variables: what all of its processes have in their environment besides this process's own.
        started: is told each process that this one starts, and its name, at once.
        wait: waits for each step of the start; must not raise Ray's kind of error, RuntimeError.
        folder: private one in which Ray keeps its session, in `BELOW`.
        logs: whether what they print is to reach this process.
    """
    from ray._private import node, services, utils

    class Node(node.Node):
        def start_monitor(self) -> None:
            pass

        def start_api_server(self, **_: Any) -> None:
            self._webui_url = ""

        def start_log_monitor(self) -> None:
            if logs:
                super().start_log_monitor()

    driver, end_with_it = os.getpid(), utils.set_kill_on_parent_death_linux

    def end_with_driver() -> None:
        end_with_it()
        if os.getppid() != driver:  # it has ended already
            os._exit(1)

    start, wait_for_port, find_node = services.start_ray_process, node.wait_for_persisted_port, services.get_node

    def start_process(command: list[str], process_type: str, **options: Any) -> Any:
        if process_type == RAYLET:
            command = _without_agents(
                [f"{PRESTART}{processes}" if word.startswith(PRESTART) else word for word in command]
            )
            command = _ending_with_it(command)
        options["env_updates"] = {**(options.get("env_updates") or {}), **variables}
        information = start(command, process_type, **options)
        started(process_type, information.process)
        return information

    def wait_for_persisted_port(folder: str, node_id: str, name: str, **_: Any) -> int:
        wait((Path(folder) / node.get_port_filename(node_id, name)).exists)
        return int(wait_for_port(folder, node_id, name))

    def get_node(address: str, node_id: str) -> Any:
        answers: list[Any] = []

        def is_there() -> bool:
            try:
                answers.append(find_node(address, node_id))
            except RuntimeError:
                return False
            return True

        wait(is_there)
        return answers[0]

    places: tuple[tuple[Any, str, Any], ...] = (
        (node, "Node", Node),
        (node, "wait_for_persisted_port", wait_for_persisted_port),
        (services, "start_ray_process", start_process),
        (services, "ConsolePopen", partial(services.ConsolePopen, process_group=0)),
        (services, "get_node", get_node),
        (utils, "set_kill_on_parent_death_linux", end_with_driver),
    )
    hidden = {name: os.environ.pop(name) for name in (JOB, HOOK, PLACE) if name in os.environ}
    os.environ[PLACE] = str(folder)
    before = [getattr(module, name) for module, name, _ in places]
    for module, name, ours in places:
        setattr(module, name, ours)
    try:
        yield
    finally:
        for (module, name, _), theirs in zip(places, before, strict=True):
            setattr(module, name, theirs)
        del os.environ[PLACE]
        os.environ |= hidden


def _without_agents(command: list[str]) -> list[str]:
    """Return the command of a raylet that has no agents to wait for."""
    from ray import _raylet

    raylet: Any = _raylet  # whose stub leaves out what is used here
    options = dict(word.split("=", 1) for word in command if "=" in word)
    for port in WAITED_PORTS:
        name = getattr(raylet, f"{port}_PORT_NAME")
        raylet.persist_port(options["--session_dir"], options["--node_id"], name, NO_PORT)
    idle = subprocess.list2cmdline(IN_THEIR_PLACE)
    return [next((f"{agent}{idle}" for agent in AGENTS if word.startswith(agent)), word) for word in command]


def _ending_with_it(command: list[str]) -> list[str]:
    """Return the command of a raylet whose workers end when it does, at whatever moment of their start, on Linux.

    Elsewhere a worker that waits for its raylet to answer waits for ever. Each starts without `SETUP`, which makes an
    environment first where one is asked for, and nothing asks.
    """
    if sys.platform != "linux":
        return command
    first = subprocess.list2cmdline([sys.executable, "-I", "-S", end_with_parent.__file__, RAYLET, sys.executable])
    return [
        f"{WORKER}{first}{word.partition(SETUP)[2].removeprefix(chr(34))}" if word.startswith(WORKER) else word
        for word in command
    ]


def end_at_once(status: int = 1) -> None:
    """End this process before any of Ray in it can wait for a Ray that is dead."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def end_without_ray(status: int = 1) -> None:
    """Make this process end with this status and without contacting a Ray that is dead.

    What of Ray is in this process would wait for answers, some of it for ever: its libraries at exit, and its objects
    when they are freed, most of which are in cycles that only garbage collection finds.
    """
    import ray

    gc.disable()
    atexit.unregister(ray.shutdown)
    atexit.register(end_at_once, status)


def preloading(module: str) -> dict[str, str]:
    """Return the variables that make each process of a node import a module before it takes any work."""
    return {"RAY_preload_python_modules": module}


SESSION = len(f"/{BELOW}/session_2026-11-22_18-13-19_621094_{2**22}/sockets/plasma_store")
"""Characters that Ray adds to that folder in the longest path of a socket."""
