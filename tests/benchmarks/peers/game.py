"""The game that every method plays on a table: a virtual clock, slots, a budget of epochs, and the incumbent's trace.

An epoch costs one. Each tick every busy slot trains one epoch; slots report in their order, and a slot that gets free
is filled before the next one reports. A trial that goes on later costs its further epochs only.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from curve_table import Array, Params, Table

TRIALS = 24
"""The budget in full trials."""

FREE = 1000
"""So many jobs in a row that cost nothing end a search: it has nothing new to ask for."""


@dataclass
class Job:
    """A row to be trained to an epoch. `data` is the method's own."""

    row: int
    until: int
    data: Any = None


class Method(Protocol):
    """A search that is asked for jobs and hears of each epoch."""

    def ask(self) -> Job | None:
        """What a free slot does next, None if it has to wait."""

    def report(self, job: Job, epoch: int, value: float) -> bool:
        """Hear of an epoch; whether the job goes on, where it is not at its end."""


class Rows:
    """Rows of a table that a search has not begun."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.left = np.ones(len(table.params), dtype=bool)

    def take(self, params: Params) -> int:
        """The nearest row that was not begun, or the nearest of all when all were; it counts as begun."""
        apart = self.table.distances(params)
        row = int(np.where(self.left | ~self.left.any(), apart, np.inf).argmin())
        self.left[row] = False
        return row


@dataclass(frozen=True)
class Played:
    """How a search went: the incumbent's changes as (epochs spent, row), and the share of slot time that was idle."""

    trace: list[tuple[int, int]]
    idle: float


def play(table: Table, method: Method, seed: int, slots: int, budget: int) -> Played:
    """A search on the curves of one seed.

    The incumbent is the best of the trials that came as far as any trial did: at their last epoch, the first to get
    there of equals.
    """
    values, done = table.val[seed], np.zeros(len(table.params), dtype=int)
    busy: list[Job | None] = [None] * slots
    trace: list[tuple[int, int]] = []
    front, best, spent, idle, ticks = 0, -1.0, 0, 0, 0

    def next_job() -> Job | None:
        for _ in range(FREE):
            job = method.ask()
            if job is None or job.until > done[job.row]:
                return job
            method.report(job, job.until, values[job.row, job.until - 1])
        return None

    while spent < budget:
        busy = [job or next_job() for job in busy]
        if not any(busy):
            break
        ticks += 1
        for slot, job in enumerate(busy):
            if job is None:
                idle += 1
                busy[slot] = next_job()
                continue
            done[job.row] += 1
            spent, epoch = spent + 1, int(done[job.row])
            value = float(values[job.row, epoch - 1])
            if epoch > front or (epoch == front and value > best):
                front, best = epoch, value
                if not trace or trace[-1][1] != job.row:
                    trace.append((spent, job.row))
            if spent == budget:
                break
            goes_on = method.report(job, epoch, value)
            if not goes_on or epoch >= job.until:
                busy[slot] = next_job()
    return Played(trace, idle / max(1, ticks * slots))


def regrets(trace: Sequence[tuple[int, int]], worth: Array, budget: int) -> Array:
    """Points that the incumbent is below the best row after 1, 2 ... `budget` epochs, nan before the first."""
    found = np.full(budget, np.nan)
    for spent, row in trace:
        found[spent - 1 :] = 100 * (worth.max() - worth[row])
    return found


def until(regret: Array, points: float = 1.0) -> int:
    """Epochs from which on the regret is at most so many points to the end; the whole budget if it is not.

    The first time would say little: while no trial is complete, the one that is an epoch ahead is the incumbent, so
    that many rows are for a moment, and a good one is soon among them.
    """
    far = np.flatnonzero(~(regret <= points))
    return min(int(far[-1]) + 2, len(regret)) if len(far) else 1


def first(regret: Array, points: float = 1.0) -> int:
    """Epochs until the regret is at most so many points for the first time; the whole budget if it never is."""
    near = np.flatnonzero(regret <= points)
    return int(near[0]) + 1 if len(near) else len(regret)


class RandomSearch:
    """Each row in full, in a random order."""

    def __init__(self, table: Table, seed: int) -> None:
        self._epochs = table.epochs
        self._order = list(np.random.default_rng(seed).permutation(len(table.params)))

    def ask(self) -> Job | None:
        return Job(int(self._order.pop()), self._epochs) if self._order else None

    def report(self, job: Job, epoch: int, value: float) -> bool:
        return True
