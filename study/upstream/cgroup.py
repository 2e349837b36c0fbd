"""What Linux tells of the memory of this process's control group, version 1 or 2, and of its OOM kills.

On other systems, and in a sandbox without these files, nothing is known: no limit, no count.
"""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

ROOT = Path("/")
"""The root of the file system."""


class Files(NamedTuple):
    """The names of a version's files, and of what is counted in them.

    Attributes:
        folder: in which the groups are.
        limit, used: bytes that the processes of a group may hold, and hold.
        idle: name in `memory.stat` of the bytes of cached files among those, which are given up when they are needed.
        events: file with the count `oom_kill`: processes of this group that the kernel ended for lack of memory.
    """

    folder: str
    limit: str
    used: str
    idle: str
    events: str


VERSIONS = {
    "": Files("sys/fs/cgroup", "memory.max", "memory.current", "inactive_file", "memory.events"),
    "memory": Files(
        "sys/fs/cgroup/memory",
        "memory.limit_in_bytes",
        "memory.usage_in_bytes",
        "total_inactive_file",
        "memory.oom_control",
    ),
}
"""Files by the name of the controller in `/proc/self/cgroup`; version 2 has none there."""


def memory_limit() -> int | None:
    """Return the bytes that this process's group, or one around it, may hold; None: there is no limit."""
    limits = (_number(folder / files.limit) for folder, files in _groups())
    return min((limit for limit in limits if limit is not None), default=None)


def room() -> int | None:
    """Return the bytes left within these limits, with idle files, as kubelet reckons; None: there is no limit."""
    left = []
    for folder, files in _groups():
        limit, used = _number(folder / files.limit), _number(folder / files.used)
        if limit is not None and used is not None:
            left.append(limit - used + (count(folder / "memory.stat", files.idle) or 0))
    return min(left, default=None)


def kill_counter() -> Path | None:
    """Return the file that counts the OOM kills of this process's group; None: there is no such file.

    Where a group has none, as the topmost, it is the file that counts those of the machine.

    Example:
        >>> counter = kill_counter()
        >>> counter is None or kills(counter) >= 0
        True
    """
    own = ((folder / files.events) for folder, files in _groups())
    return next((file for file in (*own, ROOT / "proc/vmstat") if kills(file) is not None), None)


def kills(counter: Path) -> int | None:
    """Return the number of OOM kills in a file by now; None: it does not say, or is gone."""
    return count(counter, "oom_kill")


def count(file: Path, name: str) -> int | None:
    """Return a number of a file whose lines are a name and a number each; None: it has none of that name."""
    with suppress(OSError, ValueError):
        told = dict(line.split() for line in file.read_text(encoding="ascii").splitlines())
        return int(told[name]) if name in told else None
    return None


def _groups() -> Iterator[tuple[Path, Files]]:
    """Yield this process's group and those around it, each with its version's files.

    A container may see its own group as the topmost, but read another path of it.
    """
    try:
        lines = (ROOT / "proc/self/cgroup").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        files = next((VERSIONS[name] for name in controllers.split(",") if name in VERSIONS), None)
        if files is None:
            continue
        top = ROOT / files.folder
        own = top / path.lstrip("/")
        yield from ((folder, files) for folder in (own, *own.parents) if folder.is_relative_to(top))


def _number(file: Path) -> int | None:
    with suppress(OSError, ValueError):  # no such file, or it contains `max`
        return int(file.read_text(encoding="ascii"))
    return None
