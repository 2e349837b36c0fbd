"""Many courses of simulated studies, on all processors where that is worth it."""

import multiprocessing
import os
import signal
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection, wait
from typing import Self

from study.errors import Stopped
from study.simulation.cluster import Cluster
from study.simulation.course import Course
from study.simulation.curves import Curves
from study.simulation.simulate import Limit, simulate
from study.spec import StudySpec

ALONE = 2.0
"""Seconds of simulating after which the other processors help: their processes take as long to start."""

Job = tuple[StudySpec, Curves, Cluster, int, Limit | None]


class Courses:
    """Simulates courses, in this process at first; from `ALONE` seconds on in one for each processor.

    What comes of a course does not change with where it runs. As a context it ends the processes. Pipes alone lead to
    them: a pool's locks stay closed where a process that holds one is killed.
    """

    def __init__(self) -> None:
        self._spent = 0.0
        self._processes: list[tuple[multiprocessing.process.BaseProcess, Connection]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for process, connection in self._processes:
            process.kill()
            process.join()
            connection.close()
        self._processes = []

    def of(
        self,
        spec: StudySpec,
        curves: Callable[[int], Curves],
        cluster: Cluster,
        numbers: Sequence[int],
        limit: Limit | None = None,
    ) -> Iterator[Course]:
        """The courses of these numbers, in their order; all are to be taken.

        Args:
            curves: of the course of a number.

        Raises:
            Stopped: a process was ended, as by a machine without memory.
        """
        waiting = deque(numbers)
        while waiting and (self._spent < ALONE or len(waiting) == 1):
            began, number = time.monotonic(), waiting.popleft()
            course = simulate(spec, curves(number), cluster, number, limit=limit)
            self._spent += time.monotonic() - began
            yield course
        if waiting:
            yield from self._elsewhere([(spec, curves(number), cluster, number, limit) for number in waiting])

    def _elsewhere(self, jobs: Sequence[Job]) -> Iterator[Course]:
        if not self._processes:
            self._processes = [_process() for _ in range(os.cpu_count() or 1)]
        waiting, idle = deque(enumerate(jobs)), [connection for _, connection in self._processes]
        busy, found = dict[Connection, int](), dict[int, Course]()
        for place in range(len(jobs)):
            while place not in found:
                try:
                    while idle and waiting:
                        number, job = waiting.popleft()
                        idle[-1].send(job)
                        busy[idle.pop()] = number
                    for connection in wait(list(busy)):
                        assert isinstance(connection, Connection)
                        found[busy.pop(connection)] = _told(connection.recv())
                        idle.append(connection)
                except (EOFError, OSError):
                    raise Stopped("a process that simulated was ended, as for want of memory; run it again") from None
            yield found.pop(place)


def _process() -> tuple[multiprocessing.process.BaseProcess, Connection]:
    """Another process, which simulates what it is sent until nobody is left to send."""
    here, there = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=_serve, args=(there,), daemon=True)
    process.start()
    there.close()
    return process, here


def _serve(jobs: Connection) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all of a terminal: who began this process ends it
    while True:
        try:
            spec, curves, cluster, number, limit = jobs.recv()
        except EOFError:
            return
        try:
            jobs.send(simulate(spec, curves, cluster, number, limit=limit))
        except Exception as error:
            jobs.send(error)


def _told(answer: Course | Exception) -> Course:
    if isinstance(answer, Exception):
        raise answer
    return answer
