"""A Ray of one driver's own: started with patience, watched, and ended whole."""

import errno
import gc
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from study.address import LOOPBACK, token_for
from study.errors import StartInterruptedError
from study.files import OWNER, RUN, scratch_folder
from study.places import for_sockets
from study.sweep.host_memory import Memory
from study.upstream.cgroup import processors
from study.upstream.logging import is_verbose
from study.upstream.ray_internals import (
    SESSION,
    end_without_ray,
    lean_node,
    preloading,
    with_own_signals,
    without_rays_own_lines,
)

if TYPE_CHECKING:
    from ray import ObjectRef

    from study.data.dataset import Dataset
    from study.knobs import Section
    from study.sweep.job_payload import TuneConfig
    from study.training.features import Inputs

PRELOAD = "study.sweep.preload"
"""The module that each worker imports before it takes a trial, while the driver still prepares itself."""

FOLDER = "STUDY_PROCESSES"
"""Variable that names the folder in which each worker says that it has imported it."""

WORKER_TIMEOUT_S = 300.0
"""Most seconds that trials wait for workers: six on an idle machine, minutes on a busy one. Ray starts those that are
missing then."""


def run_job(
    config: "TuneConfig", *, datasets: Mapping[str, "ObjectRef"], weights: Mapping[str, tuple[str, str]]
) -> None:
    """Run a job, see `study.sweep.worker.run_job`; only the workers import PyTorch for it, not the driver."""
    from study.sweep import worker

    worker.run_job(config, datasets=datasets, weights=weights)


def compute_features(model: "Section", dataset: "Dataset", weights: Mapping[str, tuple[str, str]]) -> "Inputs":
    """Compute features in a task of Ray's, on a GPU where Ray gave it one; see `study.training.features.computed`."""
    from study.models import initial_weights
    from study.training import features
    from study.training.device import best

    initial_weights.take_places(weights)
    return features.computed(model, dataset, best(), lambda done, total: None)


def say_ready() -> None:
    """Note in the folder of `FOLDER`, where that is set, that this process can take a trial."""
    if folder := os.environ.get(FOLDER):
        (Path(folder) / str(os.getpid())).touch()


class Processes:
    """The workers that a Ray of this process's own starts at once.

    Args:
        count: as many as trials run at once.
        threads: of each, for libraries that read the environment when they are imported; Ray sets them only when a
            trial begins, too late for what is imported by then.
        gpus: number that Ray is told; None: it counts them itself.
    """

    def __init__(self, count: int, threads: int, gpus: int | None = None) -> None:
        self.count, self.gpus = count, gpus
        self._threads = threads
        self._folder: Path | None = None

    def variables(self, folder: Path) -> dict[str, str]:
        """Make the folder in which the workers say that they are ready; return the variables that tell them of it."""
        folder.mkdir(exist_ok=True)
        self._folder = folder
        threads = {} if "OMP_NUM_THREADS" in os.environ else {"OMP_NUM_THREADS": str(self._threads)}
        return {FOLDER: str(folder), **threads}

    def wait(self, cpus: float, stopping: Callable[[], bool]) -> None:
        """Wait until the workers are ready: for a trial that came before, Ray would start another one.

        Args:
            cpus: of this Ray, which starts no more workers than that at once, and others only when a trial needs them.
            stopping: returns whether the wait is to end.
        """
        if self._folder is None:
            return
        started = min(self.count, max(1, int(cpus)))
        deadline = time.monotonic() + WORKER_TIMEOUT_S
        while len(os.listdir(self._folder)) < started and time.monotonic() < deadline and not stopping():
            time.sleep(0.02)


START_TRIES = 3

STEP_TIMEOUT_S = 120.0
"""Seconds that a step of the start may take, without those in which Ray's processes waited for a processor."""

SLOW_START_S = 20.0
"""Seconds after which the user is told that a start takes long."""


TAIL = 3
"""Lines of a process's last words that are shown."""


MIN_FREE_BYTES = 2**20
"""Bytes that Ray's folder needs, for the logs of its processes and its sockets."""

MAX_FOLDER_CHARACTERS = 103 - SESSION - len(f"/{RUN}12345678")
"""Most characters of the folder around Ray's: the path of a socket has at most 107 on Linux, 103 elsewhere."""


