"""How many drivers the machine that they run on carries."""

import os
from collections.abc import Iterable
from pathlib import Path

import psutil

from study.home.sharing import Sharing
from study.home.turns import Turn

DRIVER = 2**30
"""Bytes that a driver is counted with."""

ITSELF = 2 * 2**30
"""Bytes that Ray's own processes, its object store and the system take."""

PER_CORE = 4
"""Drivers for each processor at most: each takes a part of one while its trials run."""

YOUNG = 60.0
"""Seconds until a driver has the memory that it will have."""

LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))
USED = (Path("/sys/fs/cgroup/memory.current"), Path("/sys/fs/cgroup/memory/memory.usage_in_bytes"))


def most(settings: Sharing) -> int:
    """Drivers that may run at once on this machine: as the settings say, else what fits it; one always does."""
    if settings.drivers is not None:
        return settings.drivers
    total = psutil.virtual_memory().total
    fits = (min(total, memory_limit() or total) - ITSELF) // DRIVER
    return max(1, min(fits, PER_CORE * (os.cpu_count() or 1)))


def has_room(running: Iterable[Turn], settings: Sharing, now: float) -> bool:
    """Whether one more driver may begin on this machine, besides those that run on it.

    Args:
        now: seconds since the epoch.
    """
    running = list(running)
    if not running:
        return True
    if len(running) >= most(settings):
        return False
    young = sum(now - turn.began < YOUNG for turn in running if turn.began is not None)
    return free_memory() >= (young + 1) * DRIVER


def free_memory() -> int:
    """Bytes that this machine can give, within a container's limit."""
    free, limit, used = psutil.virtual_memory().available, memory_limit(), _number(USED)
    return free if limit is None or used is None else min(free, limit - used)


def memory_limit() -> int | None:
    """Bytes that the container may use, None if it has no limit."""
    return _number(LIMITS)


def _number(paths: Iterable[Path]) -> int | None:
    for path in paths:
        try:
            return int(path.read_text(encoding="ascii"))
        except (OSError, ValueError):  # no such file, or it contains `max`
            continue
    return None
