"""Which jobs go into which process: one by itself, or several that are trained as one."""

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Literal

from study.home.events import ENDED
from study.home.record import TrialRecord
from study.knobs import MOST
from study.sweep.agenda import Agenda
from study.sweep.failures import Failure
from study.sweep.job import Job, Work
from study.sweep.stack_size import StackSize
from study.sweep.works import Works
from study.training.config import TrialConfig
from study.training.stack.together import apart


@dataclass
class Row:
    """A job that may be done together with others.

    Attributes:
        job: of the agenda.
        run: of the trial, when it was taken.
        config: of the trial; None: it is done by itself.
        begun: whether the ledger has its start.
    """

    job: Job
    run: int
    config: TrialConfig | None
    begun: bool = False

    @property
    def trial(self) -> TrialRecord:
        return self.job.trial


class StackJobs:
    """Takes the agenda's jobs, and hands them to processes.

    A job that was taken and goes with none that run waits here for the next process; if the study stops before, its
    trial is one that did not begin.

    Args:
        agenda: of the study.
        works: says what a worker is told.
        drains: says that no process is to take more jobs: another study wants room.
    """

    def __init__(self, agenda: Agenda, works: Works, drains: Callable[[], bool] = lambda: False) -> None:
        self._agenda, self._works, self._drains = agenda, works, drains
        self._sizes: dict[str, StackSize] = {}
        self._at_once = agenda.spec.search.concurrency or MOST
        self._held: deque[Row] = deque()
        self._said: Literal["done"] | None = None  # by the agenda, when it had no more
        self._rows: dict[str, dict[int, Row]] = {}
        self._single: set[str] = set()
        self._limits: dict[int, int] = {}

    @cached_property
    def on(self) -> bool:
        """Whether jobs are done together at all."""
        return self._agenda.spec.resources.stack.trials != "none" and self._agenda.spec.function is None

    def take(self, name: str, free: int) -> tuple[Job, Work] | Literal["done"] | None:
        """What a free process is to do, and the first of its jobs.

        Args:
            name: of that process's work.
            free: processes that have none; the jobs that there are, are shared out among them.
        """
        if not self.on:
            job = self._agenda.next()
            return (job, self._works.of(job)) if isinstance(job, Job) else job
        room = self._room()
        self._let_go()
        if not self._held:
            self._draw()
        if not self._held:
            return self._said
        if room < 1:
            return None
        size = self._size(self._held[0])
        while len(self._held) < min(room, free * size.now) and self._draw():
            pass
        first = self._held.popleft()
        if first.config is None or size.most < 2:
            self._single.add(name)
            return first.job, self._works.of(first.job)
        rows, fitting = [first], [row for row in self._held if self._goes_with([first], row)]
        for row in fitting[: math.ceil((1 + len(fitting)) / free) - 1]:
            if len(rows) < room and self._goes_with(rows, row):
                rows.append(row)
                self._held.remove(row)
        self._rows[name] = {row.trial.number: row for row in rows}
        return first.job, self._works.together([row.job for row in rows], name, size.most)

    def joining(self, name: str) -> list[Row]:
        """Jobs that join a process's others at this moment; from here on they are its own."""
        rows, joined = self._rows[name], list[Row]()
        if not rows or self._drains():
            return joined
        size = self._size(next(iter(rows.values())))
        self._let_go()
        while len(rows) < size.now and self._room() > 0:
            here = list(rows.values())
            row = next((row for row in self._held if self._goes_with(here, row)), None)
            if row is not None:
                self._held.remove(row)
                rows[row.trial.number] = row
                joined.append(row)
            elif len(self._held) >= size.now or not self._draw():
                break
        return joined

    def took(self, name: str, seconds: float) -> None:
        """A process trained an epoch of each of its rows, in so many seconds of work for all."""
        if rows := self.rows(name):
            self._size(next(iter(rows.values()))).took(name, len(rows), seconds)

    def work(self, row: Row) -> Work:
        """What the process is told of one that joins."""
        return self._works.of(row.job)

    def rows(self, name: str) -> dict[int, Row]:
        """The jobs of a process, by the numbers of their trials."""
        return self._rows.get(name, {})

    def freed(self, name: str) -> None:
        """A process that had one job is free."""
        self._single.discard(name)

    def ended(self, name: str, failure: Failure | None = None) -> list[Row]:
        """A process has ended its work; those of its jobs that were not over.

        Args:
            failure: what ended it before they were: from here on they go into smaller stacks, and by themselves where
                it was an error in the code.
        """
        rows = list(self._rows.pop(name, {}).values())
        if failure is not None and not failure.node_died:
            for row in rows:
                self._limits[row.trial.number] = 1 if failure.kind == "BUG" else len(rows) // 2
            if failure.kind == "OOM" and len(rows) > 1:
                self._size(rows[0]).keep_below(len(rows) // 2)
        return rows

    def set_apart(self, number: int) -> None:
        """A trial is to be trained by itself."""
        self._limits[number] = 1

    def _let_go(self) -> None:
        """Drop what waits here and has ended meanwhile: the other seeds of a configuration that was pruned."""
        for row in list(self._held):
            if row.trial.state in ENDED and row.trial.stage != "final" and row.job.kind == "train":
                self._held.remove(row)

    def _draw(self) -> bool:
        """Take a job of the agenda's; whether it had one."""
        job = self._agenda.next()
        if isinstance(job, Job):
            self._held.append(Row(job, job.trial.run, self._config(job)))
            return True
        self._said = "done" if job == "done" else None
        return False

    def _config(self, job: Job) -> TrialConfig | None:
        """A trial's configuration, where it may be trained with others."""
        if job.kind == "test" or job.trial.alone or self._limits.get(job.trial.number, MOST) < 2:
            return None
        config = self._works.config(job)
        return config if apart(config, config) is None else None

    def _room(self) -> int:
        """How many more jobs may be under way at once."""
        return self._at_once - len(self._single) - sum(map(len, self._rows.values()))

    def _goes_with(self, rows: list[Row], row: Row) -> bool:
        """Whether a job can join these."""
        if rows[0].config is None or row.config is None:
            return False
        size = min(self._limits.get(other.trial.number, MOST) for other in [*rows, row])
        return len(rows) < min(size, self._size(rows[0]).now) and apart(rows[0].config, row.config) is None

    def _size(self, row: Row) -> StackSize:
        """Of the stacks that a job may be in."""
        config, trials = row.config, self._agenda.spec.resources.stack.trials
        of = " ".join(str(getattr(config, part).get("name")) for part in ("data", "model", "method")) if config else ""
        if of not in self._sizes:
            wanted = trials if isinstance(trials, int) else None
            known = self._agenda.record.stacked.get(of)
            self._sizes[of] = StackSize(wanted, partial(self._agenda.stacked, of), known)
        return self._sizes[of]
