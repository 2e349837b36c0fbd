"""A study while it runs, on a console: one line that updates on a terminal, plain lines elsewhere."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext

from rich.console import Console
from rich.live import Live
from rich.text import Text

from study.commands.progress import StudyProgress, clock
from study.home.record import StudyRecord
from study.spec import StudySpec
from study.text import printed

LINE_EVERY, LIVE_EVERY = 2.0, 0.25
"""Seconds between two plain lines, at least, and between two updates on a terminal."""

REST_PER_VIEW, MAX_REST_S = 100.0, 5.0
"""The view rests so many times as long as it computes, `MAX_REST_S` seconds at most: the best of thousands of trials
takes tens of milliseconds to find, in the process that hears all reports."""


class ProgressView:
    """Shows a study's progress on a console until the block is left.

    Args:
        console: a terminal gets a line that updates, and above it what is told; anything else, and a terminal that
            cannot move its cursor, gets plain lines.
        quiet: show nothing.
    """

    def __init__(self, console: Console, quiet: bool = False) -> None:
        self._console, self._quiet = console, quiet

    @contextmanager
    def __call__(self, spec: StudySpec, record: StudyRecord) -> Iterator[Callable[[str], None]]:
        """Gives what shows a line at once, from any thread.

        Of a study that is not in the home yet, whose record is empty, only the step that is told is shown. A terminal
        does not keep it.
        """
        shown = _Shown(self._console, StudyProgress(spec, record), is_there=bool(record.id))
        if self._quiet:
            yield shown.keep
        elif self._console.is_terminal and not self._console.is_dumb_terminal:
            live = Live(shown.live_line(), console=self._console, auto_refresh=False, transient=not shown.is_there)
            with live, repeated(LIVE_EVERY, lambda: shown.refresh(live)):
                yield shown.tell
        else:
            with repeated(LINE_EVERY, shown.print_numbers) if shown.is_there else nullcontext():
                yield shown.tell_all


def rest(seconds: float, spent: float) -> float:
    """Seconds until the next update, of those that would do, after one that took so much CPU time."""
    return max(seconds, min(MAX_REST_S, REST_PER_VIEW * spent))


@contextmanager
def repeated(seconds: float, show: Callable[[], None]) -> Iterator[None]:
    """Calls a function from a thread of its own every so many seconds until the block is left, and once more then; less
    often where it takes long, see `REST_PER_VIEW`."""
    over = threading.Event()

    def follow() -> None:
        last, spent = False, 0.0
        while not last:
            last = over.wait(rest(seconds, spent))
            began = time.thread_time()
            show()
            spent = time.thread_time() - began

    thread = threading.Thread(target=follow, name="progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


class _Shown:
    """One study on a console."""

    def __init__(self, console: Console, progress: StudyProgress, is_there: bool) -> None:
        self.progress, self.is_there = progress, is_there
        self._console, self._warned = console, False
        self._printed: object = None

    def keep(self, text: str) -> None:
        """Show nothing."""
        self.progress.tell(text)

    def tell(self, text: str) -> None:
        """Show what is no step as a line of its own."""
        if not self.progress.tell(text):
            self._print(text)

    def tell_all(self, text: str) -> None:
        """Show anything as a line of its own."""
        self.progress.tell(text)
        self._print(text)

    def live_line(self) -> Text:
        """Return what stands on a terminal."""
        if not self.is_there:
            return Text(printed(f"{clock(self.progress.elapsed())}  {self.progress.phase()}"))
        return Text(printed(self.progress.line()))

    def refresh(self, live: Live) -> None:
        """Bring a terminal up to date."""
        self.warn()
        live.update(self.live_line(), refresh=True)

    def print_numbers(self) -> None:
        """Show the numbers as a line, if they have changed."""
        if (numbers := self.progress.numbers()) != self._printed:
            self._printed = numbers
            self._console.print(printed(self.progress.line()), highlight=False, soft_wrap=True, markup=False)
            self.warn()

    def warn(self) -> None:
        """Show what is wrong with the study's metric, once."""
        if not self._warned and (warnings := self.progress.warnings()):
            self._warned = True
            for warning in warnings:
                self._print(f"warning: {warning}")

    def _print(self, text: str) -> None:
        line = printed(f"{clock(self.progress.elapsed())}  {text}")
        self._console.print(line, highlight=False, soft_wrap=True, markup=False)
