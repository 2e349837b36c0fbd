"""A thread that follows the ledger file and brings what is new into MLflow, in batches.

It may lag, lose its connection or be killed: what is not in MLflow yet is in the ledger, and each event arrives once,
in order, sooner or later. The study itself never waits for MLflow.
"""

import logging
import os
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

from study.home import Home, StudyFolder
from study.ledger import Event, Tail
from study.spec import StudySpec
from study.tracking.progress import Progress

if TYPE_CHECKING:
    from study.tracking.writer import Writer

WINDOW = 0.5
"""Seconds between two looks at the ledger."""

PATIENCE, IMPATIENCE = 120.0, 5.0
"""Seconds that the end of a study waits for MLflow, and for one that does not answer."""

RETRY = 3.0
"""Seconds to wait when MLflow does not answer."""

ENVIRONMENT = {
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",  # trying again is this thread's work
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "30",
}


class Tracker:
    """Follows one study's ledger from `start` to `finish`."""

    def __init__(self, home: Home, folder: StudyFolder, spec: StudySpec) -> None:
        self._home, self._folder, self._spec = home, folder, spec
        self._progress = Progress.load(folder.tracking_file, home.tracking_uri)
        self._tail = Tail(folder.ledger_file, self._progress.offset)
        self._writer: Writer | None = None
        self._finish = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="tracking", daemon=True)
        self._trouble: str | None = None

    @property
    def is_behind(self) -> bool:
        """Whether MLflow lacks events of the ledger, or the study's files."""
        return self._progress.offset < self._folder.ledger_file.stat().st_size or not self._progress.attached

    def start(self) -> None:
        """Begin to follow the ledger."""
        self._thread.start()

    def finish(self) -> str | None:
        """Write the rest of the ledger; give up after a while, sooner if MLflow did not answer lately.

        Returns:
            What went wrong if not everything is in MLflow, else None.
        """
        self._finish.set()
        self._thread.join(PATIENCE if self._trouble is None else IMPATIENCE)
        return "MLflow is slow" if self._thread.is_alive() and not self._trouble else self._trouble

    def attach(self, files: dict[Path, str | None]) -> str | None:
        """Log files as artifacts of the study's run, after `finish`.

        Args:
            files: each with the artifact folder that it goes to (None: the topmost).

        Returns:
            What went wrong, else None.
        """
        try:
            writer = self._writer or self._connect()
            for path, folder in files.items():
                writer.attach(path, folder)
            self._progress.attached = True
            self._progress.save(self._folder.tracking_file)
        except Exception as error:  # as in _follow
            return _told(error)
        return None

    def _follow(self) -> None:
        pending: list[Event] = []
        while True:
            last = self._finish.is_set()
            try:
                pending += self._tail.new()
                if pending:
                    self._bring(pending)
                    pending = []
                self._trouble = None
                if last:
                    return
                self._finish.wait(WINDOW)
            except Exception as error:  # whatever MLflow, its database or the network raise: try again later
                self._trouble = _told(error)
                time.sleep(RETRY)

    def _bring(self, events: list[Event]) -> None:
        if self._writer is None:
            self._writer = self._connect()
        self._writer.write(events)
        self._progress.offset = self._tail.offset
        self._progress.save(self._folder.tracking_file)

    def _connect(self) -> "Writer":
        os.environ.update({name: value for name, value in ENVIRONMENT.items() if name not in os.environ})
        from study.tracking.writer import Writer

        for name in ("alembic", "mlflow"):
            logging.getLogger(name).setLevel(logging.WARNING)
        return Writer(self._home, self._folder, self._spec, self._progress)


def _told(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:300]
