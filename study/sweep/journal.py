"""A study's ledger, without which it cannot go on."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from study.home.ledger import Ledger, TakenOver
from study.home.line import Event
from study.sweep.job import CannotGoOn


class Journal:
    """Takes the events of a study as its ledger does, and ends the study where the ledger cannot.

    Each method raises `CannotGoOn` where the disk fails or has no room, or where another driver has the study now.

    Args:
        ledger: open for appending.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def append(self, event: str, **fields: Any) -> Event:
        """See `Ledger.append`."""
        with self._ends_the_study():
            return self._ledger.append(event, **fields)

    def check(self) -> None:
        """See `Ledger.check`."""
        with self._ends_the_study():
            self._ledger.check()

    def sync(self) -> None:
        """See `Ledger.sync`."""
        with self._ends_the_study():
            self._ledger.sync()

    @contextmanager
    def together(self) -> Iterator[None]:
        """Have the events of a block on disk at its end, at once; see `Ledger.hold`."""
        self._ledger.hold()
        try:
            yield
        finally:
            self.sync()

    @contextmanager
    def _ends_the_study(self) -> Iterator[None]:
        try:
            yield
        except (OSError, TakenOver) as problem:
            raise CannotGoOn(problem, self._ledger.path) from problem
