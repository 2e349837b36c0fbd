"""Everything of Ray that this package uses and that Ray does not promise to keep, but for Tune, which is in `tune`.

No other module touches any of it. The tests in `tests/upstream` try each against the installed Ray and name what
depends on it. Ray is imported inside the functions only: some are called before its settings are made.
"""

import atexit
import gc
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from functools import cache, partial
from importlib.metadata import entry_points
from pathlib import Path
from queue import SimpleQueue
from typing import Any, TypeVar

from study.upstream.environment import KEEP_LOOPBACK_VARIABLES

DASHBOARD_NODES_PATH = "/nodes?view=summary&nocache=1"
"""Path at which the head's dashboard answers with its nodes, see `study.cluster.dashboard`; its cache would give
the answer to the question before."""

DASHBOARD_LOG_FILE_PATH = "/api/v0/logs/file"
"""Path at which the head's dashboard serves a file below a node's logs to whoever has the token; it follows links."""
NO_LOG_FILE_ANSWER, NO_NODE_ANSWER = "A file is not found", "Agent for node id"
"""Beginnings of its answers where there is no such file, or no such node."""

DASHBOARD_LOG_LIST_PATH = "/api/v0/logs"
"""Path at which the dashboard lists such files by a pattern: `data.result`, by kind."""

JOB_CLIENT_LOGGERS = ("ray", "ray.dashboard.modules.dashboard_sdk", "ray.dashboard.modules.job.sdk")
"""Loggers with which the client of Ray's jobs says what it uploads where."""


@contextmanager
def start_ray_apart_and_quiet(*, logs: bool) -> Iterator[None]:
    """Make the `ray.init` of the block start processes that a signal to this one's group does not reach, and no thread
    that prints what happens to them.

    `timeout`, batch systems and a closing terminal send signals to a group: a study could not stop in an orderly way
    without its Ray. The thread prints in colours whatever the level of logs; the study itself tells what becomes of
    trials.

    Args:
        logs: whether all may be printed.
    """
    ours: dict[tuple[Any, str], Any] = {}
    with suppress(ImportError):  # of a version that has these elsewhere, which then prints and hears the signals
        from ray._private import services, worker

        ours[services, "ConsolePopen"] = partial(subprocess.Popen, process_group=0)
        if not logs:
            ours[worker, "listen_error_messages"] = lambda worker, threads_stopped: threads_stopped.wait()
    theirs = {place: getattr(*place) for place in ours if hasattr(*place)}
    for place in theirs:
        setattr(*place, ours[place])
    try:
        yield
    finally:
        for place, part in theirs.items():
            setattr(*place, part)


RAY_CALL_POLL_INTERVAL_S = 0.02
"""Seconds between two looks whether a call into Ray has ended."""

ReturnType = TypeVar("ReturnType")


def call_with_own_signals(call: Callable[[], ReturnType], meanwhile: Callable[[], object] = bool) -> ReturnType:
    """Make a call into Ray that sets a handler of SIGTERM, and keep this process's handler.

    Ray's would end the process in the midst of a report, or by SIGABRT. The call is made in a thread: there Ray's
    Python sets no handler, and Python calls this process's at once. What Ray's C++ sets is undone meanwhile and
    afterwards. Outside the main thread, where no handler can be set, the call is just made.

    Args:
        meanwhile: called again and again; what it raises ends the wait for the call.
    """
    if threading.current_thread() is not threading.main_thread():
        return call()
    made: Future[ReturnType] = Future()

    def make() -> None:
        try:
            made.set_result(call())
        except BaseException as error:
            made.set_exception(error)

    _permanent_thread_queue().put(make)
    try:
        while not made.done():
            with suppress(TimeoutError):
                made.exception(RAY_CALL_POLL_INTERVAL_S)
            _restore_python_signal_handler()
            meanwhile()
        return made.result()
    except KeyboardInterrupt:
        _permanent_thread_queue.cache_clear()  # this one may wait for ever
        raise
    finally:
        _restore_python_signal_handler()


@cache
def _permanent_thread_queue() -> "SimpleQueue[Callable[[], None]]":
    """Return the queue of calls for a thread that lives as long as this process.

    On Linux the processes that Ray starts end with the thread that started them.
    """
    calls: SimpleQueue[Callable[[], None]] = SimpleQueue()

    def make_each() -> None:
        while True:
            calls.get()()

    threading.Thread(target=make_each, name="ray", daemon=True).start()
    return calls


def forget_ray_token() -> None:
    """Make Ray read its token anew: a process keeps the first that it read, as that of a cluster it asked before."""
    from ray._raylet import AuthenticationTokenLoader  # type: ignore[attr-defined]  # its stubs lack it

    AuthenticationTokenLoader.instance().reset_cache()


def _restore_python_signal_handler() -> None:
    """Make the system call Python's handler of SIGTERM again, whatever handler C++ has set."""
    signal.signal(signal.SIGTERM, signal.getsignal(signal.SIGTERM))


