"""A study while it runs: a live table on a terminal, plain lines elsewhere. Both only read the record."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from study import ranking
from study.commands.plan import confirm_trials, rule_trials
from study.home.events import ENDED
from study.home.record import StudyRecord
from study.metrics import searchable
from study.ranking import ablation
from study.ranking.picks import picked
from study.ranking.ties import ties
from study.spec import StudySpec
from study.sweep.steps import STARTING, STEPS

PHASES = {
    "baseline": "searching",
    "search": "searching",
    "replicate": "searching",
    "confirm": "confirming",
    "rule": "confirming",
    "ablation": "ablating",
    "final": "training",
}
"""What trials are run for, by their stage."""

TESTING = "testing"
"""Trials have run to their end, and models read the test split."""

LINE_EVERY = 2.0
"""Seconds between two plain lines, at least."""


class ProgressView:
    """Shows a study's progress on a console until the block is left.

    Args:
        console: a terminal gets a live table, without colours if `NO_COLOR` is set; anything else, and a terminal that
            cannot move its cursor, gets plain lines.
        quiet: show nothing.
    """

    def __init__(self, console: Console, quiet: bool = False) -> None:
        self._console, self._quiet = console, quiet

    @contextmanager
    def __call__(self, spec: StudySpec, record: StudyRecord) -> Iterator[Callable[[str], None]]:
        """Gives what shows a line at once, from any thread."""
        progress = StudyProgress(spec, record)
        if self._quiet:
            yield progress.tell
            return
        if self._console.is_terminal and not self._console.is_dumb_terminal:
            live = Live(get_renderable=progress.table, console=self._console, refresh_per_second=4)
            with live:
                yield progress.tell
            return

        def tell(text: str) -> None:
            progress.tell(text)
            self._print(f"{clock(progress.elapsed())}  {text}")

        over = threading.Event()
        thread = threading.Thread(target=self._lines, args=(progress, over), name="progress", daemon=True)
        thread.start()
        try:
            yield tell
        finally:
            over.set()
            thread.join()

    def _lines(self, progress: "StudyProgress", over: threading.Event) -> None:
        printed, warned = None, False
        while True:
            last = over.wait(LINE_EVERY)
            counts = progress.counts()
            if counts != printed:
                self._print(progress.line())
                printed = counts
                if not warned and (warnings := progress.warnings()):
                    warned = True
                    for warning in warnings:
                        self._print(f"{clock(progress.elapsed())}  warning: {warning}")
            if last:
                return

    def _print(self, line: str) -> None:
        self._console.print(line, highlight=False, soft_wrap=True, markup=False)


class StudyProgress:
    """The current numbers of a running study."""

    def __init__(self, spec: StudySpec, record: StudyRecord) -> None:
        self._spec, self._record = spec, record
        self._began = time.monotonic()
        self._first = self._done()
        self._working: float | None = None
        self._told, self._phase = "", STARTING
        self._to_repeat: set[int] | None = None

    def tell(self, text: str) -> None:
        """Take a step of the driver (`study.sweep.steps`) as the phase, until a trial runs; have the table say anything
        else from now on, below the numbers."""
        if text in STEPS:
            self._phase = text
        else:
            self._told = text

    def phase(self) -> str:
        """What the study is at: a step of the driver, or what its trials are run for."""
        trials = list(self._record.trials.values())
        running = {trial.stage for trial in trials if trial.state == "running"}
        if running:
            self._phase = " and ".join(dict.fromkeys(word for stage, word in PHASES.items() if stage in running))
        elif self._phase in PHASES.values() and not self.counts()["waiting"]:
            self._phase = TESTING
        return self._phase

    def counts(self) -> dict[str, int]:
        """Trials by state, planned ones as waiting; `interrupted` is left out if there are none."""
        counts = self._record.counts()
        counts["waiting"] += max(0, self._planned() - sum(counts.values()))
        return {state: count for state, count in counts.items() if count or state != "interrupted"}

    def best(self) -> str:
        """The best complete trial so far and the baseline's value."""
        spec = self._spec
        if spec.final_seeds is not None:
            finals = [trial for trial in self._record.by_stage("final") if trial.state == "complete"]
            mean = ranking.spreads(spec.objective, finals).get(spec.metric)
            return f"{spec.metric} {mean.mean:.4f} (mean of {mean.count})" if mean else "-"
        best = next(iter(ranking.searched(self._record, spec)), None)
        reference = ranking.baseline(self._record, spec)
        if best is None:
            return f"baseline {spec.metric} {reference.value:.4f}" if reference else "-"
        text = f"{spec.metric} {best.value:.4f} (trial {best.trial.number})"
        return f"{text}, baseline {reference.value:.4f}" if reference else text

    def warnings(self) -> list[str]:
        """What is wrong with the metric that is searched for, as far as it shows yet."""
        return [str(tie) for tie in ties(self._record, self._spec)]

    def remaining(self) -> float | None:
        """Seconds to go at the epochs per second so far; None at the beginning."""
        done = self._done() - self._first
        if done <= 0:
            return None
        self._working = self._working or time.monotonic()
        elapsed = time.monotonic() - self._working
        todo = self.expected() - self._done()
        return todo * elapsed / done if elapsed > 1.0 else None

    def line(self) -> str:
        """All of it in one line."""
        counts = ", ".join(f"{count} {state}" for state, count in self.counts().items() if count)
        return f"{clock(self.elapsed())}  {self.phase()}: {counts}; best so far: {self.best()}; {self._to_go()} to go"

    def table(self) -> Table:
        """All of it as a table."""
        table = Table(title=f"study {self._spec.name}", title_justify="left", show_header=False, box=None)
        table.add_column(style="bold")
        table.add_column()
        bar = "  ".join(f"[{COLOURS[state]}]{count} {state}[/]" for state, count in self.counts().items())
        table.add_row("phase", self.phase())
        table.add_row("trials", bar)
        table.add_row("best so far", self.best())
        table.add_row("time", f"{clock(self.elapsed())} elapsed, {self._to_go()} to go")
        for warning in self.warnings():
            table.add_row("warning", Text(warning))
        if self._told:
            table.add_row("", Text(self._told))
        return table

    def elapsed(self) -> float:
        """Seconds since this session began."""
        return time.monotonic() - self._began

    def _to_go(self) -> str:
        seconds = self.remaining()
        return "?" if seconds is None else f"about {clock(seconds)}"

    def _planned(self) -> int:
        spec = self._spec
        if spec.final_seeds is not None:
            return len(spec.final_seeds)
        return self._configurations() * len(spec.seeds) + self._confirming() + self._ablating()

    def _confirming(self) -> int:
        """Trials on fresh seeds; those for the picks of other rules at most, until the search has tried everything."""
        spec, record, configurations = self._spec, self._record, self._configurations()
        plan = ranking.confirm(record, spec)
        searched = list(record.by_stage("baseline", "search", "replicate"))
        is_over = len(searched) >= configurations * len(spec.seeds) and all(trial.state in ENDED for trial in searched)
        if plan.rules and is_over:
            return self._fresh_trials()
        reports = (trial.reports[0] for trial in searched if trial.reports)
        reported = next(reports, [f"val/{name}" for name in searchable()])
        return confirm_trials(spec, plan, configurations) + rule_trials(spec, plan, configurations, reported)

    def _fresh_trials(self) -> int:
        """Trials on fresh seeds that there are, and those that are to come."""
        record, spec = self._record, self._spec
        if self._to_repeat is None:
            self._to_repeat = {trial.number for trial in ranking.to_confirm(record, spec) + picked(record, spec)}
        trials, seeds = list(record.by_stage("confirm", "rule")), ranking.confirm_seeds(record, spec)
        wanted = {(number, seed) for number in self._to_repeat for seed in seeds}
        return len(trials) + len(wanted - {(trial.repeats, trial.seed) for trial in trials})

    def _ablating(self) -> int:
        """Trials of ablations that there are, and those that are to come."""
        record = self._record
        to_come = ablation.missing(record, self._spec, ablation.asked(record))
        return len(list(record.by_stage("ablation"))) + sum(1 for _ in to_come)

    def _configurations(self) -> int:
        return self._record.limit(self._spec.trials)

    def _done(self) -> int:
        return sum(trial.epochs for trial in list(self._record.trials.values()))

    def expected(self) -> float:
        """Epochs that the study will have run, if the trials to come take as many as the ended ones did."""
        spec = self._spec
        ended = [trial for trial in self._record.by_stage("baseline", "search", "replicate") if trial.ended is not None]
        mean = sum(trial.epochs for trial in ended) / len(ended) if ended else spec.epochs
        if spec.final_seeds is not None:
            return len(spec.final_seeds) * spec.epochs
        tries = self._configurations() * len(spec.seeds)
        return tries * mean + (self._confirming() + self._ablating()) * spec.epochs


def pace(spec: StudySpec, record: StudyRecord) -> dict[str, float | None] | None:
    """Epochs per minute while drivers worked, and seconds to go at that pace (None once the study is complete).

    None before the first epoch.
    """
    done = sum(trial.epochs for trial in record.trials.values())
    if not done or not record.worked:
        return None
    rate = done / record.worked
    todo = None if record.state == "complete" else max(0.0, StudyProgress(spec, record).expected() - done) / rate
    return {"epochs_per_minute": 60 * rate, "remaining": todo}


COLOURS = {
    "waiting": "dim",
    "running": "cyan",
    "pruned": "yellow",
    "complete": "green",
    "failed": "red",
    "interrupted": "magenta",
}


def clock(seconds: float) -> str:
    """`0:40`, `12:05`, `3:30:00`."""
    whole = max(0, round(seconds))
    if whole < 3600:
        return f"{whole // 60}:{whole % 60:02d}"
    return f"{whole // 3600}:{whole % 3600 // 60:02d}:{whole % 60:02d}"
