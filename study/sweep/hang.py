"""Which trials report no more."""

import statistics
import time
from collections import deque
from collections.abc import Iterable

from study.home.record import StudyRecord

TIMES, LEAST = 10.0, 60.0
"""A trial hangs when it did not report for so many times the study's usual epoch, at least so many seconds."""

SLOW = 10.0
"""What is no usual epoch may take so many times longer: start, first epoch, last epoch, reading the test split."""

NEWEST = 101
"""Epochs whose median is the usual one."""

BLINK = 5.0
"""Seconds that count at most between two looks: while this process itself was stopped, nothing was heard."""


class Watch:
    """Tells the trials that hang; only time counts in which this process was awake.

    Args:
        limit: seconds without a report; None: by the usual epoch of the study's trials on that kind of device, which is
            known from their reports; where there are none of that kind yet, by the slowest of the other kinds.
        record: of the epochs so far.
        last: a trial's last epoch, which may take longer than the others.
    """

    def __init__(self, limit: float | None, record: StudyRecord, last: int) -> None:
        self._limit, self._last = limit, last
        self._now, self._looked = 0.0, time.monotonic()
        self._heard: dict[str, tuple[float, bool]] = {}
        self._kinds: dict[str, str] = {}
        self._epochs: dict[str, deque[float]] = {}
        for trial in record.trials.values():
            for report in trial.reports:
                if (seconds := report.get("time/epoch")) is not None:
                    self._took(trial.device.get("name", ""), seconds)

    def heard(
        self, name: str, epoch: int | None = None, seconds: float | None = None, kind: str = "", last: int | None = None
    ) -> None:
        """A trial reported: an epoch and the seconds that it took, or that it begins (None).

        Args:
            kind: the name of the device that it runs on.
            last: its last epoch, where that is another than the others'.
        """
        self._advance()
        self._heard[name] = self._now, epoch is None or epoch + 1 == (last or self._last)
        self._kinds[name] = kind
        if seconds is not None:
            self._took(kind, seconds)

    def hanging(self, running: Iterable[str]) -> list[str]:
        """Those of the trials that run now which did not report for too long; each is told once."""
        self._advance()
        self._heard = {name: self._heard.get(name, (self._now, True)) for name in running}
        self._kinds = {name: kind for name, kind in self._kinds.items() if name in self._heard}
        usual = {kind: self._usual(kind) for kind in {"", *self._kinds.values()}}
        hanging = [
            name
            for name, (at, slow) in self._heard.items()
            if self._now - at > self._patience(usual[self._kinds.get(name, "")], slow)
        ]
        self._heard |= {name: (float("inf"), True) for name in hanging}
        return hanging

    def _advance(self) -> None:
        now = time.monotonic()
        self._now, self._looked = self._now + min(now - self._looked, BLINK), now

    def _took(self, kind: str, seconds: float) -> None:
        self._epochs.setdefault(kind, deque(maxlen=NEWEST)).append(seconds)

    def _usual(self, kind: str) -> float:
        """Seconds after which a trial on a kind of device is too long silent."""
        known = [self._epochs[kind]] if kind in self._epochs else list(self._epochs.values())
        return max([LEAST, *(TIMES * statistics.median(epochs) for epochs in known)])

    def _patience(self, usual: float, slow: bool) -> float:
        if self._limit is not None:
            return self._limit
        return SLOW * usual if slow else usual
