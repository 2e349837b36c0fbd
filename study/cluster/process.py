"""Processes that are left running, found again by another command; and their ports and secrets."""

import os
import signal
import socket
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from study.address import LOOPBACK


@dataclass(frozen=True)
class Process:
    """A process group that was started; `born`, in seconds since the epoch, tells it from a later one of its number."""

    name: str
    pid: int
    born: float

    @classmethod
    def of(cls, name: str, pid: int) -> "Process":
        return cls(name, pid, psutil.Process(pid).create_time())

    @property
    def is_alive(self) -> bool:
        try:
            process = psutil.Process(self.pid)
            return process.create_time() == self.born and process.status() != psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            return False

    def kill(self, number: signal.Signals) -> None:
        """Send a signal to the whole group."""
        if self.is_alive:
            with suppress(ProcessLookupError):
                os.killpg(self.pid, number)


def free_port() -> int:
    """A port that nothing listens at."""
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])


def read(path: Path) -> str:
    """A secret, or a log of which every byte may be anything."""
    return path.read_text(encoding="utf-8", errors="replace")


def naming(scratch: str) -> Iterator[psutil.Process]:
    """Processes that name a temporary folder on their command line; none where its name is empty."""
    for process in psutil.process_iter(["cmdline"]):
        if scratch and any(scratch in word for word in process.info["cmdline"] or ()):
            yield process
