"""What Linux tells of the memory and processors of this process's control group, version 1 or 2, and its OOM kills.

On other systems, and in a sandbox without these files, nothing is known: no limit, no count.
"""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

FILE_SYSTEM_ROOT = Path("/")
"""The root of the file system."""


class CgroupFiles(NamedTuple):
    """The names of a version's files, and of what is counted in them.

    Attributes:
        limit_file, usage_file: bytes that the processes of a group may hold, and hold.
        idle_counter: name in `memory.stat` of the bytes of cached files among those, which are given up when they
            are needed.
        events_file: file with the count `oom_kill`: processes of this group that the kernel ended for lack of memory.
    """

    limit_file: str
    usage_file: str
    idle_counter: str
    events_file: str


MEMORY_FILES_BY_VERSION = {
    1: CgroupFiles("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file", "memory.oom_control"),
    2: CgroupFiles("memory.max", "memory.current", "inactive_file", "memory.events"),
}


def memory_limit_bytes() -> int | None:
    """Return the bytes that this process's group, or one around it, may hold; None: there is no limit."""
    limits = (_read_number_file(folder / files.limit_file) for folder, files in _memory_cgroups())
    return min((limit for limit in limits if limit is not None), default=None)


def free_memory_bytes() -> int | None:
    """Return the bytes left within these limits, with idle files, as kubelet reckons; None: there is no limit."""
    left = []
    for folder, files in _memory_cgroups():
        limit, used = _read_number_file(folder / files.limit_file), _read_number_file(folder / files.usage_file)
        if limit is not None and used is not None:
            left.append(limit - used + (read_named_count(folder / "memory.stat", files.idle_counter) or 0))
    return min(left, default=None)


def oom_kill_counter_file() -> Path | None:
    """Return the file that counts the OOM kills of this process's group; None: there is no such file.

    Where a group has none, as the topmost, it is the file that counts those of the machine.

    Example:
        >>> counter = oom_kill_counter_file()
        >>> counter is None or read_oom_kill_count(counter) >= 0
        True
    """
    files = [folder / of_group.events_file for folder, of_group in _memory_cgroups()]
    files.append(FILE_SYSTEM_ROOT / "proc/vmstat")
    return next((file for file in files if read_oom_kill_count(file) is not None), None)


def read_oom_kill_count(counter: Path | str) -> int | None:
    """Return the number of OOM kills in a file by now; None: it does not say, or is gone."""
    return read_named_count(Path(counter), "oom_kill")


def read_named_count(file: Path, name: str) -> int | None:
    """Return a number of a file whose lines are a name and a number each; None: it has none of that name."""
    with suppress(OSError, ValueError):
        told = dict(line.split() for line in file.read_text(encoding="ascii").splitlines())
        return int(told[name]) if name in told else None
    return None


def count_usable_processors() -> int:
    """Return how many processors of this machine this process may use, by its affinity and its groups' quotas."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    for folder, version in _cgroup_folders("cpu"):
        with suppress(OSError, ValueError):
            files = ("cpu.max",) if version == 2 else ("cpu.cfs_quota_us", "cpu.cfs_period_us")
            told = " ".join((folder / file).read_text(encoding="ascii") for file in files)
            quota, period = map(int, told.split())  # `max`, or -1, is none
            allowed = min(allowed, quota // period) if quota > 0 else allowed
    return max(1, allowed)


def _memory_cgroups() -> Iterator[tuple[Path, CgroupFiles]]:
    """Yield this process's group and those around it for memory, each with its version's files."""
    return ((folder, MEMORY_FILES_BY_VERSION[version]) for folder, version in _cgroup_folders("memory"))


def _cgroup_folders(controller: str) -> Iterator[tuple[Path, int]]:
    """Yield the folders of this process's group for a controller and of those around it, each with its version.

    A container may see its own group as the topmost, but read another path of it.
    """
    try:
        lines = (FILE_SYSTEM_ROOT / "proc/self/cgroup").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers and controller not in controllers.split(","):
            continue
        version = 1 if controllers else 2  # which names no controller
        top = FILE_SYSTEM_ROOT / "sys/fs/cgroup" / (controller if version == 1 else "")
        own = top / path.lstrip("/")
        yield from ((folder, version) for folder in (own, *own.parents) if folder.is_relative_to(top))


def _read_number_file(file: Path) -> int | None:
    with suppress(OSError, ValueError):  # no such file, or it contains `max`
        return int(file.read_text(encoding="ascii"))
    return None