class RayStartError(Exception):
    """Ray did not start; the message says why."""


class OwnRay:
    """The processes of one start of Ray.

    Attributes:
        started: those that this process started, by Ray's names for them; they start the others.
        grace: seconds that a driver gets to end by itself once one of them has ended.
    """

    grace = 10.0

    def __init__(self, folder: Path) -> None:
        self.started: dict[str, subprocess.Popen[bytes]] = {}
        self._folder, self._memory = folder, Memory.here()

    def add(self, name: str, process: "subprocess.Popen[bytes]") -> None:
        self.started[name] = process

    def ended(self) -> str | None:
        """Return which of them has ended, and how; None while all live."""
        for name, process in self.started.items():
            if (status := process.poll()) is not None:
                how = f"was ended by {signal.Signals(-status).name}" if status < 0 else f"ended with status {status}"
                if status == -signal.SIGKILL and self._memory.more_kills() > 0:
                    limit = f"memory is limited to {self._memory.limit / 2**30:.1f} GiB"
                    how += f", by the kernel's OOM killer: {limit}. Fewer trials at once: --set search.concurrency=N"
                return f"Ray's {name} {how}"
        return None

    def missing(self) -> str | None:
        """Return which of them has ended, as `ended`: what has ended does not come back."""
        return self.ended()

    def last_words(self) -> str:
        """Return the last lines that they wrote to their logs of errors."""
        lines = [line for file in self._folder.glob("*/session_2*/logs/*.err") for line in _lines(file)[-TAIL:]]
        return "".join(f"\n{line}" for line in lines)

    def starved(self) -> float:
        """Return the seconds in which they waited for a processor; 0 where the system does not count them."""
        total = 0.0
        for process in self.started.values():
            with suppress(OSError, ValueError, IndexError):
                total += int(Path(f"/proc/{process.pid}/schedstat").read_text(encoding="ascii").split()[1]) / 1e9
        return total

    def all(self) -> list[psutil.Process]:
        """Return these processes and all that they started."""
        tree = []
        for process in self.started.values():
            with suppress(psutil.Error):
                top = psutil.Process(process.pid)
                tree += [top, *top.children(recursive=True)]
        return tree

    def kill(self, tree: list[psutil.Process]) -> None:
        """Kill what still runs of a tree that `all` returned, and wait for its end."""
        for process in tree:
            with suppress(psutil.Error):
                process.kill()
        for started in self.started.values():
            with suppress(subprocess.TimeoutExpired):
                started.wait(timeout=10)
        psutil.wait_procs(tree, timeout=10)  # after the children of this process, whose status it would take


def _lines(file: Path) -> list[str]:
    with suppress(OSError):
        return file.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return []


def disconnect() -> None:
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
        with_own_signals(ray.shutdown)
    finally:
        if collects:
            gc.enable()


@contextmanager
def own_ray(processes: Processes | None, tell: Callable[[str], None], stopping: Callable[[], bool]) -> Iterator[OwnRay]:
    """Start a Ray of this process's own, on loopback, and end it after the block. Workers inherit the environment.

    Args:
        processes: the workers that it starts at once; None: each when it is needed.
        tell: is told what the start waits for.
        stopping: returns whether the start is to be given up.

    Raises:
        UserError: there is no folder for it.
        RayStartError: each of `START_TRIES` starts failed.
        KeyboardInterrupt: `stopping` says so.
    """
    with scratch_folder(RUN, for_sockets(MAX_FOLDER_CHARACTERS)) as folder, token_for(folder):
        ray = _started(folder, processes, tell, stopping)
        try:
            yield ray
        finally:
            _end(ray, end_without_ray if ray.ended() else disconnect)


def _started(
    folder: Path,
    processes: Processes | None,
    tell: Callable[[str], None],
    stopping: Callable[[], bool],
) -> OwnRay:
    """Return the first start that succeeds; no process of a failed one is left when the next begins."""
    for attempt in range(1, START_TRIES + 1):
        if attempt > 1:
            tell(f"starting Ray, attempt {attempt}")
        ray = OwnRay(folder)
        try:
            patience = StartWaiter(ray, tell, stopping)
            _start(ray, folder, processes, patience)
            if attempt > 1 or patience.told:
                tell("Ray runs")
            return ray
        except Exception as error:  # Ray raises what it likes, bare Exception too
            why = f"{ray.ended() or str(error).strip() or repr(error)}{ray.last_words()}"
            _end(ray)
        except BaseException:
            _end(ray)
            raise
    raise RayStartError(f"{why}{no_room(folder)}")


