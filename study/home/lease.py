"""The holder of a study: a process, identified beyond its number, and its lease on the study's folder."""

import json
import os
import platform
import signal
import sys
import tempfile
import threading
import time
import uuid
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from annotated_types import Ge, Gt, Lt

from study.files import read_json_or_none, write_atomically
from study.text import format_time

if TYPE_CHECKING:
    import psutil


MAX_TIMESTAMP = 253_402_300_800.0
"""End of the year 9999, in seconds since the epoch: the last time that can be shown."""


class ProcessGoneError(Exception):
    """The process is gone, or its number is another one's now; says which."""


@dataclass(frozen=True)
class ProcessIdentity:
    """A process of this machine, identified beyond its number, which is reused and differs between containers.

    Attributes:
        pid: its number within its namespace.
        namespace: of its number, as Linux gives it; empty on other systems, which have one alone.
        started: when it began; on Linux in clock ticks since the machine did, which no change of the clock moves.
        command: its command line.
    """

    pid: int
    namespace: str
    started: str
    command: str

    @classmethod
    def current(cls) -> "ProcessIdentity":
        """Return this process."""
        return cls.from_pid(os.getpid())

    @classmethod
    def from_pid(cls, pid: int) -> "ProcessIdentity":
        """Return the process that has a number at this moment.

        Raises:
            ProcessGoneError: there is none, or it has ended and waits for its parent to hear so.
        """
        import psutil

        try:
            process = psutil.Process(pid)
            if process.status() == psutil.STATUS_ZOMBIE:
                raise ProcessGoneError(f"process {pid} has ended")
            command = " ".join(process.cmdline()).encode("utf-8", "replace").decode()  # a name may be no UTF-8
            return cls(pid, _pid_namespace(), _start_time(process), command)
        except (psutil.Error, OSError):
            raise ProcessGoneError(f"there is no process {pid}") from None

    def send_signal(self, number: signal.Signals) -> None:
        """Send a signal to this process, but not to another one that has its number by now.

        Raises:
            ProcessGoneError: it is gone.
            PermissionError: it is another user's.
        """
        now = ProcessIdentity.from_pid(self.pid)
        if now.started != self.started:
            raise ProcessGoneError(f"process {self.pid} is another one now")
        if now != self:
            raise ProcessGoneError(f"process {self.pid} runs another command now: {now.command[:200]}")
        try:
            os.kill(self.pid, number)
        except ProcessLookupError:
            raise ProcessGoneError(f"there is no process {self.pid}") from None


def _pid_namespace() -> str:
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:
        return ""


def _start_time(process: "psutil.Process") -> str:
    if sys.platform != "linux":
        return repr(process.create_time())
    told = Path(f"/proc/{process.pid}/stat").read_text(encoding="utf-8", errors="replace")
    return told.rpartition(")")[2].split()[19]  # the name before it may hold anything


RENEWAL_INTERVAL_S, EXPIRY_S = 5.0, 60.0
"""Seconds between two signs of life, and from the last one until a lease has expired."""

TAKEOVER_SETTLE_S = 1.0
"""Seconds after which of two machines that take a dead one's lease at once the last to write has it, and within which a
lease that is being written can be read."""


class LeaseLostError(Exception):
    """Another driver has taken the study over; this one must not write any more."""


@dataclass(frozen=True)
class LeaseHolder:
    """The holder of a study, as its lease file names it.

    `owner` differs for every driver, `machine` for every running kernel, `since` is in seconds since the epoch; the
    other fields are those of its `Process`.
    """

    owner: str
    machine: str
    host: str
    pid: Annotated[int, Gt(0), Lt(2**31)]
    since: Annotated[float, Ge(0), Lt(MAX_TIMESTAMP)]
    namespace: str = ""
    started: str = ""
    command: str = ""

    @classmethod
    def of_this_process(cls) -> "LeaseHolder":
        mine = asdict(ProcessIdentity.current())
        return cls(uuid.uuid4().hex, machine_id(), platform.node(), since=round(time.time(), 3), **mine)

    @property
    def process(self) -> ProcessIdentity:
        """The holder as a process of its machine."""
        return ProcessIdentity(self.pid, self.namespace, self.started, self.command)

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}, since {format_time(self.since, UTC)}"


