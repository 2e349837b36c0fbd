"""A thread that follows the ledger file and brings what is new into MLflow, in batches.

It may lag, lose its connection or be killed: what is not in MLflow yet is in the ledger, and each event arrives once,
in order, sooner or later. The study itself waits for MLflow only at its end, for a limited time.
"""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from study.errors import StudyStoppedError
from study.home.folder import Home, StudyFolder
from study.home.ledger import LedgerTail
from study.spec import StudySpec
from study.text import print_text
from study.tracking.connection import format_mlflow_error
from study.tracking.tracking_state import STUDY_RUN_KEY, TrackingState

if TYPE_CHECKING:
    from study.tracking.ledger_to_mlflow import LedgerToMlflowWriter

BATCH_INTERVAL_S = 2.0
"""Seconds between two looks at the ledger: each that finds something costs about 10 ms, however little it is."""

PAUSE_PER_WRITE_TIME, MAX_PAUSE_S = 3.0, 5.0
"""After writing, the thread pauses `PAUSE_PER_WRITE_TIME` times as long as it wrote, at most `MAX_PAUSE_S`, and not
while it is behind: a server on the same machine shares its cores with the trials, and events that wait for each other
take fewer requests."""

FINISH_TIMEOUT_S, UNREACHABLE_FINISH_TIMEOUT_S = 120.0, 5.0
"""Seconds that the end of a study waits for MLflow, and for one that does not answer."""

WAIT_NOTICE_DELAY_S = 3.0
"""Seconds of that wait before the user is told."""

LAST_REQUEST_GRACE_S = 1.0
"""Seconds that it waits afterwards for a request that is under way."""

RETRY_INTERVAL_S = 3.0
"""Seconds to wait when MLflow does not answer."""

MAX_MLFLOW_START_DELAY_S = 30.0
"""Most seconds that MLflow is not opened while a new study gets to its first report: importing it and making its
database takes seconds of the process that starts the trials."""


def pause_seconds(spent: float) -> float:
    """Return the seconds until the next look at the ledger, given the seconds that the last writing took."""
    return max(BATCH_INTERVAL_S, min(MAX_PAUSE_S, PAUSE_PER_WRITE_TIME * spent))


