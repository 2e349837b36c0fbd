"""Who runs a study, for drivers on different machines that share its folder, where file locks may not reach.

The file says who and since when. Its holder touches it every few seconds; one that was not touched for `EXPIRY` seconds
is nobody's. Only the file system's clock is read, so that the machines' clocks need not agree. On one machine the lock
on the ledger decides, and nobody waits for the lease of a dead process.
"""

import json
import os
import platform
import tempfile
import threading
import time
import uuid
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC
from pathlib import Path

from study.files import write_whole
from study.home.events import LATEST
from study.home.process import Process
from study.text import moment

RENEWAL, EXPIRY = 5.0, 60.0
"""Seconds between two signs of life, and after the last of them until a lease is nobody's."""

SETTLING = 1.0
"""Seconds after which of two machines that take a dead one's lease at once the last to write has it."""


class TakenOver(Exception):
    """Another driver has taken the study over; this one must not write any more."""


@dataclass(frozen=True)
class Holder:
    """Who runs a study: `owner` differs for every driver, `machine` for every running kernel, `since` in epoch s; the
    others are those of its `Process`."""

    owner: str
    machine: str
    host: str
    pid: int
    since: float
    namespace: str = ""
    started: str = ""
    command: str = ""

    @classmethod
    def this_process(cls) -> "Holder":
        mine = asdict(Process.this())
        return cls(uuid.uuid4().hex, machine(), platform.node(), since=round(time.time(), 3), **mine)

    @property
    def process(self) -> Process:
        """It, among the processes of its machine."""
        return Process(self.pid, self.namespace, self.started, self.command)

    @property
    def is_sound(self) -> bool:
        """Whether every field holds what it is for; what a file says need not."""
        texts = (self.owner, self.machine, self.host, self.namespace, self.started, self.command)
        numbers = type(self.pid) is int and type(self.since) in (int, float)
        return (
            numbers and 0 < self.pid < 2**31 and 0 <= self.since < LATEST and all(type(text) is str for text in texts)
        )

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}, since {moment(self.since, UTC)}"


def machine() -> str:
    """The running kernel, within which a file lock reaches everyone; where it has no id, the host's name."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return platform.node()


def holder(path: Path) -> Holder | None:
    """Who a lease file names, None if there is none; a damaged one is nobody's."""
    try:
        told = Holder(**json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError, RecursionError):
        return None
    return told if told.is_sound else None


def elsewhere(path: Path) -> Holder | None:
    """Who holds a lease on another machine at this moment, None if nobody does."""
    owner = holder(path)
    if owner is None or owner.machine == machine():
        return None
    try:
        return owner if age(path) < EXPIRY else None
    except FileNotFoundError:  # given back meanwhile
        return None


class Lease:
    """A lease that this process holds and renews until `release`; to be taken while the ledger is locked.

    Attributes:
        is_lost: whether another process was found to have it.

    Raises:
        TakenOver: another machine took it at the same moment.
        OSError: the folder cannot be written.
    """

    def __init__(self, path: Path) -> None:
        self._path, self._mine = path, Holder.this_process()
        before = holder(path)
        self._renewed, self.is_lost, self._over = time.monotonic(), False, threading.Event()
        self._write()
        if before and before.machine != self._mine.machine:
            time.sleep(SETTLING)
            self._renew()
            self.check()
        threading.Thread(target=self._keep, name="lease", daemon=True).start()

    def check(self) -> None:
        """To be called before each write.

        Raises:
            TakenOver: another driver has the study now.
        """
        if time.monotonic() - self._renewed > EXPIRY / 2:  # this process was stopped for a while
            self._renew()
        if self.is_lost:
            raise TakenOver(f"another driver took the study over: {holder(self._path) or 'its folder is gone'}")

    def release(self) -> None:
        """Give it back, if it is still this process's; on a disk that cannot be written it expires by itself."""
        self._over.set()
        if holder(self._path) == self._mine:
            with suppress(OSError):
                self._path.unlink()

    def _keep(self) -> None:
        while not self.is_lost and not self._over.wait(RENEWAL):
            with suppress(OSError):  # the next time, or `check`, will tell
                self._renew()

    def _renew(self) -> None:
        owner = holder(self._path)
        if owner == self._mine:
            os.utime(self._path)
        elif owner is not None or not self._path.parent.exists():
            self.is_lost = True
        elif not self._over.is_set():
            self._write()
        self._renewed = time.monotonic()

    def _write(self) -> None:
        write_whole(self._path, json.dumps(asdict(self._mine)))


def age(path: Path) -> float:
    """Seconds since a file was touched, by the clock of its file system (of this machine, where that is read-only)."""
    try:
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=".clock-") as file:
            now = os.stat(file.name).st_mtime
    except OSError:
        now = time.time()
    return now - path.stat().st_mtime
