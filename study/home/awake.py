"""How long a driver did not run: its machine slept, its virtual machine was paused, or it was stopped.

A study's times are those of the wall clock, which goes on meanwhile, or leaps when it is set right afterwards.
"""

import threading
import time

TICK, LATE = 1.0, 10.0
"""Seconds between two looks at the clock; and by how much a look is late if this process did not run, as no load delays
a thread for so long."""


class Awake:
    """A thread that looks at the clock until `end`."""

    def __init__(self) -> None:
        self._at, self._asleep = time.time(), 0.0
        self._lock, self._over = threading.Lock(), threading.Event()
        threading.Thread(target=self._look_on, name="awake", daemon=True).start()

    def slept(self) -> float:
        """Return the seconds since the last call in which this process did not run, 0.0 where it always did."""
        self._look()
        with self._lock:
            asleep, self._asleep = self._asleep, 0.0
        return round(asleep, 3)

    def end(self) -> None:
        """Stop the thread."""
        self._over.set()

    def _look_on(self) -> None:
        while not self._over.wait(TICK):
            self._look()

    def _look(self) -> None:
        with self._lock:
            now = time.time()
            late = now - self._at - TICK
            self._asleep += late if late > LATE else 0.0
            self._at = now
