"""Show the progress of a study in a notebook: one line that updates, with messages below it."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console

from study.commands.progress import StudyProgress
from study.commands.progress_view import ProgressView, repeat_in_thread
from study.driver.session import StudyView
from study.home.record import StudyRecord
from study.spec import StudySpec

PROGRESS_UPDATE_INTERVAL_S = 1.0
"""Seconds between two updates."""


def create_progress_view(quiet: bool) -> StudyView:
    """Return a view that shows a study while it runs: in a notebook's cell, on a terminal, or as lines."""
    if _notebook_shell() is not None and not quiet:
        return NotebookView()
    return ProgressView(Console(), quiet)


def enable_inline_figures() -> None:
    """Have a notebook show Matplotlib's figures, which it otherwise does only once pyplot is imported."""
    if (shell := _notebook_shell()) is not None:
        from IPython.core.pylabtools import select_figure_formats

        select_figure_formats(shell, {"png"})


def _notebook_shell() -> Any:
    """Return the shell of a notebook's kernel, None elsewhere."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return shell if hasattr(shell, "kernel") else None


class NotebookView:
    """Shows a study's progress in the output of the cell that runs."""

    def __init__(self) -> None:
        self._handle: Any = None

    @contextmanager
    def __call__(self, spec: StudySpec, record: StudyRecord) -> Iterator[Callable[[str], None]]:
        """Yield a function that shows a line at once, from any thread."""
        from IPython.display import display

        progress = StudyProgress(spec, record)
        told: list[str] = []

        def text() -> dict[str, str]:
            warnings = [f"warning: {warning}" for warning in progress.metric_warnings()]
            return {"text/plain": "\n".join([f"study {spec.name}  {progress.progress_line()}", *warnings, *told])}

        handle = self._handle = self._handle or display(text(), raw=True, display_id=True)

        def tell(line: str) -> None:
            if not progress.enter_driver_step(line):
                told.append(line)

        with repeat_in_thread(PROGRESS_UPDATE_INTERVAL_S, lambda: handle.update(text(), raw=True)):
            yield tell