def machine_id() -> str:
    """Return the id of the running kernel, within which a file lock reaches everyone; without one the host's name."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return platform.node()


def read_holder(path: Path) -> LeaseHolder | None:
    """Return the holder that a lease file names; None if there is none, or the file is damaged."""
    return read_json_or_none(path, LeaseHolder)


def holder_on_other_machine(path: Path) -> LeaseHolder | None:
    """Return who holds a lease on another machine at this moment, None if nobody does."""
    owner = read_holder(path)
    if owner is None or owner.machine == machine_id():
        return None
    try:
        return owner if seconds_since_touched(path) < EXPIRY_S else None
    except FileNotFoundError:  # given back meanwhile
        return None


class Lease:
    """A lease that this process holds and renews until `release`; to be taken while the ledger is locked.

    Attributes:
        is_lost: whether another process was found to have it.

    Raises:
        LeaseLostError: another machine took it at the same moment.
        OSError: the folder cannot be written.
    """

    def __init__(self, path: Path) -> None:
        self._path, self._mine = path, LeaseHolder.of_this_process()
        self._renewed, self.is_lost, self._over = time.monotonic(), False, threading.Event()
        if not self._try_create():
            self._take_over()
        threading.Thread(target=self._renew_until_released, name="lease", daemon=True).start()

    def check_still_held(self) -> None:
        """Check that this process still has the lease; to be called before each write.

        Raises:
            LeaseLostError: another driver has the study now.
        """
        if time.monotonic() - self._renewed > EXPIRY_S / 2:  # this process was stopped for a while
            self._renew()
        if self.is_lost:
            who = read_holder(self._path) or "its folder is gone"
            raise LeaseLostError(f"another driver took the study over: {who}")

    def release(self) -> None:
        """Give the lease back, if it is still this process's; on a disk that cannot be written it expires by itself."""
        self._over.set()
        if read_holder(self._path) == self._mine:
            with suppress(OSError):
                self._path.unlink()

    def _renew_until_released(self) -> None:
        while not self.is_lost and not self._over.wait(RENEWAL_INTERVAL_S):
            with suppress(OSError):  # tried again next time, or by `check`
                self._renew()

    def _renew(self) -> None:
        owner = read_holder(self._path)
        if owner == self._mine:
            os.utime(self._path)
        elif owner is not None or not self._path.parent.exists():
            self.is_lost = True
        elif not self._over.is_set() and not self._try_create() and _read_holder_being_written(self._path) is None:
            write_atomically(self._path, self._file_content)
        self._renewed = time.monotonic()

    def _try_create(self) -> bool:
        """Write the lease file if there is none, as only one of all machines can; return whether there was none."""
        try:
            with open(self._path, "xb") as file:
                file.write(self._file_content)
        except FileExistsError:
            return False
        return True

    def _take_over(self) -> None:
        """Take the lease of a driver that is gone.

        Raises:
            LeaseLostError: it is not gone, or another machine takes its lease, too.
        """
        before = _read_holder_being_written(self._path)
        if holder_on_other_machine(self._path):
            raise LeaseLostError(f"another driver took the study: {before}")
        is_old = True
        with suppress(FileNotFoundError):
            is_from_here = before is not None and before.machine == self._mine.machine
            is_old = not is_from_here or seconds_since_touched(self._path) > EXPIRY_S / 2
        write_atomically(self._path, self._file_content)
        if is_old:  # then another machine may take it at this moment
            time.sleep(TAKEOVER_SETTLE_S)
            self._renew()
            self.check_still_held()

    @property
    def _file_content(self) -> bytes:
        return json.dumps(asdict(self._mine)).encode()


def _read_holder_being_written(path: Path) -> LeaseHolder | None:
    """Return the holder as `read_holder` does, but wait a moment for a file that is being written."""
    until = time.monotonic() + TAKEOVER_SETTLE_S
    while (found := read_holder(path)) is None and path.exists() and time.monotonic() < until:
        time.sleep(0.02)
    return found


def seconds_since_touched(path: Path) -> float:
    """Return the seconds since a file was touched, by the clock of its file system, or of this machine if read-only."""
    try:
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=".clock-") as file:
            now = os.stat(file.name).st_mtime
    except OSError:
        now = time.time()
    return now - path.stat().st_mtime
