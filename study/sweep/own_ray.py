"""A Ray of one driver's own: started with patience, watched, and ended whole."""

import errno
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import psutil

from study.address import LOOPBACK, token_for
from study.errors import StartInterruptedError
from study.files import OWNER, RUN, scratch_folder
from study.places import for_sockets
from study.sweep.host_memory import Memory
from study.upstream.logging import is_verbose
from study.upstream.ray_internals import (
    SESSION,
    forget,
    lean_node,
    listening_at,
    preloading,
    with_own_signals,
    within,
    without_rays_own_lines,
)

# The processes that trials run in: they import what a trial needs while the driver still gets ready itself.

PRELOAD = "study.sweep.preload"
"""The module that each of them imports before it takes a trial."""

FOLDER = "STUDY_PROCESSES"
"""Variable that names the folder in which each says that it has done so."""

PATIENCE = 300.0
"""Seconds that they get: an idle machine needs six, one that is kept busy minutes. Then trials begin, and Ray starts
what is missing."""


def run_job(config: Mapping[str, Any], *, datasets: Mapping[str, Any], weights: Mapping[str, tuple[str, str]]) -> None:
    """See `study.sweep.worker.run_job`, which needs PyTorch: processes of trials import it, and the driver does not."""
    from study.sweep import worker

    worker.run_job(config, datasets=datasets, weights=weights)


def compute_features(model: Mapping[str, Any], dataset: Any, weights: Mapping[str, tuple[str, str]]) -> Any:
    """See `study.training.features.computed`; a task of Ray's, on a GPU where Ray gave it one."""
    from study import models
    from study.training import features
    from study.training.device import best

    models.take_weights_places(weights)
    return features.computed(model, dataset, best(), lambda done, total: None)


def say_ready() -> None:
    """Say that this process can take a trial, where somebody wants to know."""
    if folder := os.environ.get(FOLDER):
        (Path(folder) / str(os.getpid())).touch()


class Processes:
    """Those that a Ray of this process's own starts at once.

    Args:
        count: how many, as many as trials run at once.
        threads: of each, in libraries that ask the environment when they are imported. Ray says it when a trial begins,
            which is too late for what is imported by then.
        gpus: that Ray is told the machine has; None: it counts them itself.
    """

    def __init__(self, count: int, threads: int, gpus: int | None = None) -> None:
        self.count, self.gpus = count, gpus
        self._threads = threads
        self._folder: Path | None = None

    def variables(self, folder: Path) -> dict[str, str]:
        """Make the folder in which they say that they are ready; return the variables that tell them of it."""
        folder.mkdir(exist_ok=True)
        self._folder = folder
        threads = {} if "OMP_NUM_THREADS" in os.environ else {"OMP_NUM_THREADS": str(self._threads)}
        return {FOLDER: str(folder), **threads}

    def wait(self, cpus: float, stopping: Callable[[], bool]) -> None:
        """Wait until they are ready: for a trial that came before, Ray would start another.

        Args:
            cpus: that the Ray has. It starts no more than so many processes at once, and those beyond not at all
                before a trial wants them.
            stopping: says that nobody wants them any more.
        """
        if self._folder is None:
            return
        started = min(self.count, max(1, int(cpus)))
        deadline = time.monotonic() + PATIENCE
        while len(os.listdir(self._folder)) < started and time.monotonic() < deadline and not stopping():
            time.sleep(0.02)


TRIES = 3

STEP = 120.0
"""Seconds that a step of the start may take, those in which Ray's processes waited for a processor not counted."""

SLOW = 20.0
"""Seconds after which a start is slow enough to be told."""


TAIL = 3
"""Lines of what a process said last."""


LEAST = 2**20
"""Bytes that Ray's folder needs, for the logs of its processes and its sockets."""

LONGEST = 103 - SESSION - len(f"/{RUN}12345678")
"""Characters of the folder around Ray's: the path of a socket has at most 107 on Linux, 103 elsewhere."""


class RayStartError(Exception):
    """Ray did not start; the message says why."""


