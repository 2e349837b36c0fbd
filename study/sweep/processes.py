"""The processes that trials run in: they import what a trial needs while the driver still gets ready itself."""

import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

PRELOAD = "study.sweep.preload"
"""What each of them imports before it takes a trial."""

FOLDER = "STUDY_PROCESSES"
"""Variable that names the folder in which each says that it has done so."""

PATIENCE = 60.0
"""Seconds that they get, many times what an idle machine needs. Then trials begin, and Ray starts what is missing."""


def say_ready() -> None:
    """Say that this process can take a trial, where somebody wants to know."""
    if folder := os.environ.get(FOLDER):
        (Path(folder) / str(os.getpid())).touch()


class Processes:
    """Those that a Ray of this process's own starts at once; a context that the Ray is in.

    Args:
        count: how many, as many as trials run at once.
        threads: of each, in libraries that ask the environment when they are imported. Ray says it when a trial begins,
            which is too late for what is imported by then.
    """

    def __init__(self, count: int, threads: int) -> None:
        self.count = count
        self._folder = tempfile.TemporaryDirectory(prefix="study-")
        self.variables = {FOLDER: self._folder.name}
        if "OMP_NUM_THREADS" not in os.environ:
            self.variables["OMP_NUM_THREADS"] = str(threads)

    def __enter__(self) -> "Processes":
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._folder.cleanup()

    def wait(self, cpus: float, stopping: Callable[[], bool]) -> None:
        """Wait until they are ready: for a trial that came before, Ray would start another.

        Args:
            cpus: that the Ray has. It starts no more than so many processes at once, and those beyond not at all
                before a trial wants them.
            stopping: says that nobody wants them any more.
        """
        started = min(self.count, max(1, int(cpus)))
        deadline = time.monotonic() + PATIENCE
        while len(os.listdir(self._folder.name)) < started and time.monotonic() < deadline and not stopping():
            time.sleep(0.02)
