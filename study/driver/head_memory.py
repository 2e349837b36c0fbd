"""Whether a machine has memory for one more driver, which a job of a cluster asks before it begins.

Ray's own way, resources of the job, is not used: a job that waits for them longer than `RAY_JOB_START_TIMEOUT_SECONDS`
(900) has failed; one that declares any is placed on whichever node has them, where its data need not be; and a head
with `--num-cpus=0` has no CPUs for it.
"""

import os
import time

import psutil

from study.cluster.driver_job import DRIVER_MODULE
from study.errors import UserError
from study.upstream import cgroup

DRIVER_MEMORY_BYTES = 2**30
"""Bytes that are reckoned for a driver."""

DRIVER_MEMORY_GROWTH_S = 60.0
"""Seconds until a driver holds the memory that it needs."""


def free_machine_memory() -> int:
    """Return the bytes that this machine can still give, within a container's limit."""
    free, within = psutil.virtual_memory().available, cgroup.free_memory_bytes()
    return free if within is None else min(free, within)


def check_memory_for_driver() -> None:
    """Check that there is memory for this driver; one that is alone always starts.

    Each driver leaves room for those that started shortly before it.

    Raises:
        UserError: there is not enough.
    """
    earlier = start_times_of_older_drivers(psutil.Process())
    if not earlier:
        return
    young, free = sum(time.time() - began < DRIVER_MEMORY_GROWTH_S for began in earlier), free_machine_memory()
    if free >= (young + 1) * DRIVER_MEMORY_BYTES:
        return
    runs = "1 driver runs" if len(earlier) == 1 else f"{len(earlier)} drivers run"
    needs = f", of which {young} will still take as much" if young else ""
    raise UserError(
        f"{free / 2**30:.1f} GiB of memory are free on {os.uname().nodename}, a study's driver takes "
        f"{DRIVER_MEMORY_BYTES / 2**30:.0f} GiB, and {runs} there{needs}. Nothing was begun: give the command again "
        "when one has ended"
    )


def start_times_of_older_drivers(driver: psutil.Process) -> list[float]:
    """Return when the drivers on this machine started that are older than this one, in seconds since the epoch."""
    mine = (driver.create_time(), driver.pid)
    parents = {one.pid for one in driver.parents()}  # a wrapper has the same command line
    found: dict[int, tuple[float, int]] = {}
    for process in psutil.process_iter(["cmdline", "create_time", "ppid"]):
        told = process.info
        is_driver = DRIVER_MODULE in (told["cmdline"] or ()) and process.pid not in parents
        if is_driver and (told["create_time"], process.pid) < mine:
            found[process.pid] = (told["create_time"], told["ppid"])
    return [began for began, parent in found.values() if parent not in found]  # a fork has its parent's command line
