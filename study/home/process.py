"""Which process a number means: the same number is another process after a while, and in another container at once."""

import os
import signal
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import psutil


class NotThere(Exception):
    """The process is gone, or its number is another one's now; says which."""


@dataclass(frozen=True)
class Process:
    """A process of this machine.

    Attributes:
        pid: its number within its namespace.
        namespace: which numbers its own is among, as Linux tells them; empty elsewhere, where all are of one kind.
        started: when it began; on Linux in clock ticks since the machine did, which no change of the clock moves.
        command: its command line.
    """

    pid: int
    namespace: str
    started: str
    command: str

    @classmethod
    def this(cls) -> "Process":
        """This process."""
        return cls.of(os.getpid())

    @classmethod
    def of(cls, pid: int) -> "Process":
        """The process that has a number at this moment.

        Raises:
            NotThere: there is none, or it has ended and waits for its parent to hear so.
        """
        import psutil

        try:
            process = psutil.Process(pid)
            if process.status() == psutil.STATUS_ZOMBIE:
                raise NotThere(f"process {pid} has ended")
            return cls(pid, _namespace(), _started(process), " ".join(process.cmdline()))
        except (psutil.Error, OSError):
            raise NotThere(f"there is no process {pid}") from None

    def send(self, number: signal.Signals) -> None:
        """Send it a signal, and never to another process that has its number by now.

        Raises:
            NotThere: it is gone.
            PermissionError: it is another user's.
        """
        if not hasattr(os, "pidfd_open"):
            self._check()
            os.kill(self.pid, number)
            return
        try:
            handle = os.pidfd_open(self.pid)  # stays with the process that has the number now
            try:
                self._check()
                signal.pidfd_send_signal(handle, number)
            finally:
                os.close(handle)
        except ProcessLookupError:
            raise NotThere(f"there is no process {self.pid}") from None

    def _check(self) -> None:
        now = Process.of(self.pid)
        if now.started != self.started:
            raise NotThere(f"process {self.pid} is another one now")
        if now != self:
            raise NotThere(f"process {self.pid} runs another command now: {now.command[:200]}")


def _namespace() -> str:
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:
        return ""


def _started(process: "psutil.Process") -> str:
    if sys.platform != "linux":
        return repr(process.create_time())
    told = Path(f"/proc/{process.pid}/stat").read_text(encoding="utf-8", errors="replace")
    return told.rpartition(")")[2].split()[19]  # the name before it may hold anything
