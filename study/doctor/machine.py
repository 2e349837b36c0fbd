"""Processors, memory and disks of this machine, as a container's limits leave them."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil

from study import data
from study.doctor.finding import Finding

GIB = 2**30
LITTLE_MEMORY = 4 * GIB
"""Below it Ray, MLflow and two small trials hardly fit."""

LITTLE_SHARED = GIB
LITTLE_DISK, NO_DISK = 5 * GIB, GIB // 2
FULL = 0.95
"""The share of a disk from which on Ray keeps nothing on it any more."""

MEMORY_LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))


def cpus() -> Iterator[Finding]:
    """How many this machine shows, and how many Ray would place trials on: a container may have fewer."""
    from study.upstream.ray_internals import cpus

    shown, placed = os.cpu_count() or 1, cpus()
    told = f"{shown}, and Ray would place trials on {placed}"
    if placed < shown:
        remedy = f"resources.cpu: above {placed} never fits here; give the container more, or train.threads: less"
        yield Finding("CPUs", "warning", told, remedy)
    else:
        yield Finding("CPUs", "ok", f"{shown}, all of them for Ray")


def memory() -> Iterator[Finding]:
    """How much there is, and is free, within the container's limit."""
    there, limit = psutil.virtual_memory(), memory_limit()
    total = min(there.total, limit or there.total)
    told = f"{total / GIB:.1f} GiB, {there.available / GIB:.1f} GiB of the machine's free"
    told += f" (the container's limit; the machine has {there.total / GIB:.1f} GiB)" if total < there.total else ""
    if min(total, there.available) < LITTLE_MEMORY:
        remedy = "fewer trials at once: search.concurrency, resources.cpu; or a smaller train.batch_size"
        yield Finding("memory", "warning", told, remedy)
    else:
        yield Finding("memory", "ok", told)


def memory_limit() -> int | None:
    """Bytes that the container may use, None if it has no limit."""
    for path in MEMORY_LIMITS:
        try:
            return int(path.read_text(encoding="ascii"))
        except (OSError, ValueError):  # there is none, or it says `max`
            continue
    return None


def shared_memory() -> Iterator[Finding]:
    """Where Ray keeps the data sets, one copy for all trials; too small, they go to the disk, which is slow."""
    folder = Path("/dev/shm")
    if not folder.exists():
        yield Finding("shared memory", "ok", "this system has no /dev/shm; Ray uses the temporary folder")
        return
    usage = shutil.disk_usage(folder)
    told = f"/dev/shm: {usage.free / GIB:.1f} of {usage.total / GIB:.1f} GiB free"
    if usage.free < LITTLE_SHARED:
        yield Finding("shared memory", "warning", told, "in a container: --shm-size=2g or more; else: what lies there?")
    else:
        yield Finding("shared memory", "ok", told)


def disks(home: Path) -> Iterator[Finding]:
    """Room for studies, data sets and Ray's temporary files."""
    places = {
        "home": (home, "another home: STUDY_HOME=..., or study delete NAME"),
        "data": (data.root(), "another folder: STUDY_DATA=..."),
        "temporary": (Path(tempfile.gettempdir()), "another folder: TMPDIR=... RAY_TMPDIR=..., or remove what is old"),
    }
    for name, (path, remedy) in places.items():
        yield disk(f"disk, {name}", path, remedy)


def disk(name: str, path: Path, remedy: str) -> Finding:
    """Room on the disk on which a folder is or will be."""
    usage = shutil.disk_usage(existing(path))
    told = f"{path}: {usage.free / GIB:.1f} of {usage.total / GIB:.1f} GiB free"
    if usage.free < NO_DISK:
        return Finding(name, "problem", told, remedy)
    if usage.free < LITTLE_DISK or usage.free < (1 - FULL) * usage.total:
        return Finding(name, "warning", told, remedy)
    return Finding(name, "ok", told)


def existing(path: Path) -> Path:
    """A folder, or the nearest one above that exists."""
    return next(one for one in (path, *path.parents) if one.is_dir())