class OwnRay:
    """The processes of one start.

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
        """The same: what has ended stays so."""
        return self.ended()

    def last_words(self) -> str:
        """Return what they wrote before they ended."""
        lines = [line for file in self._folder.glob("*/session_2*/logs/*.err") for line in _lines(file)[-TAIL:]]
        return "".join(f"\n{line}" for line in lines)

    def starved(self) -> float:
        """Seconds in which they wanted a processor and had none; 0 where the system does not say."""
        total = 0.0
        for process in self.started.values():
            with suppress(OSError, ValueError, IndexError):
                total += int(Path(f"/proc/{process.pid}/schedstat").read_text(encoding="ascii").split()[1]) / 1e9
        return total

    def all(self) -> list[psutil.Process]:
        """They and all that they started."""
        tree = []
        for process in self.started.values():
            with suppress(psutil.Error):
                top = psutil.Process(process.pid)
                tree += [top, *top.children(recursive=True)]
        return tree

    def kill(self, tree: list[psutil.Process]) -> None:
        """End what still runs of a tree that `all` gave, and wait for it."""
        for process in tree:
            with suppress(psutil.Error):
                process.kill()
        for started in self.started.values():
            with suppress(subprocess.TimeoutExpired):
                started.wait(timeout=10)
        psutil.wait_procs(tree, timeout=10)  # after those of this process, whose status it would take


def _lines(file: Path) -> list[str]:
    with suppress(OSError):
        return file.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return []


@contextmanager
def own_ray(
    processes: Processes | None, tell: Callable[[str], None], stopping: Callable[[], bool], leave: Callable[[], None]
) -> Iterator[OwnRay]:
    """A Ray of this process's own, on loopback alone, whose workers inherit its environment, until the block is left.

    Args:
        processes: that it starts at once; None: each when it is needed.
        tell: is told what the start waits for.
        stopping: says that nobody wants it any more.
        leave: ends the connection to it.

    Raises:
        UserError: there is no folder for it.
        RayStartError: each of `TRIES` starts failed.
        KeyboardInterrupt: nobody wants it any more.
    """
    with scratch_folder(RUN, for_sockets(LONGEST)) as folder, token_for(folder):
        ray = _started(folder, processes, tell, stopping, leave)
        try:
            yield ray
        finally:
            _end(ray, forget if ray.ended() else leave)


def _started(
    folder: Path,
    processes: Processes | None,
    tell: Callable[[str], None],
    stopping: Callable[[], bool],
    leave: Callable[[], None],
) -> OwnRay:
    """The first start that succeeds; of one that fails no process is left when the next begins."""
    for attempt in range(1, TRIES + 1):
        if attempt > 1:
            tell(f"starting Ray, attempt {attempt}")
        ray = OwnRay(folder)
        try:
            patience = Patience(ray, tell, stopping)
            _start(ray, folder, processes, patience)
            if attempt > 1 or patience.told:
                tell("Ray runs")
            return ray
        except Exception as error:  # Ray raises what it likes, bare Exception too
            why = f"{ray.ended() or str(error).strip() or repr(error)}{ray.last_words()}"
            _end(ray, leave)
        except BaseException:
            _end(ray, leave)
            raise
    raise RayStartError(f"{why}{no_room(folder)}")


def no_room(folder: Path) -> str:
    """That there is none in a folder, if so: Ray's processes end without a word of it."""
    if shutil.disk_usage(folder).free >= LEAST:
        return ""
    return f"\n{folder.parent}: {os.strerror(errno.ENOSPC)}. Make room there, or name another folder: TMPDIR=..."


def _start(ray: OwnRay, folder: Path, processes: Processes | None, patience: "Patience") -> None:
    from ray import init
    from ray.util import get_node_ip_address

    if (address := get_node_ip_address()) != LOOPBACK:
        raise RayStartError(f"it would listen at {address}, for everybody")
    variables = {**preloading(PRELOAD), **processes.variables(folder / "ready")} if processes else {}
    count = processes.count if processes else 0
    variables[OWNER] = str(folder)
    logs = is_verbose()
    with lean_node(count, variables, ray.add, patience.wait, logs=logs), without_rays_own_lines(logs):
        start = partial(
            init,
            address="local",
            num_gpus=processes.gpus if processes else None,
            include_dashboard=False,
            log_to_driver=logs,
            configure_logging=False,
            namespace="study",
            **within(folder),
            **listening_at(LOOPBACK),
        )
        with_own_signals(start)


FORK_SERVER = "study.sweep.fork_server"
"""The module whose name the command of a process has that starts others for the trials of a training function."""

CLEAN_UP = 6.0
"""Seconds that these get to end: the trials' functions clean up."""


def _let_functions_clean_up(tree: list[psutil.Process]) -> None:
    """End the processes of training functions in good order: Ray ends its own, and what they started, at once."""
    servers = []
    for process in tree:
        with suppress(psutil.Error):
            if _is_server(process) and not _is_server(psutil.Process(process.ppid())):  # their forks look as they do
                process.terminate()
                servers.append(process)
    until = time.monotonic() + CLEAN_UP
    while any(map(_lives, servers)) and time.monotonic() < until:
        time.sleep(0.02)


def _lives(process: psutil.Process) -> bool:
    """Return whether it has not ended; who started it may not have asked yet."""
    with suppress(psutil.NoSuchProcess):
        return process.status() != psutil.STATUS_ZOMBIE
    return False


def _is_server(process: psutil.Process) -> bool:
    return any(FORK_SERVER in word for word in process.cmdline()[:4])


def _end(ray: OwnRay, leave: Callable[[], None]) -> None:
    tree = ray.all()
    try:
        _let_functions_clean_up(tree)
        leave()
    except KeyboardInterrupt:  # a second signal; what is left of Ray here would wait for a dead one when Python ends
        forget(StartInterruptedError.exit_status)
        raise
    finally:
        ray.kill(tree)


class Patience:
    """Waits for the steps of a start for as long as the machine makes progress with it.

    Attributes:
        told: whether it was told that this takes long.
    """

    def __init__(self, ray: OwnRay, tell: Callable[[str], None], stopping: Callable[[], bool]) -> None:
        self._ray, self._tell, self._stopping = ray, tell, stopping
        self._began = time.monotonic()
        self.told = False

    def wait(self, there: Callable[[], bool]) -> None:
        """Until it is there.

        Raises:
            RayStartError: one of Ray's processes has ended, or they do nothing.
            KeyboardInterrupt: nobody wants it any more.
        """
        began, starved = time.monotonic(), self._ray.starved()
        while not there():
            if self._stopping():
                raise KeyboardInterrupt
            if ended := self._ray.ended():
                raise RayStartError(ended)
            if time.monotonic() - began - (self._ray.starved() - starved) > STEP:
                raise RayStartError(f"nothing happened in {STEP:g} s")
            self._tell_if_slow()
            time.sleep(0.05)

    def _tell_if_slow(self) -> None:
        if not self.told and time.monotonic() - self._began > SLOW:
            self._tell(f"starting Ray; this machine is busy (load {os.getloadavg()[0]:.0f})")
            self.told = True
