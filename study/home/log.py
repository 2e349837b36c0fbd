"""What the course of a study is written into: its ledger, or for a simulated study a list in memory."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from study.home.line import Event


class Log(Protocol):
    """Takes the events of one study, in order.

    Attributes:
        path: of its file.
    """

    path: Path

    def append(self, event: str, **fields: Any) -> Event:
        """Keep one event, and give it; fields that are None are left out."""

    def check(self) -> None:
        """Look whether this is still the study's driver.

        Raises:
            TakenOver: another one has the study now.
        """

    def hold(self) -> None:
        """Have the next events where nothing loses them at the next `sync`, at once."""

    def sync(self) -> None:
        """Have all events there, and from now on each as it is appended."""


class MemoryLog:
    """The log of a study that is on no disk.

    Args:
        clock: seconds since the epoch at which an event is.
        hears: is given each event.
    """

    path = Path("memory")

    def __init__(self, clock: Callable[[], float] = time.time, hears: Callable[[Event], object] | None = None) -> None:
        self._clock, self._hears = clock, hears

    def append(self, event: str, **fields: Any) -> Event:
        """One event, as it is."""
        entry = timed(event, self._clock(), fields)
        if self._hears is not None:
            self._hears(entry)
        return entry

    def check(self) -> None:
        """Nobody else can have it."""

    def hold(self) -> None:
        """Nothing: it is on no disk."""

    def sync(self) -> None:
        """Nothing: see `hold`."""


def timed(event: str, seconds: float, fields: dict[str, Any]) -> Event:
    """An event of this time, in seconds since the epoch to the millisecond, with its fields that are not None."""
    known = {key: value for key, value in fields.items() if value is not None}
    return {"event": event, "time": round(seconds, 3), **known}