def no_room(folder: Path) -> str:
    """Return that a folder has no room, if so: Ray's processes end without a word of it."""
    if shutil.disk_usage(folder).free >= MIN_FREE_BYTES:
        return ""
    return f"\n{folder.parent}: {os.strerror(errno.ENOSPC)}. Make room there, or name another folder: TMPDIR=..."


def _start(ray: OwnRay, folder: Path, processes: Processes | None, patience: "StartWaiter") -> None:
    from ray import init
    from ray.util import get_node_ip_address

    if (address := get_node_ip_address()) != LOOPBACK:
        raise RayStartError(f"it would listen at {address}, for everybody")
    variables = {**preloading(PRELOAD), **processes.variables(folder / "ready")} if processes else {}
    count = processes.count if processes else 0
    variables[OWNER] = str(folder)
    logs = is_verbose()
    with lean_node(count, variables, ray.add, patience.wait, folder, logs=logs), without_rays_own_lines(logs):
        start = partial(
            init,
            address="local",
            num_cpus=processors(),
            num_gpus=processes.gpus if processes else None,
            include_dashboard=False,
            log_to_driver=logs,
            configure_logging=False,
            namespace="study",
        )
        with_own_signals(start)


FORK_SERVER = "study.sweep.fork_server"
"""Module by whose name in their command the servers are found that fork processes for training functions."""

CLEAN_UP = 6.0
"""Seconds that these servers get to end, in which the trials' functions clean up."""


def _let_functions_clean_up(tree: list[psutil.Process]) -> None:
    """End the servers of training functions with time to clean up: Ray would kill its processes and theirs at once."""
    servers = []
    for process in tree:
        with suppress(psutil.Error):
            if _is_server(process) and not _is_server(psutil.Process(process.ppid())):  # forks have the same command
                process.terminate()
                servers.append(process)
    until = time.monotonic() + CLEAN_UP
    while any(map(_lives, servers)) and time.monotonic() < until:
        time.sleep(0.02)


def _lives(process: psutil.Process) -> bool:
    """Return whether a process has not ended; a zombie has, though its parent has not asked yet."""
    with suppress(psutil.NoSuchProcess):
        return process.status() != psutil.STATUS_ZOMBIE
    return False


def _is_server(process: psutil.Process) -> bool:
    return any(FORK_SERVER in word for word in process.cmdline()[:4])


def _end(ray: OwnRay, part: Callable[[], None] = disconnect) -> None:
    tree = ray.all()
    try:
        _let_functions_clean_up(tree)
        part()
    except KeyboardInterrupt:  # a second signal; what is left of Ray here would wait for a dead one when Python ends
        end_without_ray(StartInterruptedError.exit_status)
        raise
    finally:
        ray.kill(tree)


class StartWaiter:
    """Waiting for the steps of a start, for as long as the machine makes progress with them.

    Attributes:
        told: whether the user was told that this takes long.
    """

    def __init__(self, ray: OwnRay, tell: Callable[[str], None], stopping: Callable[[], bool]) -> None:
        self._ray, self._tell, self._stopping = ray, tell, stopping
        self._began = time.monotonic()
        self.told = False

    def wait(self, there: Callable[[], bool]) -> None:
        """Wait until `there` returns True.

        Raises:
            RayStartError: one of Ray's processes has ended, or they make no progress.
            KeyboardInterrupt: the start is to be given up.
        """
        began, starved = time.monotonic(), self._ray.starved()
        while not there():
            if self._stopping():
                raise KeyboardInterrupt
            if ended := self._ray.ended():
                raise RayStartError(ended)
            if time.monotonic() - began - (self._ray.starved() - starved) > STEP_TIMEOUT_S:
                raise RayStartError(f"nothing happened in {STEP_TIMEOUT_S:g} s")
            self._tell_if_slow()
            time.sleep(0.05)

    def _tell_if_slow(self) -> None:
        if not self.told and time.monotonic() - self._began > SLOW_START_S:
            self._tell(f"starting Ray; this machine is busy (load {os.getloadavg()[0]:.0f})")
            self.told = True
