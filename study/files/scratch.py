"""Folders in the system's temporary folder that are gone after the process that made them, whatever ends it: what a
killed one left goes with the next."""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

import psutil

RUN, TRIAL = "study-run-", "study-trial-"
"""How the names begin of the folder of a driver's own Ray, and of that of a trial of a training function."""

LOCK = "lock"
"""File that its process holds for as long as it lives."""

OWNER = "STUDY_SCRATCH"
"""Variable with the folder's path in the environment of the processes that live and die with it."""

ENDING = 10.0
"""Seconds to wait for such processes to be gone."""


@contextmanager
def scratch_folder(prefix: str, place: str | None = None) -> Iterator[Path]:
    """An empty folder of mode 0700, and `LOCK` in it; it is gone afterwards, and with it all that `clear` removes.

    Args:
        prefix: `RUN` or `TRIAL`.
        place: in which it is made; None: the system's temporary folder.
    """
    clear()
    folder, lock = _made(prefix, place)
    with lock:
        try:
            yield folder
        finally:
            _remove(folder)


def clear() -> list[Path]:
    """Remove what processes of this user left when they were killed, in the system's temporary folder and in /tmp, and
    end the processes that were to live and die with it. Gives the folders.

    The system gives up the lock of a process that ends, at once; and only who was started by it has `OWNER` with the
    name of its folder. So nothing of a living process is touched, in another container of this machine neither.
    """
    places = {tempfile.gettempdir(), "/tmp"}
    found = [path for place in places for prefix in (RUN, TRIAL) for path in Path(place).glob(f"{prefix}*")]
    return [path for path in found if _remove_if_left(path)]


def _made(prefix: str, place: str | None) -> tuple[Path, IO[str]]:
    while True:
        folder = Path(tempfile.mkdtemp(prefix=prefix, dir=place))
        with suppress(FileNotFoundError):  # before it was locked another process took it for one that was left
            lock = (folder / LOCK).open("w")
            fcntl.flock(lock, fcntl.LOCK_EX)
            if os.path.samestat(os.fstat(lock.fileno()), (folder / LOCK).stat()):
                return folder, lock


def _remove_if_left(folder: Path) -> bool:
    """Whether it was one; False for another user's, one whose process lives, and what is no such folder."""
    with suppress(OSError):
        if folder.is_symlink() or folder.stat().st_uid != os.getuid():
            return False
        if not any(folder.iterdir()):
            folder.rmdir()
            return True
        with (folder / LOCK).open("r+") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _end_processes(folder)
            _remove(folder)
        return not folder.exists()
    return False


def _end_processes(folder: Path) -> None:
    left = [process for process in psutil.process_iter() if _is_of(process, folder)]
    for process in left:
        with suppress(psutil.Error):
            process.kill()  # never another one that has its number by now: psutil compares when they began
    psutil.wait_procs(left, timeout=ENDING)


def _is_of(process: psutil.Process, folder: Path) -> bool:
    with suppress(psutil.Error, OSError):
        return process.uids().real == os.getuid() and process.environ().get(OWNER) == str(folder)
    return False


def _remove(folder: Path) -> None:
    """Remove it; where something in it cannot be removed yet, the lock stays for the next process to see."""
    with suppress(OSError):
        for path in folder.iterdir():
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            elif path.name != LOCK:
                path.unlink()
        if [path.name for path in folder.iterdir()] == [LOCK]:
            (folder / LOCK).unlink()
            folder.rmdir()
