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
        limit: seconds without a report; None: by the study's usual epoch, which is known from its reports.
        record: of the epochs so far.
        last: a trial's last epoch, which may take longer than the others.
    """

    def __init__(self, limit: float | None, record: StudyRecord, last: int) -> None:
        self._limit, self._last = limit, last
        self._now, self._looked = 0.0, time.monotonic()
        self._heard: dict[str, tuple[float, bool]] = {}
        reports = (report for trial in record.trials.values() for report in trial.reports)
        known = (report.get("time/epoch") for report in reports)
        self._epochs = deque((seconds for seconds in known if seconds is not None), NEWEST)

    def heard(self, name: str, epoch: int | None = None, seconds: float | None = None) -> None:
        """A trial reported: an epoch and the seconds that it took, or that it begins (None)."""
        self._advance()
        self._heard[name] = self._now, epoch is None or epoch + 1 == self._last
        if seconds is not None:
            self._epochs.append(seconds)

    def hanging(self, running: Iterable[str]) -> list[str]:
        """Those of the trials that run now which did not report for too long; each is told once."""
        self._advance()
        self._heard = {name: self._heard.get(name, (self._now, True)) for name in running}
        patience = {slow: self._patience(slow) for slow in (False, True)}
        hanging = [name for name, (at, slow) in self._heard.items() if self._now - at > patience[slow]]
        self._heard |= {name: (float("inf"), True) for name in hanging}
        return hanging

    def _advance(self) -> None:
        now = time.monotonic()
        self._now, self._looked = self._now + min(now - self._looked, BLINK), now

    def _patience(self, slow: bool) -> float:
        if self._limit is not None:
            return self._limit
        usual = max(LEAST, TIMES * statistics.median(self._epochs)) if self._epochs else LEAST
        return SLOW * usual if slow else usual
