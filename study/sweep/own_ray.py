"""A Ray of one driver's own: started with patience, watched, and ended whole."""

import errno
import gc
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from study.cluster_addresses import LOOPBACK
from study.errors import StartInterruptedError
from study.files import lock_file
from study.sweep.host_memory import MemoryLimit
from study.upstream.cgroup import count_usable_processors
from study.upstream.child_process import python_command
from study.upstream.logging import is_verbose
from study.upstream.machine_load import machine_load_text
from study.upstream.ray_internals import (
    MAX_SESSION_PATH_CHARACTERS,
    RAY_FOLDER_VARIABLE,
    RAY_JOB_VARIABLE,
    RUNTIME_ENV_HOOK_VARIABLE,
    call_with_own_signals,
    end_process_without_ray,
    forget_ray_token,
    start_ray_apart_and_quiet,
)
from study.upstream.ray_token import use_new_ray_token
from study.upstream.scratch import (
    CLEAN_UP_TIMEOUT_S,
    KILL_TIMEOUT_S,
    RUN_FOLDER_PREFIX,
    SCRATCH_FOLDER_VARIABLE,
    end_processes_of_scratch_folder,
    make_scratch_folder,
    processes_of_scratch_folder,
)
from study.writable_folders import ray_socket_folder

if TYPE_CHECKING:
    from ray import ObjectRef

    from study.data.dataset import Dataset
    from study.knobs import Section
    from study.sweep.job_payload import TuneConfig
    from study.training.features import FeaturesBySplit


def run_job_in_ray_worker(
    config: "TuneConfig", *, datasets: Mapping[str, "ObjectRef"], weights: Mapping[str, tuple[str, str]]
) -> None:
    """Run a job, see `study.sweep.worker.run_job`; only the workers import PyTorch for it, not the driver."""
    from study.sweep import worker

    worker.run_job(config, datasets=datasets, weights=weights)


def compute_features_in_ray_task(
    model: "Section", dataset: "Dataset", weights: Mapping[str, tuple[str, str]]
) -> "FeaturesBySplit":
    """Compute features in a task of Ray's, on a GPU where Ray gave it one."""
    from study.models import initial_weights
    from study.training import features
    from study.training.device import best_available_device

    initial_weights.use_located_weights(weights)
    return features.load_or_compute_features(model, dataset, best_available_device(), lambda done, total: None)


MAX_START_ATTEMPTS = 3

NEEDED_RAY_PROCESSES = ("gcs_server", "raylet")
"""Names of the processes that Ray cannot do without."""

START_TURN_TIMEOUT_CPU_S = 600.0
"""Most processor seconds of this machine that a start waits for those of other drivers: many processors start many."""

SLOW_START_NOTICE_S = 20.0
"""Seconds after which the user is told that a start takes long."""

N_LAST_LOG_LINES = 3
"""Lines of a process's last words that are shown."""

MIN_FREE_DISK_BYTES = 2**20
"""Bytes that Ray's folder needs, for the logs of its processes and its sockets."""

MAX_RAY_FOLDER_CHARACTERS = 103 - MAX_SESSION_PATH_CHARACTERS - len(f"/{RUN_FOLDER_PREFIX}12345678")
"""Most characters of the folder around Ray's: the path of a socket has at most 107 on Linux, 103 elsewhere."""


class RayStartError(Exception):
    """Ray did not start; the message says why."""


class RayProcesses:
    """The processes of one start of Ray.

    Attributes:
        folder: in which their files are.
        grace_s: seconds that a driver gets to end by itself once one of them has ended.
    """

    grace_s = 10.0

    def __init__(self, folder: Path) -> None:
        self.folder, self._memory = folder, MemoryLimit.of_this_process()
        self._before = {*psutil.Process().children()}
        self._started: dict[psutil.Process, str] = {}

    def find_started_processes(self) -> None:
        """Take in the processes that this one has started since it had none of Ray's."""
        for process in {*psutil.Process().children()} - self._before:
            with suppress(psutil.Error):
                self._started[process] = process.name()

    def describe_ended_process(self) -> str | None:
        """Return which of `NEEDED_RAY_PROCESSES` has ended, and how; None while all live."""
        for process, name in self._started.items():
            if name in NEEDED_RAY_PROCESSES and (how := _describe_process_end(process)):
                if how.endswith("SIGKILL") and self._memory.kills_since_start() > 0:
                    limit = f"memory is limited to {self._memory.limit_bytes / 2**30:.1f} GiB"
                    how += f", by the kernel's OOM killer: {limit}. Fewer trials at once: --set search.concurrency=N"
                return f"Ray's {name} {how}"
        return None

    describe_missing_process = describe_ended_process
    """Of a Ray of one's own: what has ended does not come back."""

    def last_log_lines(self) -> str:
        """Return the last lines that they wrote to their logs of errors."""
        files = self.folder.glob("*/session_2*/logs/*.err")
        return "".join(f"\n{line}" for file in files for line in _read_lines(file)[-N_LAST_LOG_LINES:])

    def kill_processes(self) -> None:
        """Kill what still runs of them and of what they started, and wait for its end."""
        end_processes_of_scratch_folder(self.folder)
        psutil.wait_procs(self._started, timeout=KILL_TIMEOUT_S)  # the system forgets those that have ended then


