"""The folder of a Ray of one's own: only its user can enter it, and what a killed driver left goes with the next."""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from study.upstream.own_ray_internals import SESSION

PREFIX = "study-run-"

LOCK = "lock"
"""File that its driver holds for as long as it lives."""

LONGEST = 103 - SESSION - len(f"/{PREFIX}12345678")
"""Characters of the folder around it: the path of a socket has at most 107 on Linux, 103 elsewhere."""


@contextmanager
def session_folder() -> Iterator[Path]:
    """An empty folder of mode 0700 in the system's temporary folder, or in /tmp where the path of that is too long. It
    is gone afterwards, and with it each that a killed driver of this user left.
    """
    places = [tempfile.gettempdir(), "/tmp"]
    for place in set(places):
        for left in Path(place).glob(f"{PREFIX}*"):
            _remove_if_left(left)
    folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=next((one for one in places if len(one) <= LONGEST), "/tmp")))
    part = folder / f"{LOCK}.part"
    with part.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        part.rename(folder / LOCK)  # whoever sees it cannot have it
        try:
            yield folder
        finally:
            _remove(folder)


def _remove_if_left(folder: Path) -> None:
    with suppress(OSError):  # another user's, one that is just made or removed, or one whose driver lives
        if folder.is_symlink() or folder.stat().st_uid != os.getuid():
            return
        with (folder / LOCK).open("r+") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _remove(folder)


def _remove(folder: Path) -> None:
    """Remove it; where something in it cannot be removed yet, the lock stays for the next driver to see."""
    with suppress(OSError):
        for path in folder.iterdir():
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            elif path.name != LOCK:
                path.unlink()
        if [path.name for path in folder.iterdir()] == [LOCK]:
            (folder / LOCK).unlink()
            folder.rmdir()
