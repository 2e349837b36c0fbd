"""Processes that are left running, found again by another command; and their ports and secrets."""

import os
import signal
import socket
from collections.abc import Collection, Iterable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from study.address import LOOPBACK
from study.home import lease
from study.home.lease import machine

MARK = "STUDY_CLUSTER"
"""Variable that each process of a cluster which `study cluster up` started has inherited: the cluster's folder."""


@dataclass(frozen=True)
class Process:
    """A process group that was started.

    Attributes:
        pid: its leader's number.
        began: when the leader did, as `study.home.lease` tells it.
        machine: the running kernel, see `study.home.lease.machine`: after a reboot the number is another process's.
    """

    name: str
    pid: int
    began: str
    machine: str

    @classmethod
    def of(cls, name: str, pid: int) -> "Process":
        """The process that has a number at this moment; one that has ended already is never alive."""
        try:
            return cls(name, pid, lease.Process.of(pid).started, machine())
        except lease.NotThere:
            return cls(name, pid, "", machine())

    @property
    def is_alive(self) -> bool:
        try:
            return self.machine == machine() and lease.Process.of(self.pid).started == self.began
        except lease.NotThere:
            return False

    def tree(self) -> set[psutil.Process]:
        """It and all that it has started; nothing once it has ended."""
        with suppress(psutil.Error):
            return trees([psutil.Process(self.pid)]) if self.is_alive else set()
        return set()

    def kill(self, number: signal.Signals) -> None:
        """Send a signal to the whole group."""
        if self.is_alive:
            with suppress(ProcessLookupError):
                os.killpg(self.pid, number)


def free_ports(count: int, but: Collection[int] = ()) -> list[int]:
    """Ports that nothing listens at, no two alike.

    Args:
        but: none of these; they are to be somebody's who does not listen yet.
    """
    found: list[int] = []
    with ExitStack() as held:  # the kernel may give a port again once it is let go
        while len(found) < count:
            probe = held.enter_context(socket.socket())
            probe.bind((LOOPBACK, 0))
            port = int(probe.getsockname()[1])
            found += [port] if port not in but else []
    return found


def read(path: Path) -> str:
    """A secret, or a log of which every byte may be anything."""
    return path.read_text(encoding="utf-8", errors="replace")


def trees(tops: Iterable[psutil.Process]) -> set[psutil.Process]:
    """Processes and all that they have started."""
    found = set()
    for top in tops:
        with suppress(psutil.Error):
            found |= {top, *top.children(recursive=True)}
    return found


def of_cluster(mark: str, scratch: str, variable: str = MARK) -> set[psutil.Process]:
    """Return what runs of a cluster, whoever started it: processes with its mark, or with its scratch folder on their
    command line, and all that these have started. Ray's workers overwrite both, and are found below their node.

    Args:
        mark: the value of `MARK` in their environment.
        variable: another one that they have to have in their environment, besides.
    """
    found = []
    for one in psutil.process_iter(["cmdline", "environ"]):
        given = one.info["environ"] or {}
        is_ours = given.get(MARK) == mark or bool(scratch and scratch in " ".join(one.info["cmdline"] or ()))
        if is_ours and variable in given | {MARK: ""} and one.pid != os.getpid() and _is_in_reach(one.pid):
            found.append(one)
    return trees(found)


def _is_in_reach(pid: int) -> bool:
    """Return whether a process has the numbers of this one's namespace: those of a container may have a folder of the
    same name that is another one."""
    try:
        return os.readlink(f"/proc/{pid}/ns/pid") == os.readlink("/proc/self/ns/pid")
    except OSError:
        return not Path("/proc/self/ns/pid").exists()


def end(processes: Iterable[psutil.Process], number: signal.Signals, patience: float) -> None:
    """Send a signal to processes, and wait until they have ended, for so many seconds at most."""
    told = list(processes)
    for one in told:
        with suppress(psutil.Error):
            one.send_signal(number)
    psutil.wait_procs(told, timeout=patience)