def _describe_process_end(process: psutil.Process) -> str | None:
    """Return how a process that this one started has ended; None while it lives."""
    try:
        end = os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return "has ended"
    if end is None:
        return None
    is_exit = end.si_code == os.CLD_EXITED
    return f"ended with status {end.si_status}" if is_exit else f"was ended by {signal.Signals(end.si_status).name}"


def _read_lines(file: Path) -> list[str]:
    with suppress(OSError):
        return file.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return []


def disconnect_from_ray() -> None:
    """End Ray, or the connection to it.

    Tune leaves reference cycles that only Python's garbage collection frees, in whichever thread it happens to run.
    A Ray object that is freed while Ray ends makes it end the process: so cycles are freed before, and collection is
    off meanwhile.
    """
    import ray

    collects = gc.isenabled()
    gc.disable()
    try:
        gc.collect()
        call_with_own_signals(ray.shutdown)
    finally:
        if collects:
            gc.enable()


@contextmanager
def start_own_ray(
    gpus: int | None, tell: Callable[[str], None], stopping: Callable[[], bool]
) -> Iterator[RayProcesses]:
    """Start a Ray of this process's own, on loopback, and end it after the block. Workers inherit the environment.

    Args:
        gpus: number that Ray is told; None: it counts them itself.
        tell: is told what the start waits for.
        stopping: returns whether the start is to be given up.

    Raises:
        UserError: there is no folder for it.
        RayStartError: each of `MAX_START_ATTEMPTS` starts failed.
        KeyboardInterrupt: `stopping` says so.
    """
    with (
        make_scratch_folder(RUN_FOLDER_PREFIX, ray_socket_folder(MAX_RAY_FOLDER_CHARACTERS)) as folder,
        _guard_ray_folder(folder),
        use_new_ray_token(folder),
    ):
        ray = _start_with_retries(folder, gpus, tell, stopping)
        try:
            yield ray
        finally:
            _end_ray(ray, end_process_without_ray if ray.describe_ended_process() else disconnect_from_ray)


GUARD_PROGRAM = """
from pathlib import Path
from study.upstream.scratch import remove_after_death
remove_after_death(Path(sys.argv[1]))
"""


@contextmanager
def _guard_ray_folder(folder: Path) -> Iterator[None]:
    """Have a process end what is left of Ray, and remove the folder, if this one dies within the block.

    Ray's agents outlive their node by a minute and more (Ray's issue 52385).
    """
    command, nothing = python_command(GUARD_PROGRAM, str(folder)), subprocess.DEVNULL
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=nothing, stderr=nothing, start_new_session=True)
    try:
        yield
    finally:
        with suppress(OSError):  # it was killed
            process.communicate(b"ended in order")


def _start_with_retries(
    folder: Path, gpus: int | None, tell: Callable[[str], None], stopping: Callable[[], bool]
) -> RayProcesses:
    """Return the first start that succeeds; no process of a failed one is left when the next begins."""
    for attempt in range(1, MAX_START_ATTEMPTS + 1):
        if attempt > 1:
            tell(f"starting Ray, attempt {attempt}")
        ray, waiter = RayProcesses(folder), RayStartWaiter(tell, stopping)
        try:
            try:
                _start_ray_once(folder, gpus, waiter)
            finally:
                ray.find_started_processes()
            if attempt > 1 or waiter.told:
                tell("Ray runs")
            return ray
        except Exception as error:  # Ray raises what it likes, bare Exception too
            why = f"{ray.describe_ended_process() or str(error).strip() or repr(error)}{ray.last_log_lines()}"
            _end_ray(ray)
        except BaseException:
            _end_ray(ray, partial(end_process_without_ray, StartInterruptedError.exit_status))
            raise
    raise RayStartError(f"{why}{no_disk_room_text(folder)}")


def no_disk_room_text(folder: Path) -> str:
    """Return that a folder has no room, if so: Ray's processes end without a word of it."""
    if shutil.disk_usage(folder).free >= MIN_FREE_DISK_BYTES:
        return ""
    return f"\n{folder.parent}: {os.strerror(errno.ENOSPC)}. Make room there, or name another folder: TMPDIR=..."


