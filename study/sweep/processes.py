"""The processes that trials run in: they import what a trial needs while the driver still gets ready itself."""

import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

PRELOAD = "study.sweep.preload"
"""What each of them imports before it takes a trial."""

FOLDER = "STUDY_PROCESSES"
"""Variable that names the folder in which each says that it has done so."""

PATIENCE = 300.0
"""Seconds that they get: an idle machine needs six, one that is kept busy minutes. Then trials begin, and Ray starts
what is missing."""


def run_job(config: Mapping[str, Any], *, datasets: Mapping[str, Any], weights: Mapping[str, tuple[str, str]]) -> None:
    """See `study.sweep.worker.run_job`, which needs PyTorch: processes of trials import it, and the driver does not."""
    from study.sweep import worker

    worker.run_job(config, datasets=datasets, weights=weights)


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
