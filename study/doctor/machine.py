"""Processors, memory and disks of this machine, within a container's limits."""

import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import psutil

from study import data
from study.doctor.finding import Finding
from study.home.provenance import LIBRARIES

# Python, and the libraries that this package needs.

INSTALL = "uv sync, or pip install --upgrade with the versions of this project's pyproject.toml"


def python() -> Iterator[Finding]:
    """Version, interpreter and platform."""
    yield Finding("python", "ok", f"{platform.python_version()} ({sys.executable}) on {platform.platform()}")


def libraries() -> Iterator[Finding]:
    """Versions of the main libraries, and which are missing; whether all versions fit is what `pip check` says."""
    found = {name: _version(name) for name in LIBRARIES}
    told = ", ".join(f"{name} {version or 'missing'}" for name, version in found.items())
    yield Finding("libraries", "ok", told) if all(found.values()) else Finding("libraries", "problem", told, INSTALL)


def torch() -> Iterator[Finding]:
    """Yield what torch was built for; `gpus` checks whether that fits the GPUs."""
    try:
        import torch
    except (ImportError, OSError) as error:
        message = f"cannot be imported: {' '.join(str(error).split())[:300]}"
        yield Finding("torch", "problem", message, f"nothing runs without it: {INSTALL}")
        return
    built = f"CUDA {torch.version.cuda}" if torch.version.cuda else f"ROCm {torch.version.hip}"
    is_cpu_only = not torch.version.cuda and not torch.version.hip
    yield Finding("torch", "ok", f"{torch.__version__}, built for {'the CPU alone' if is_cpu_only else built}")


def torchvision() -> Iterator[Finding]:
    """Yield whether torchvision's own operators work: they fail if it was built for another torch."""
    import torch

    try:
        import torchvision

        torchvision.ops.nms(torch.zeros(0, 4), torch.zeros(0), 0.5)
    except (ImportError, RuntimeError, AttributeError) as error:
        message = f"does not fit this torch: {' '.join(str(error).split())[:200]}"
        yield Finding("torchvision", "problem", message, "install the two together, from one index: " + INSTALL)
        return
    yield Finding("torchvision", "ok", str(torchvision.__version__))


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


GIB = 2**30
LITTLE_MEMORY = 4 * GIB
"""With less, Ray, MLflow and two small trials hardly fit."""

LITTLE_SHARED = GIB
LITTLE_DISK, NO_DISK = 5 * GIB, GIB // 2
FULL = 0.95
"""The used share of a disk above which Ray no longer stores objects on it."""

MEMORY_LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))


def cpus() -> Iterator[Finding]:
    """Yield how many this machine has, and how many Ray would place trials on: a container may have fewer."""
    from study.upstream.ray_internals import cpus

    count, placed = os.cpu_count() or 1, cpus()
    message = f"{count}, and Ray would place trials on {placed}"
    if placed < count:
        remedy = f"resources.cpu above {placed} never fits here: give the container more CPUs, or lower train.threads"
        yield Finding("CPUs", "warning", message, remedy)
    else:
        yield Finding("CPUs", "ok", f"{count}, all of them for Ray")


def memory() -> Iterator[Finding]:
    """Total and free memory, within the container's limit."""
    virtual, limit = psutil.virtual_memory(), memory_limit()
    total = min(virtual.total, limit or virtual.total)
    message = f"{total / GIB:.1f} GiB, {virtual.available / GIB:.1f} GiB of the machine's free"
    message += (
        f" (the container's limit; the machine has {virtual.total / GIB:.1f} GiB)" if total < virtual.total else ""
    )
    if min(total, virtual.available) < LITTLE_MEMORY:
        remedy = "fewer trials at once: search.concurrency, resources.cpu; or a smaller train.batch_size"
        yield Finding("memory", "warning", message, remedy)
    else:
        yield Finding("memory", "ok", message)


def memory_limit() -> int | None:
    """Bytes that the container may use, None if it has no limit."""
    for path in MEMORY_LIMITS:
        try:
            return int(path.read_text(encoding="ascii"))
        except (OSError, ValueError):  # no such file, or it contains `max`
            continue
    return None


def shared_memory() -> Iterator[Finding]:
    """Room in the shared memory, where Ray keeps one copy of the data sets for all trials; the disk would be slow."""
    folder = Path("/dev/shm")
    if not folder.exists():
        yield Finding("shared memory", "ok", "this system has no /dev/shm; Ray uses the temporary folder")
        return
    usage = shutil.disk_usage(folder)
    message = f"/dev/shm: {usage.free / GIB:.1f} of {usage.total / GIB:.1f} GiB free"
    if usage.free < LITTLE_SHARED:
        yield Finding(
            "shared memory", "warning", message, "in a container: --shm-size=2g or more; otherwise remove files from it"
        )
    else:
        yield Finding("shared memory", "ok", message)


def disks(home: Path) -> Iterator[Finding]:
    """Room for studies, data sets and Ray's temporary files."""
    places = {
        "home": (home, "another home: STUDY_HOME=..., or study delete NAME"),
        "data": (data.root(), "another folder: STUDY_DATA=..."),
        "temporary": (Path(tempfile.gettempdir()), "another folder: TMPDIR=... RAY_TMPDIR=..., or remove old files"),
    }
    for name, (path, remedy) in places.items():
        yield disk(f"disk, {name}", path, remedy)


def disk(name: str, path: Path, remedy: str) -> Finding:
    """Room on the disk of a folder, which may not exist yet."""
    usage = shutil.disk_usage(existing(path))
    message = f"{path}: {usage.free / GIB:.1f} of {usage.total / GIB:.1f} GiB free"
    if usage.free < NO_DISK:
        return Finding(name, "problem", message, remedy)
    if usage.free < LITTLE_DISK or usage.free < (1 - FULL) * usage.total:
        return Finding(name, "warning", message, remedy)
    return Finding(name, "ok", message)


def existing(path: Path) -> Path:
    """A folder, or its nearest parent that exists."""
    return next(folder for folder in (path, *path.parents) if folder.is_dir())