class MlflowTracker:
    """A thread that follows one study's ledger from `start_following` to `finish_writing`."""

    def __init__(self, home: Home, folder: StudyFolder, spec: StudySpec) -> None:
        self._home, self._folder, self._spec = home, folder, spec
        self._writer: LedgerToMlflowWriter | None = None
        self._finish, self._given_up = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._follow_ledger, name="tracking", daemon=True)
        self._trouble: str | None = None
        self._trouble_since = 0.0  # on the monotonic clock
        self._since: int | None = None
        self._begins_at, self._start_delay = 0, 0.0
        self._say: Callable[[str], object] | None = None
        self.notes: list[str] = []
        """Faults of MLflow that were repaired, in sentences for people."""

    @property
    def is_behind(self) -> bool:
        """Whether MLflow lacks events of the ledger, or has others, or lacks the study's files."""
        progress = self._load_state()
        return progress.offset != self._folder.ledger_file.stat().st_size or not progress.attached

    def has_lost_runs(self) -> bool:
        """Return whether MLflow lacks runs that it had; to be called without `start_following`.

        Raises:
            StudyStoppedError: MLflow cannot be asked.
        """
        try:
            self._connect_writer()
        except Exception as error:  # as in _follow_ledger
            name, database = self._folder.name, self._home.database_file
            remedy = f". Move {database} away, then study resume {name} makes its runs again"
            raise StudyStoppedError(
                f"{name} is complete, but whether MLflow has all of it cannot be told: "
                f"{format_mlflow_error(error, self._home.tracking_uri)}{remedy if self._home.uses_own_mlflow else ''}"
            ) from error
        return self.is_behind

    def start_following(self, start_delay: float = 0.0, say: Callable[[str], object] | None = None) -> None:
        """Begin to follow the ledger.

        Args:
            start_delay: most seconds that a database of the home's own waits for the study's next report; see
                `MAX_MLFLOW_START_DELAY_S`. A server is asked at once.
            say: is told, once, that MLflow has not answered from the beginning.
        """
        self._begins_at, self._say = self._folder.ledger_file.stat().st_size, say
        self._start_delay = start_delay if self._home.uses_own_mlflow else 0.0
        self._thread.start()

    def finish_writing(self, say: Callable[[str], object] = print_text) -> str | None:
        """Write the rest of the ledger; give up after a while, sooner if MLflow did not answer lately.

        Args:
            say: is told once that this takes a while.

        Returns:
            What went wrong if not everything is in MLflow, else None.
        """
        self._finish.set()
        began, told_so = time.monotonic(), False
        while self._thread.is_alive() and time.monotonic() < self._finish_deadline(began):
            self._thread.join(0.1)
            if not told_so and time.monotonic() - began > WAIT_NOTICE_DELAY_S:
                say(f"MLflow gets the rest; this waits {FINISH_TIMEOUT_S:.0f} s at most ...")
                told_so = True
        problem = (self._trouble or "it is slow") if self._thread.is_alive() else None
        self._given_up.set()
        self._thread.join(LAST_REQUEST_GRACE_S)
        return problem

    def give_up_writing(self) -> None:
        """Write no more, before `finish_writing`: the study is another driver's now."""
        self._given_up.set()

    def log_artifacts(
        self, files: Mapping[Path, str | None], lead: Mapping[str, Sequence[str]] | None = None
    ) -> str | None:
        """Log files as artifacts of the study's run, after `finish_writing` or without `start_following`.

        Args:
            files: each with the artifact folder that it goes to (None: the topmost).
            lead: the sentences of the report's lead by title, for the run's note.

        Returns:
            What went wrong, else None; nothing is done for a study that MLflow does not have.
        """
        if STUDY_RUN_KEY not in self._load_state().runs:
            return None
        try:
            self._connect_writer().log_artifacts(files, lead)
        except Exception as error:  # as in _follow_ledger
            return format_mlflow_error(error, self._home.tracking_uri)
        return None

    def _finish_deadline(self, began: float) -> float:
        """Return when a wait that began then is over; an MLflow that answers again after trouble gets its time."""
        answers = self._trouble is None or self._writer is not None
        return began + FINISH_TIMEOUT_S if answers else max(began, self._trouble_since) + UNREACHABLE_FINISH_TIMEOUT_S

    def _load_state(self) -> TrackingState:
        return TrackingState.load(self._folder.tracking_state_file, self._home.tracking_uri)

    def _wait_for_first_report(self) -> None:
        """Wait for the first report from now on, for an end without one, or for long enough."""
        tail = LedgerTail(self._folder.ledger_file, self._begins_at)
        deadline = time.monotonic() + self._start_delay
        while time.monotonic() < deadline and not self._finish.is_set() and not self._given_up.is_set():
            if any(event["event"] == "report" for event in tail.new_entries()):
                return
            self._finish.wait(BATCH_INTERVAL_S)

    def _follow_ledger(self) -> None:
        with suppress(Exception):  # the loop meets the same fault of the ledger again, tells it and retries
            self._wait_for_first_report()
        while not self._given_up.is_set():
            last, began = self._finish.is_set(), time.monotonic()
            try:
                while not self._given_up.is_set() and self._write_batch(to_the_end=last):
                    pass
                self._trouble = None
                if last:
                    return
                self._finish.wait(pause_seconds(time.monotonic() - began))
            except Exception as error:  # whatever MLflow, its database or the network raise: try again later
                if self._trouble is None:
                    self._trouble_since = time.monotonic()
                self._trouble = format_mlflow_error(error, self._home.tracking_uri)
                self._warn_once_if_unreachable()
                self._writer = None
                self._given_up.wait(RETRY_INTERVAL_S)

    def _warn_once_if_unreachable(self) -> None:
        """Warn once of an MLflow that has not answered yet; the trouble at a study's end is told anyway."""
        if self._say and self._writer is None and not self._finish.is_set():
            self._say(f"warning: MLflow gets nothing so far: {self._trouble}. The study goes on without it")
        self._say = None

    def _write_batch(self, to_the_end: bool) -> bool:
        """Write some events; return whether to go on at once, as there may be many more or this is the end."""
        writer = self._connect_writer()
        from study.tracking.ledger_to_mlflow import EVENTS_PER_BATCH

        if self._given_up.is_set():  # while MLflow was opened: another driver may be writing the same events
            return False
        try:
            return writer.write_next_events() >= (1 if to_the_end else EVENTS_PER_BATCH)
        except Exception:
            self._since = self._since or writer.reached
            raise

    def _connect_writer(self) -> "LedgerToMlflowWriter":
        if self._writer is None:
            from study.tracking.ledger_to_mlflow import LedgerToMlflowWriter

            self._writer = LedgerToMlflowWriter(self._home, self._folder, self._spec, self._since)
            self.notes += self._writer.notes
        return self._writer
