"""Scratch folders in the system's temporary folder: each goes, with its processes, with the process that made it.

What a killed process left, its guard removes (`remove_after_death`), or the next process that makes one.
"""

import fcntl
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING

from study import writable_folders
from study.files import lock_file

if TYPE_CHECKING:
    import psutil

RUN_FOLDER_PREFIX, TRIAL_FOLDER_PREFIX = "study-run-", "study-trial-"
"""Prefixes of the names of the folder of a driver's own Ray, and of that of a trial of a training function."""

SCRATCH_LOCK_FILE = "lock"
"""File that its process keeps locked for as long as it lives."""

SCRATCH_FOLDER_VARIABLE = "STUDY_SCRATCH"
"""Variable with the folder's path in the environment of the processes that live and die with it."""

CLEAN_UP_TIMEOUT_S, KILL_TIMEOUT_S = 6.0, 10.0
"""Seconds that such processes get to end by themselves, and seconds to wait until those that are killed are gone."""


@contextmanager
def make_scratch_folder(prefix: str, place: str | None = None) -> Iterator[Path]:
    """Yield an empty folder of mode 0700 with `SCRATCH_LOCK_FILE` in it, and remove it after the block; see also
    `remove_abandoned_scratch_folders`.

    Args:
        prefix: `RUN_FOLDER_PREFIX` or `TRIAL_FOLDER_PREFIX`.
        place: in which it is made; None: the system's temporary folder.
    """
    remove_abandoned_scratch_folders()
    folder, held = _make_locked_scratch_folder(prefix, place)
    with held:
        try:
            yield folder
        finally:
            _remove_scratch_folder(folder)


def remove_abandoned_scratch_folders() -> list[Path]:
    """Remove what killed processes of this user left in `temporary_folder_candidates`; return the folders.

    Processes that were to live and die with such a folder are ended. The system releases the lock of a process when it
    ends; and only processes that it started have `SCRATCH_FOLDER_VARIABLE` with the name of its folder. So nothing of a
    living process is touched, not even of one in another container of this machine.
    """
    there = dict.fromkeys(writable_folders.temporary_folder_candidates())
    found = [
        path
        for place in there
        for prefix in (RUN_FOLDER_PREFIX, TRIAL_FOLDER_PREFIX)
        for path in Path(place).glob(f"{prefix}*")
    ]
    return [path for path in found if _remove_if_abandoned(path)]


def _make_locked_scratch_folder(prefix: str, place: str | None) -> tuple[Path, IO[str]]:
    while True:
        folder = Path(tempfile.mkdtemp(prefix=prefix, dir=place))
        with suppress(FileNotFoundError):  # another process removed it as left over before it was locked
            held = (folder / SCRATCH_LOCK_FILE).open("w")
            fcntl.flock(held, fcntl.LOCK_EX)
            if os.path.samestat(os.fstat(held.fileno()), (folder / SCRATCH_LOCK_FILE).stat()):
                return folder, held


def _remove_if_abandoned(folder: Path) -> bool:
    """Remove a folder that a killed process left, and return True; leave all others, as those in use."""
    with suppress(OSError):
        if folder.is_symlink() or folder.stat().st_uid != os.getuid():
            return False
        if not any(folder.iterdir()):
            folder.rmdir()
            return True
        with (folder / SCRATCH_LOCK_FILE).open("r+") as file:
            if lock_file(file):
                end_processes_of_scratch_folder(folder)
                _remove_scratch_folder(folder)
        return not folder.exists()
    return False


def remove_after_death(folder: Path) -> None:
    """Wait until the process at the other end of the input dies; then end what it left, and remove its folder.

    What it left gets `CLEAN_UP_TIMEOUT_S` seconds. Nothing is done if that process says anything: it has ended in good
    order.
    """
    if sys.stdin.buffer.read():
        return
    with suppress(OSError), (folder / SCRATCH_LOCK_FILE).open("r+") as file:
        if lock_file(file, timeout_s=1.0):
            end_processes_of_scratch_folder(folder, CLEAN_UP_TIMEOUT_S)
            _remove_scratch_folder(folder)


def processes_of_scratch_folder(folder: Path) -> "list[psutil.Process]":
    """Return the processes that live and die with such a folder."""
    import psutil  # not installed where only a model is served

    return [process for process in psutil.process_iter() if _belongs_to_scratch_folder(process, folder)]


def end_processes_of_scratch_folder(folder: Path, clean_up: float = 0.0) -> None:
    """End these processes: by SIGTERM and, once the seconds to clean up are over, by SIGKILL."""
    import psutil

    began, told = time.monotonic(), set[psutil.Process]()
    while left := processes_of_scratch_folder(folder):
        passed = time.monotonic() - began
        if passed >= clean_up + KILL_TIMEOUT_S:
            return
        for process in left:
            with suppress(psutil.Error):  # never another process that has its number by now: it compares start times
                if passed >= clean_up or _has_ray_title(process):
                    process.kill()
                elif process not in told:
                    process.terminate()
        told |= {*left}
        psutil.wait_procs(left, timeout=0.1)


RAY_TITLE_PREFIX = "ray::"
"""What Ray's agents and workers write over their command line and environment. They have their logs in the folder open,
and nothing to clean up; of SIGTERM they take no notice where their node has ended."""


def _has_ray_title(process: "psutil.Process") -> bool:
    return "".join(process.cmdline()[:1]).startswith(RAY_TITLE_PREFIX)


def _belongs_to_scratch_folder(process: "psutil.Process", folder: Path) -> bool:
    import psutil

    with suppress(psutil.Error, OSError):
        if process.uids().real != os.getuid():
            return False
        if process.environ().get(SCRATCH_FOLDER_VARIABLE) == str(folder):
            return True
        return _has_ray_title(process) and any(file.path.startswith(f"{folder}/") for file in process.open_files())
    return False


def _remove_scratch_folder(folder: Path) -> None:
    """Remove a folder; where something in it cannot be removed yet, leave the lock for the next process."""
    with suppress(OSError):
        for path in folder.iterdir():
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            elif path.name != SCRATCH_LOCK_FILE:
                path.unlink()
        if [path.name for path in folder.iterdir()] == [SCRATCH_LOCK_FILE]:
            (folder / SCRATCH_LOCK_FILE).unlink()
            folder.rmdir()
