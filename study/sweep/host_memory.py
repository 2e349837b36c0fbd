"""Whether the machine's memory ended a process: by the kernel's count of what its OOM killer ended, and by what the
process held when it was last looked at."""

import os
import re
import socket
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from study.upstream import cgroup

KILLED = re.compile(r"killed|SIGKILL|terminated abruptly|exited unexpectedly")
"""The words of PyTorch's DataLoader, joblib, `concurrent.futures` and `subprocess` about a process that was ended."""

FRESH = 30.0
"""Seconds for which a kill that is counted may be that of a process whose end is heard of only now; others were of
somebody else's."""

GREEDY = 0.5
"""The share of the memory of which a process that just vanished held so much that it was most likely ended for it."""

ANSWER_TIMEOUT_S = 20.0
"""Seconds that another node gets to say its count: a process has to start on it."""


@dataclass(frozen=True)
class Memory:
    """What a process may hold, and where it is counted what the kernel ended for want of it.

    Attributes:
        limit: bytes for all processes of its control group, or of the machine.
        counter: the file with the count; None: the system has none.
        kills: the count when this was asked.
    """

    limit: int
    counter: str | None = None
    kills: int = 0

    @classmethod
    def here(cls) -> "Memory":
        """That of this process."""
        total, counter = psutil.virtual_memory().total, cgroup.kill_counter()
        limit = min(total, cgroup.memory_limit() or total)
        return cls(limit) if counter is None else cls(limit, str(counter), cgroup.kills(counter) or 0)

    def more_kills(self) -> int:
        """Return how many were ended since, as told on this machine."""
        return 0 if self.counter is None else (kills(self.counter) or 0) - self.kills

    def cause_of_death(self, held: int) -> str | None:
        """Why a process of this machine that vanished since was ended by memory; None: nothing says so.

        Args:
            held: bytes that it held when it was last looked at, or at most.
        """
        return self.explained(self.more_kills() > 0, held)

    def explained(self, is_counted: bool, held: int) -> str | None:
        """See `cause_of_death`; `is_counted`: the kernel counts a kill that may be that of the process."""
        limit = self.limit / 2**30
        if is_counted:
            return f"the kernel's OOM killer ended its process: memory is limited to {limit:.1f} GiB"
        if held >= GREEDY * self.limit:
            return f"its process died; it had held {held / 2**30:.1f} of {limit:.1f} GiB of memory"
        return None


def kills(counter: str) -> int | None:
    """See `cgroup.kills`."""
    return cgroup.kills(Path(counter))


def kills_at(machine: str, counter: str) -> int | None:
    """The count on another node, by Ray's id of it; None: it does not answer in time."""
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    ask = ray.remote(num_cpus=0, max_retries=0)(kills)
    there = NodeAffinitySchedulingStrategy(machine, soft=False)
    with suppress(ray.exceptions.RayError):
        count: int | None = ray.get(ask.options(scheduling_strategy=there).remote(counter), timeout=ANSWER_TIMEOUT_S)
        return count
    return None


@dataclass
class _Process:
    host: str
    pid: int
    memory: Memory
    machine: str = ""
    held: int = 0


class Deaths:
    """Tells of processes that died whether memory ended them. A kill that is counted explains one death.

    Args:
        ask: gives the count of another node's file.
    """

    def __init__(self, ask: Callable[[str, str], int | None] = kills_at) -> None:
        self._ask, self._here = ask, socket.gethostname()
        self._unknown = _Process(self._here, os.getpid(), Memory.here())
        self._processes: dict[str, _Process] = {}
        self._explained: dict[tuple[str, str], int] = {}
        self._old: dict[str, tuple[float, int, int]] = {}  # when it was looked at, the count then and the time before

    def began(self, process: str, node: str, memory: Memory, machine: str = "") -> None:
        """A process has told where it is.

        Args:
            node: its host and number, as HOST:NUMBER.
            machine: Ray's id of the node, of which another host's count is asked.
        """
        host, _, pid = node.rpartition(":")
        self._processes[process] = _Process(host, int(pid), memory, machine)

    def look(self, running: Iterable[str]) -> None:
        """Note what those of these processes that are on this machine hold, and what was counted by now."""
        now = time.monotonic()
        for process in [self._processes[name] for name in running if name in self._processes]:
            if process.host != self._here:
                continue
            process.held = _resident(process.pid) or process.held
            counter = process.memory.counter
            if counter and now - self._old.get(counter, (-FRESH, 0, 0))[0] >= FRESH:
                before = self._old.get(counter, (0.0, process.memory.kills, 0))[1]
                self._old[counter] = now, kills(counter) or 0, before

    def of_memory(self, name: str, hosts: set[str]) -> str | None:
        """Why a process that has died was ended by memory; None: nothing says so. It is asked once of each.

        Args:
            hosts: those of all nodes: where there is this one alone, a process was on it that had not told so yet.
        """
        process = self._processes.pop(name, self._unknown if hosts == {self._here} else None)
        if process is None:
            return None
        return process.memory.explained(self._was_killed(process), process.held)

    def _was_killed(self, process: _Process) -> bool:
        counter = process.memory.counter
        if counter is None:
            return False
        is_here = process.host == self._here
        count = (kills(counter) if is_here else self._ask(process.machine, counter)) or 0
        place = (process.host, counter)
        old = self._old[counter][2] if is_here and counter in self._old else 0
        explained = max(process.memory.kills, old, self._explained.get(place, 0))
        if count <= explained:
            return False
        self._explained[place] = explained + 1
        return True


def _resident(pid: int) -> int | None:
    with suppress(OSError, ValueError, IndexError):
        return int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return None
