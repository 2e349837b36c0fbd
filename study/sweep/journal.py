"""A study's log, without which it cannot go on."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from study.home.ledger import TakenOver
from study.home.line import Event
from study.home.log import Log
from study.sweep.job import CannotGoOn


class Journal:
    """Takes the events of a study as its log does, and ends the study where the log cannot.

    Each method raises `CannotGoOn` where the disk fails or has no room, or where another driver has the study now.

    Args:
        log: open for appending.
    """

    def __init__(self, log: Log) -> None:
        self._log = log

    def append(self, event: str, **fields: Any) -> Event:
        """See `Ledger.append`."""
        with self._ends_the_study():
            return self._log.append(event, **fields)

    def check(self) -> None:
        """See `Ledger.check`."""
        with self._ends_the_study():
            self._log.check()

    def sync(self) -> None:
        """See `Ledger.sync`."""
        with self._ends_the_study():
            self._log.sync()

    @contextmanager
    def together(self) -> Iterator[None]:
        """Have the events of a block on disk at its end, at once; see `Ledger.hold`."""
        self._log.hold()
        try:
            yield
        finally:
            self.sync()

    @contextmanager
    def _ends_the_study(self) -> Iterator[None]:
        try:
            yield
        except (OSError, TakenOver) as problem:
            raise CannotGoOn(problem, self._log.path) from problem