VERSION_MISMATCH_TEXT, VERSION_LINE_PATTERN = "Version mismatch", re.compile(r"^\s*(Ray|Python): *(\S+)", re.MULTILINE)
"""Beginning of Ray's error where a cluster has another Ray or Python than this process, and a line in it that names a
version: of the cluster first, then of this process."""


def differing_versions(message: str) -> dict[str, tuple[str, str]] | None:
    """Return the versions in such an error that differ, by name: the cluster's, this process's; None: another error.

    The result is empty where the message does not give them as expected.
    """
    if VERSION_MISMATCH_TEXT not in message:
        return None
    told: dict[str, list[str]] = {}
    for name, version in VERSION_LINE_PATTERN.findall(message):
        told.setdefault(name, []).append(version)
    return {name: (found[0], found[1]) for name, found in told.items() if len(found) == 2 and found[0] != found[1]}


CLUSTER_ID_METHOD = "/ray.rpc.NodeInfoGcsService/GetClusterId"
"""Question that the GCS answers to whoever has the token; it and its answer are messages of gRPC's."""


def ask_gcs_with_token(address: str, token: str | None, patience: float) -> str:
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
        channel.unary_unary(CLUSTER_ID_METHOD)(b"", timeout=patience, metadata=sent)
    except grpc.RpcError as error:
        return str(error.code().name)
    finally:
        channel.close()
    return "OK"


AGENT_PORT_OPTIONS = (
    "dashboard-agent-listen-port",
    "dashboard-agent-grpc-port",
    "metrics-export-port",
    "runtime-env-agent-port",
)
"""Options of `ray start`. Ports that are not given the agents choose and write into files, and Ray's node ends itself
if that takes longer than 15 s on a busy machine."""

RAY_SUBFOLDER = "ray"
"""Name of Ray's own folder in a private one. Ray opens its folder to everybody, so it is not given the private one."""


def count_memory_kills_as_deaths() -> None:
    """Make Tune take an actor that Ray's memory monitor ended for one that died; by itself Tune ends at that error."""
    import ray

    ray.exceptions.OutOfMemoryError.__bases__ = (ray.exceptions.RayActorError,)
    ray.exceptions.OutOfMemoryError.preempted = False  # type: ignore[attr-defined]


def run_ray_command_on_loopback() -> None:
    """Run Ray's command line, with this process's arguments, for nodes on loopback.

    `ray start` then takes a loopback address as given, instead of the machine's. It also starts more than one node
    there: Ray reads the variable of `KEEP_LOOPBACK_VARIABLES`, which is for the processes of a node, when it is
    imported.
    """
    os.environ |= dict.fromkeys(KEEP_LOOPBACK_VARIABLES, "1")
    (command,) = entry_points(group="console_scripts", name="ray")
    main = command.load()
    from ray._private import services

    os.environ |= KEEP_LOOPBACK_VARIABLES
    if not hasattr(services, "resolve_ip_for_localhost"):
        sys.exit("this version of Ray would listen at the machine's address, for everybody")
    services.resolve_ip_for_localhost = lambda host: host
    main()


RAY_JOB_VARIABLE = "RAY_JOB_CONFIG_JSON_ENV_VAR"
"""Variable in which a Ray job finds the environment of its processes; a Ray of a driver's own cannot make that one."""


def is_ray_job() -> bool:
    """Return whether this process was started by Ray's jobs."""
    return RAY_JOB_VARIABLE in os.environ


def job_logs_folder() -> Path | None:
    """Return the folder of Ray's logs on this node, where a job's output is written; None: this is no job."""
    try:
        path = Path(os.readlink("/proc/self/fd/1"))
    except OSError:
        return None
    return path.parent if is_ray_job() and path.name.startswith("job-driver-") else None


# A Ray of a driver's own, tested by `tests/upstream/test_own_ray_internals.py`.

RUNTIME_ENV_HOOK_VARIABLE = "RAY_RUNTIME_ENV_HOOK"
"""Variable that names a function which asks for one, too."""

RAY_FOLDER_VARIABLE = "RAY_TMPDIR"
"""Variable that names the folder in which Ray makes its own, `RAY_SUBFOLDER`."""


def end_process_at_once(status: int = 1) -> None:
    """End this process before any of Ray in it can wait for a Ray that is dead."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def end_process_without_ray(status: int = 1) -> None:
    """Make this process end with this status and without contacting a Ray that is dead.

    What of Ray is in this process would wait for answers, some of it for ever: its libraries at exit, and its objects
    when they are freed, most of which are in cycles that only garbage collection finds.
    """
    import ray

    gc.disable()
    atexit.unregister(ray.shutdown)
    atexit.register(end_process_at_once, status)


MAX_SESSION_PATH_CHARACTERS = len(f"/{RAY_SUBFOLDER}/session_2026-11-22_18-13-19_621094_{2**22}/sockets/plasma_store")
"""Characters that Ray adds to that folder in the longest path of a socket."""
