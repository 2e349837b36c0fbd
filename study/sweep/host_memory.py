"""Whether lack of memory ended a process: by the kernel's count of OOM kills, and by what the process held at last."""

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

KILLED_PROCESS_PATTERN = re.compile(r"killed|SIGKILL|terminated abruptly|exited unexpectedly")
"""Words of PyTorch's DataLoader, joblib, `concurrent.futures` and `subprocess` about a process that was ended."""

MAX_KILL_COUNT_AGE_S = 30.0
"""Seconds for which a counted kill may belong to a process whose end is heard of only now; older ones do not."""

LIKELY_OOM_SHARE_OF_LIMIT = 0.5
"""Share of the memory from which a process that vanished was most likely ended for what it held."""

NODE_ANSWER_TIMEOUT_S = 20.0
"""Seconds that another node gets to return its count: a process has to start on it."""


@dataclass(frozen=True)
class MemoryLimit:
    """What a process may hold, and where the kernel counts the processes that it ended for lack of memory.

    Attributes:
        limit_bytes: bytes for all processes of its control group, or of the machine.
        oom_counter_file: the file with the count; None: the system has none.
        oom_kills_at_start: the count when this was made.
    """

    limit_bytes: int
    oom_counter_file: str | None = None
    oom_kills_at_start: int = 0

    @classmethod
    def of_this_process(cls) -> "MemoryLimit":
        """Return that of this process."""
        total, counter = psutil.virtual_memory().total, cgroup.oom_kill_counter_file()
        limit = min(total, cgroup.memory_limit_bytes() or total)
        return cls(limit) if counter is None else cls(limit, str(counter), cgroup.read_oom_kill_count(counter) or 0)

    def kills_since_start(self) -> int:
        """Return how many processes were ended since, as counted on this machine."""
        if self.oom_counter_file is None:
            return 0
        return (cgroup.read_oom_kill_count(self.oom_counter_file) or 0) - self.oom_kills_at_start

    def oom_death_text(self, is_counted: bool, held: int) -> str | None:
        """Return why a process of this machine that vanished since was ended by memory; None: nothing says so.

        Args:
            is_counted: whether the kernel counts a kill that may be of the process.
            held: bytes that it held when it was last looked at, or at most.
        """
        limit = self.limit_bytes / 2**30
        if is_counted:
            return f"the kernel's OOM killer ended its process: memory is limited to {limit:.1f} GiB"
        if held >= LIKELY_OOM_SHARE_OF_LIMIT * self.limit_bytes:
            return f"its process died; it had held {held / 2**30:.1f} of {limit:.1f} GiB of memory"
        return None


def read_oom_kills_on_node(machine: str, counter: str) -> int | None:
    """Return the count on another node, by Ray's id of it; None: it does not answer in time."""
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    there = NodeAffinitySchedulingStrategy(machine, soft=False)
    ask = ray.remote(num_cpus=0, max_retries=0)(cgroup.read_oom_kill_count).options(scheduling_strategy=there)
    with suppress(ray.exceptions.RayError):
        count: int | None = ray.get(ask.remote(counter), timeout=NODE_ANSWER_TIMEOUT_S)
        return count
    return None


@dataclass
class _WatchedProcess:
    host: str
    pid: int
    memory: MemoryLimit
    node_id: str = ""
    held_bytes: int = 0


class OomDetector:
    """Explanation of which processes died for lack of memory. Each counted kill explains one death.

    Args:
        ask: returns the count in another node's file.
    """

    def __init__(self, ask: Callable[[str, str], int | None] = read_oom_kills_on_node) -> None:
        self._ask, self._here = ask, socket.gethostname()
        self._unknown = _WatchedProcess(self._here, os.getpid(), MemoryLimit.of_this_process())
        self._processes: dict[str, _WatchedProcess] = {}
        self._explained: dict[tuple[str, str], int] = {}
        self._old: dict[
            str, tuple[float, int, int]
        ] = {}  # time of the last look, the count then and at the look before

    def note_process(self, process: str, node: str, memory: MemoryLimit, machine: str = "") -> None:
        """Note where a process is, as it has told.

        Args:
            node: its host and process id, as HOST:PID.
            machine: Ray's id of the node, to ask another host for its count.
        """
        host, _, pid = node.rpartition(":")
        self._processes[process] = _WatchedProcess(host, int(pid), memory, machine)

    def update_memory_readings(self, running: Iterable[str]) -> None:
        """Note what the processes on this machine hold, and the count by now."""
        now = time.monotonic()
        for process in [self._processes[name] for name in running if name in self._processes]:
            if process.host != self._here:
                continue
            process.held_bytes = _resident_bytes(process.pid) or process.held_bytes
            counter = process.memory.oom_counter_file
            if counter and now - self._old.get(counter, (-MAX_KILL_COUNT_AGE_S, 0, 0))[0] >= MAX_KILL_COUNT_AGE_S:
                before = self._old.get(counter, (0.0, process.memory.oom_kills_at_start, 0))[1]
                self._old[counter] = now, cgroup.read_oom_kill_count(counter) or 0, before

    def find_oom_cause(self, name: str, hosts: set[str]) -> str | None:
        """Return why a process that has died was ended by memory; None: nothing says so. Ask once for each.

        Args:
            hosts: of all nodes; if this is the only one, a process that has not told its place was here.
        """
        process = self._processes.pop(name, self._unknown if hosts == {self._here} else None)
        if process is None:
            return None
        return process.memory.oom_death_text(self._was_oom_killed(process), process.held_bytes)

    def _was_oom_killed(self, process: _WatchedProcess) -> bool:
        counter = process.memory.oom_counter_file
        if counter is None:
            return False
        is_here = process.host == self._here
        count = (cgroup.read_oom_kill_count(counter) if is_here else self._ask(process.node_id, counter)) or 0
        place = (process.host, counter)
        old = self._old[counter][2] if is_here and counter in self._old else 0
        explained = max(process.memory.oom_kills_at_start, old, self._explained.get(place, 0))
        if count <= explained:
            return False
        self._explained[place] = explained + 1
        return True


def _resident_bytes(pid: int) -> int | None:
    with suppress(OSError, ValueError, IndexError):
        return int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return None
