"""Many courses of simulated studies, on all processors where that is worth it."""

import gc
import multiprocessing
import signal
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.pool import Pool
from types import TracebackType
from typing import Self

from study.simulation.cluster import Cluster
from study.simulation.course import Course
from study.simulation.curves import Curves
from study.simulation.simulate import Limit, simulate
from study.spec import StudySpec

ALONE = 2.0
"""Seconds of simulating after which the other processors help: their processes take as long to start."""


class Courses:
    """Simulates courses, in this process at first; from `ALONE` seconds on in one for each processor.

    What comes of a course does not change with where it runs. As a context it ends the processes.
    """

    def __init__(self) -> None:
        self._spent = 0.0
        self._pool: Pool | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _: object, __: object, trace: TracebackType | None) -> None:
        if self._pool:
            self._pool.terminate()
            self._pool.join()
            self._pool = None
            traceback.clear_frames(trace)  # so that nothing refers to it, and it gives its semaphores back:
            gc.collect()  # after Ctrl-C the command ends without Python's own end

    def of(
        self,
        spec: StudySpec,
        curves: Callable[[int], Curves],
        cluster: Cluster,
        numbers: Sequence[int],
        limit: Limit | None = None,
    ) -> Iterator[Course]:
        """The courses of these numbers, in their order.

        Args:
            curves: of the course of a number.
        """
        waiting = list(numbers)
        while waiting and (self._spent < ALONE or len(waiting) == 1):
            began, number = time.monotonic(), waiting.pop(0)
            course = simulate(spec, curves(number), cluster, number, limit=limit)
            self._spent += time.monotonic() - began
            yield course
        if waiting:
            if self._pool is None:
                self._pool = multiprocessing.get_context("spawn").Pool(initializer=_ignore)
            jobs = ((spec, curves(number), cluster, number, limit) for number in waiting)
            yield from self._pool.imap(_simulated, jobs)


def _simulated(job: tuple[StudySpec, Curves, Cluster, int, Limit | None]) -> Course:
    spec, curves, cluster, number, limit = job
    return simulate(spec, curves, cluster, number, limit=limit)


def _ignore() -> None:
    """Ctrl-C reaches all processes of a terminal: the one that began them ends them."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
