"""Processes that are there, told by files of a folder that they share: who waits for a turn, who shares a cluster.

Each member has two files. `NAME.json` is what it says of itself, written whole. `NAME.alive` it keeps locked for as
long as it lives, also over an `exec`, and touches now and then. The kernel gives the lock back whatever ends the
process, so on its machine a dead member is known at once; on another machine one that was not touched for `EXPIRY`
seconds, by the file system's clock, is dead. Whoever finds a dead one takes its files away.
"""

import fcntl
import json
import os
import secrets
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from study.files import Kind, lock, read_json, write_whole
from study.home.lease import age, machine

EXPIRY = 300.0
"""Seconds after the last sign of life of a member on another machine until it is dead."""

TOUCH = 5.0
"""Seconds between two signs of life."""

PATIENCE = 2.0
"""Seconds that the lock of a folder is waited for; it is held for milliseconds."""


class Presence:
    """This process among the members of a folder, until `close`.

    Args:
        name: begins the names of its files.

    Raises:
        OSError: the folder cannot be written.
    """

    def __init__(self, folder: Path, name: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.id = f"{name}.{secrets.token_hex(4)}"
        self.alive = folder / f"{self.id}.alive"
        self._file = folder / f"{self.id}.json"
        self._touched = time.monotonic()
        self._lock = os.open(self.alive, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o644)
        os.set_inheritable(self._lock, True)
        with suppress(OSError):  # a file system without locks: its touches tell
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def tell(self, document: Mapping[str, Any]) -> None:
        """Say something of this process, in place of what it said before."""
        write_whole(self._file, json.dumps({**document, "id": self.id, "machine": machine()}))

    def touch(self) -> None:
        """Give a sign of life, if one is due."""
        if time.monotonic() - self._touched >= TOUCH:
            self._touched = time.monotonic()
            os.utime(self.alive)

    def close(self) -> None:
        """Be no member any more."""
        for path in (self._file, self.alive):
            with suppress(OSError):
                path.unlink()
        with suppress(OSError):
            os.close(self._lock)


@dataclass(frozen=True)
class Member:
    """What every member says of itself, among other things."""

    id: str
    machine: str


def members(folder: Path, kind: type[Kind]) -> list[Kind]:
    """Return what each living member says of itself, of this kind; what cannot be read says nothing."""
    found = []
    for path in sorted(folder.glob("*.json")):
        member = read_json(path, Member)
        if member is None or member.id != path.stem:
            continue
        alive = path.with_suffix(".alive")
        if _is_dead(alive, member.machine):
            for left in (path, alive):
                with suppress(OSError):
                    left.unlink()
        elif told := read_json(path, kind):
            found.append(told)
    return found


@contextmanager
def locked(path: Path) -> Iterator[bool]:
    """A lock among all processes of this machine, for milliseconds. Says whether it was had in time; a file system
    without locks gives it to everybody."""
    with open(path, "ab") as file:
        try:
            had = lock(file, PATIENCE)
        except OSError:
            had = True
        yield had


def _is_dead(alive: Path, of_machine: str) -> bool:
    try:
        if of_machine != machine():
            return age(alive) > EXPIRY
        with open(alive, "rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)  # shared: two that look do not take each other for it
        return True
    except BlockingIOError:
        return False
    except FileNotFoundError:
        return True
    except OSError:
        return age(alive) > EXPIRY if alive.exists() else True
