"""Show a study on a console while it runs: one line that updates on a terminal, plain lines elsewhere."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext

from rich.console import Console
from rich.live import Live
from rich.text import Text

from study.commands.progress import StudyProgress, clock_text
from study.home.record import StudyRecord
from study.spec import StudySpec
from study.text import escape_control

PLAIN_LINE_INTERVAL_S, LIVE_LINE_INTERVAL_S = 2.0, 0.25
"""Least seconds between two plain lines, and between two updates on a terminal."""

REST_PER_UPDATE_TIME, MAX_REST_S = 100.0, 5.0
"""After an update the view rests `REST_PER_UPDATE_TIME` times as long as that took, at most `MAX_REST_S`: to find the
best of thousands of trials takes tens of milliseconds, in the process that receives all reports."""


class ProgressView:
    """Shows a study's progress on a console until the block is left.

    Args:
        console: a terminal gets a line that updates, with messages above it; anything else, and a terminal that cannot
            move its cursor, gets plain lines.
        quiet: show nothing.
    """

    def __init__(self, console: Console, quiet: bool = False) -> None:
        self._console, self._quiet = console, quiet

    @contextmanager
    def __call__(self, spec: StudySpec, record: StudyRecord) -> Iterator[Callable[[str], None]]:
        """Yield a function that shows a line at once, from any thread.

        A study that is not in the home yet has an empty record: only the step that it is told is shown, and a terminal
        does not keep it.
        """
        shown = _StudyOnConsole(self._console, StudyProgress(spec, record), is_in_home=bool(record.id))
        if self._quiet:
            yield shown.drop_text
        elif self._console.is_terminal and not self._console.is_dumb_terminal:
            live = Live(shown.live_line(), console=self._console, auto_refresh=False, transient=not shown.is_in_home)
            with live, repeat_in_thread(LIVE_LINE_INTERVAL_S, lambda: shown.refresh_live_line(live)):
                yield shown.show_unless_step
        else:
            with repeat_in_thread(PLAIN_LINE_INTERVAL_S, shown.print_if_changed) if shown.is_in_home else nullcontext():
                yield shown.show_text


def seconds_to_next_update(interval_s: float, update_cpu_seconds: float) -> float:
    """Return the seconds until the next update: `interval_s`, or more after one that took much CPU time."""
    return max(interval_s, min(MAX_REST_S, REST_PER_UPDATE_TIME * update_cpu_seconds))


@contextmanager
def repeat_in_thread(interval_s: float, show: Callable[[], None]) -> Iterator[None]:
    """Call a function from a separate thread every so many seconds until the block is left, and once more then.

    It is called less often where it takes long, see `REST_PER_UPDATE_TIME`.
    """
    over = threading.Event()

    def follow() -> None:
        last, spent = False, 0.0
        while not last:
            last = over.wait(seconds_to_next_update(interval_s, spent))
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


class _StudyOnConsole:
    """One study on a console."""

    def __init__(self, console: Console, progress: StudyProgress, is_in_home: bool) -> None:
        self.progress, self.is_in_home = progress, is_in_home
        self._console, self._warned = console, set[str]()
        self._printed: object = None

    def drop_text(self, text: str) -> None:
        """Take a text without showing anything."""
        self.progress.enter_driver_step(text)

    def show_unless_step(self, text: str) -> None:
        """Show a text on its own line, unless it is a step."""
        if not self.progress.enter_driver_step(text):
            self._print_with_elapsed_time(text)

    def show_text(self, text: str) -> None:
        """Show any text on its own line."""
        self.progress.enter_driver_step(text)
        self._print_with_elapsed_time(text)

    def live_line(self) -> Text:
        """Return the line that a terminal shows."""
        if not self.is_in_home:
            return Text(escape_control(f"{clock_text(self.progress.elapsed_seconds())}  {self.progress.phase()}"))
        return Text(escape_control(self.progress.progress_line()))

    def refresh_live_line(self, live: Live) -> None:
        """Bring a terminal up to date."""
        self.show_warnings_once()
        live.update(self.live_line(), refresh=True)

    def print_if_changed(self) -> None:
        """Show the numbers as a line, if they have changed."""
        if (numbers := self.progress.numbers_that_print_line()) != self._printed:
            self._printed = numbers
            self._print(self.progress.progress_line())
            self.show_warnings_once()

    def show_warnings_once(self) -> None:
        """Show what is wrong with the study's metric, and why a trial failed, each once."""
        wrong = {
            "metric": [f"warning: {warning}" for warning in self.progress.metric_warnings()],
            "failure": [failure] if (failure := self.progress.first_failure_line()) else [],
        }
        for kind in (kind for kind, lines in wrong.items() if lines and kind not in self._warned):
            self._warned.add(kind)
            for line in wrong[kind]:
                self._print_with_elapsed_time(line)

    def _print_with_elapsed_time(self, text: str) -> None:
        self._print(f"{clock_text(self.progress.elapsed_seconds())}  {text}")

    def _print(self, line: str) -> None:
        self._console.print(escape_control(line), highlight=False, soft_wrap=True, markup=False, emoji=False)