def _start_ray_once(folder: Path, gpus: int | None, waiter: "RayStartWaiter") -> None:
    from ray import init
    from ray.util import get_node_ip_address

    if (address := get_node_ip_address()) != LOOPBACK:
        raise RayStartError(f"it would listen at {address}, for everybody")
    logs = is_verbose()
    start = partial(
        init,
        address="local",
        num_cpus=count_usable_processors(),
        num_gpus=gpus,
        include_dashboard=False,
        log_to_driver=logs,
        configure_logging=False,
        namespace="study",
    )
    variables = _set_ray_process_variables({RAY_FOLDER_VARIABLE: str(folder), SCRATCH_FOLDER_VARIABLE: str(folder)})
    forget_ray_token()
    with waiter.wait_for_turn(folder.parent), variables, start_ray_apart_and_quiet(logs=logs):
        call_with_own_signals(start, waiter.tell_if_slow)


@contextmanager
def _set_ray_process_variables(given: Mapping[str, str]) -> Iterator[None]:
    """Give Ray's processes these variables, and none of those of a job or a hook of a cluster's.

    They stay where a start is given up, which goes on in its thread until this process ends.
    """
    names = {RAY_JOB_VARIABLE, RUNTIME_ENV_HOOK_VARIABLE, *given} & os.environ.keys()
    hidden = {name: os.environ.pop(name) for name in names}
    os.environ |= given
    is_given_up = False
    try:
        yield
    except KeyboardInterrupt:
        is_given_up = True
        raise
    finally:
        if not is_given_up:
            for name in given:
                del os.environ[name]
            os.environ |= hidden


FORK_SERVER_MODULE = "study.sweep.fork_server"
"""Module by whose name in their command the servers are found that fork processes for training functions."""


def _end_fork_servers(folder: Path) -> None:
    """End the servers of training functions with time to clean up: Ray would kill its processes and theirs at once."""
    servers = []
    for process in processes_of_scratch_folder(folder):
        with suppress(psutil.Error):
            parent = psutil.Process(process.ppid())
            if _is_fork_server(process) and not _is_fork_server(parent):  # forks have the same command
                process.terminate()
                servers.append(process)
    until = time.monotonic() + CLEAN_UP_TIMEOUT_S
    while any(map(_is_process_alive, servers)) and time.monotonic() < until:
        time.sleep(0.02)


def _is_process_alive(process: psutil.Process) -> bool:
    """Return whether a process has not ended; a zombie has, though its parent has not asked yet."""
    with suppress(psutil.NoSuchProcess):
        return process.status() != psutil.STATUS_ZOMBIE
    return False


def _is_fork_server(process: psutil.Process) -> bool:
    return any(FORK_SERVER_MODULE in word for word in process.cmdline()[:4])


def _end_ray(ray: RayProcesses, part: Callable[[], None] = disconnect_from_ray) -> None:
    try:
        _end_fork_servers(ray.folder)
        part()
    except KeyboardInterrupt:  # a second signal; what is left of Ray here would wait for a dead one when Python ends
        end_process_without_ray(StartInterruptedError.exit_status)
        raise
    finally:
        ray.kill_processes()


class RayStartWaiter:
    """Waiting for a start.

    Attributes:
        told: whether the user was told that this takes long.
    """

    def __init__(self, tell: Callable[[str], None], stopping: Callable[[], bool]) -> None:
        self._tell, self._stopping = tell, stopping
        self._began = time.monotonic()
        self.told = False

    @contextmanager
    def wait_for_turn(self, place: Path) -> Iterator[None]:
        """Run the block while no other driver starts a Ray below a folder, or after `START_TURN_TIMEOUT_CPU_S` anyway.

        A node ends itself where its agents take 15 s to start (Ray's issue 65983), and starts at once make each other
        slow: on two busy cores, of eight, none may succeed.

        Raises:
            KeyboardInterrupt: the start is to be given up.
        """
        until = time.monotonic() + START_TURN_TIMEOUT_CPU_S / count_usable_processors()
        with ExitStack() as open_folder:
            with suppress(OSError):  # a system may let nobody list it, a file system may lock no folders
                turn = os.open(place, os.O_RDONLY)
                open_folder.callback(os.close, turn)
                while not lock_file(turn) and time.monotonic() < until:
                    self.tell_if_slow("other studies of this machine start theirs first")
                    time.sleep(0.05)
            yield

    def tell_if_slow(self, reason: str | None = None) -> None:
        """Tell the user if it takes long, and why; None: how busy the machine is.

        Raises:
            KeyboardInterrupt: the start is to be given up.
        """
        if self._stopping():
            raise KeyboardInterrupt
        if not self.told and time.monotonic() - self._began > SLOW_START_NOTICE_S:
            self._tell(f"starting Ray; {reason or machine_load_text()}")
            self.told = True
