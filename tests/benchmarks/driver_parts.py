"""A clock of the driver's CPU time by part, for `overhead.py parts`.

In the thread that runs Tune's loop each call of a part's functions is timed by the thread's own CPU clock, without what
it calls of other parts; the rest of that thread is Tune's loop. What other threads compute is read from the kernel.
"""

import io
import os
import statistics
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Any

LOOP = "Tune's loop"
RAY_THREADS = "Ray's own threads"
THREADS = {"tracking": "MLflow tracking", "progress": "progress line"}
"""Parts that are threads of ours, by the thread's name."""

PARTS = (
    *(LOOP, "Tune's snapshots", "Ray's calls", RAY_THREADS, "adapters", "agenda and record", "Optuna ask and tell"),
    *("ledger lines", "ledger sync", "MLflow tracking", "progress line", "other threads"),
)


MOST_WARM = 50
"""Trials that count for nothing: MLflow is imported and processes start meanwhile."""


class PartClock:
    """CPU seconds of this process by part; to be made in the thread that runs Tune."""

    def __init__(self) -> None:
        self._spent: dict[str, float] = defaultdict(float)
        self._stack: list[str] = []
        self._main = threading.get_ident()
        self._mark = 0.0
        self._ended_threads: Counter[str] = Counter()
        self._begin: dict[str, float] = {}
        self._end: dict[str, float] = {}
        self._trials = 0

    def time(self, owner: Any, name: str, part: str) -> None:
        """Count calls of a function of a class or module as a part."""
        function = getattr(owner, name)

        @wraps(function)
        def timed(*arguments: Any, **options: Any) -> Any:
            if threading.get_ident() != self._main:
                return function(*arguments, **options)
            self._turn(part)
            try:
                return function(*arguments, **options)
            finally:
                self._turn(None)

        setattr(owner, name, timed)

    def time_property(self, owner: Any, name: str, part: str) -> None:
        """The same for a property."""
        holder = type("Holder", (), {name: staticmethod(getattr(owner, name).fget)})
        self.time(holder, name, part)
        setattr(owner, name, property(getattr(holder, name)))

    def _turn(self, part: str | None) -> None:
        now = time.thread_time()
        self._spent[self._stack[-1] if self._stack else LOOP] += now - self._mark
        if part is None:
            self._stack.pop()
        else:
            self._stack.append(part)
        self._mark = now

    def keep_at_end(self, owner: Any, name: str) -> None:
        """Remember what a thread spent when its function comes to its end: the kernel then forgets it."""
        function: Callable[..., Any] = getattr(owner, name)

        @wraps(function)
        def kept(*arguments: Any, **options: Any) -> Any:
            try:
                return function(*arguments, **options)
            finally:
                self._ended_threads[threading.current_thread().name] += time.thread_time()

        setattr(owner, name, kept)

    def ended(self, count: int, trials: int) -> None:
        """So many trials of all have ended: what is spent counts from the first tenth on, `MOST_WARM` trials at most,
        to the last."""
        warm = min(MOST_WARM, trials // 10)
        if count == warm:
            self._begin, self._trials = self._now(), trials - warm
        elif count == trials:
            self._end = self._now()

    def per_trial(self) -> dict[str, float]:
        """CPU milliseconds per trial of each part; MLflow's to the moment at which it has everything."""
        end = self._end | {part: self._now().get(part, 0.0) for part in ("MLflow tracking",)}
        return {part: 1000 * (end.get(part, 0.0) - self._begin.get(part, 0.0)) / self._trials for part in PARTS}

    def _now(self) -> dict[str, float]:
        """Seconds of each part since the process began."""
        self._spent[self._stack[-1] if self._stack else LOOP] += (now := time.thread_time()) - self._mark
        self._mark = now
        total, spent = time.process_time(), dict(self._spent)
        others = 0.0
        for name, seconds in (*self._ended_threads.items(), *_threads(self._main)):
            others += seconds
            part = THREADS.get(name, "other threads")
            spent[part] = spent.get(part, 0.0) + seconds
        spent[RAY_THREADS] = total - now - others
        return spent


def _threads(but: int) -> list[tuple[str, float]]:
    """Name and CPU seconds of Python's living threads."""
    found = []
    for thread in threading.enumerate():
        if thread.ident != but and thread.native_id:
            spent = Path(f"/proc/{os.getpid()}/task/{thread.native_id}/schedstat").read_text(encoding="ascii")
            found.append((thread.name, int(spent.split()[0]) / 1e9))
    return found


@contextmanager
def shown(spec: Any, record: Any) -> Iterator[None]:
    """The line of a terminal, which nobody sees."""
    from rich.console import Console

    from study.commands.progress_view import ProgressView

    with ProgressView(Console(file=io.StringIO(), force_terminal=True, width=120))(spec, record):
        yield


def table(found: Mapping[str, Sequence[Mapping[str, float]]], reports: int) -> str:
    """CPU milliseconds per trial that reports nothing, and per report, of each part: medians over repeats.

    Args:
        found: runs by case, those of one report before those of `reports`, with tracking before without.
    """
    medians = [{part: statistics.median(run[part] for run in runs) for part in PARTS} for runs in found.values()]
    pairs = list(zip(medians[::2], medians[1::2], strict=True))
    heads = [case.split(",")[0] for case in list(found)[::2]]
    lines = [f"{'':<24}" + "".join(f"{f'per trial, {head}':>26}{f'per report, {head}':>26}" for head in heads)]
    totals = [0.0] * (2 * len(pairs))
    for part in PARTS:
        cells = []
        for one, many in pairs:
            report = (many[part] - one[part]) / (reports - 1)
            cells += [one[part] - report, report]
        totals = [total + cell for total, cell in zip(totals, cells, strict=True)]
        lines.append(f"{part:<24}" + "".join(f"{cell:>26.2f}" for cell in cells))
    lines.append(f"{'all':<24}" + "".join(f"{total:>26.2f}" for total in totals))
    return "\n".join(lines)


def install() -> PartClock:
    """A clock of the driver's parts in this process, from here on."""
    import ray
    from ray.actor import ActorMethod
    from ray.tune.execution.tune_controller import TuneController

    from study.home.ledger import Ledger
    from study.home.record import StudyRecord
    from study.sweep.agenda import Agenda
    from study.sweep.search_stage import UntriedSuggestions
    from study.sweep.tune_adapters import AgendaStopper, JobSearcher, ReportingScheduler
    from study.tracking import MlflowTracker

    clock = PartClock()
    for owner, names, part in (
        (TuneController, ("checkpoint",), "Tune's snapshots"),
        (ray, ("wait", "get"), "Ray's calls"),
        (ActorMethod, ("_remote",), "Ray's calls"),
        (JobSearcher, ("suggest", "on_trial_complete"), "adapters"),
        (ReportingScheduler, ("choose_trial_to_run", "on_trial_result", "on_trial_complete"), "adapters"),
        (AgendaStopper, ("stop_all",), "adapters"),
        (Agenda, ("next", "reported", "started", "failed"), "agenda and record"),
        (StudyRecord, ("apply",), "agenda and record"),
        (UntriedSuggestions, ("ask", "adopt", "tell"), "Optuna ask and tell"),
        (Ledger, ("append",), "ledger lines"),
        (os, ("fsync",), "ledger sync"),
    ):
        for name in names:
            clock.time(owner, name, part)
    clock.time_property(Agenda, "is_over", "agenda and record")
    clock.keep_at_end(MlflowTracker, "_follow_ledger")
    return clock
