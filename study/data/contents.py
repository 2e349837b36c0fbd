"""What is in files: hashes of their bytes, kept by path and state of each file so that a second start reads none again.

They are kept in `digests.sqlite` in the folder of all data sets; without one that can be written all files are read.
"""

import hashlib
import os
import sqlite3
import stat
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from study.data import label_files
from study.data.source import writable
from study.errors import UserError

KEPT = "digests.sqlite"

RACY = 2.0
"""Seconds: of a file that was written so short a time ago its state may stay the same when it is written again."""

BLOCK = 1 << 20
"""Bytes to read at a time."""

AT_ONCE = 500
"""Files that a query of the database names, or that a thread reads at a time."""

NAMED = 3
"""Files that a message names; it counts the rest."""

State = tuple[int, int, int, int]
"""Of a file: its size, time of its content and of its state in nanoseconds, inode."""


def digests(files: Sequence[Path]) -> list[str]:
    """The hash of each file's content, in hexadecimal; empty where there is none that can be read."""
    names = [os.path.abspath(file) for file in files]
    states = {name: found for name in dict.fromkeys(names) if (found := _state(name))}
    known = _known(states)
    new = [name for name in states if name not in known]
    if new:
        began = time.time_ns()
        with ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as pool:
            blocks = [new[start : start + AT_ONCE] for start in range(0, len(new), AT_ONCE)]
            read = {name: found for block in pool.map(_hashes, blocks) for name, found in block.items()}
        known |= read
        settled = began - int(RACY * 1e9)
        # a file that was written while it was read has another state now, so that its entry is never found
        _keep({name: (states[name], read[name]) for name in new if read[name] and states[name][2] < settled})
    return [known.get(name, "") for name in names]


def alike(files: Sequence[Path]) -> NDArray[np.int64] | None:
    """A number (N,) for each file that is the same for files of equal bytes, links among them; None: there are none.

    Files are read only where others have their size.
    """
    return _alike(tuple(files), states(files))


def states(files: Iterable[Path]) -> tuple[State | None, ...]:
    """The state of each file, for what is to be read again only when one has changed; None where there is no file."""
    return tuple(_state(str(file)) for file in files)


@lru_cache(4)
def _alike(files: tuple[Path, ...], states: tuple[State | None, ...]) -> NDArray[np.int64] | None:
    """As `alike`; a command asks several times."""
    sizes = [(-1 - number if found is None else found[0]) for number, found in enumerate(states)]
    several = {size for size, count in Counter(sizes).items() if count > 1}
    doubtful = [number for number, size in enumerate(sizes) if size in several]
    hashes = dict(zip(doubtful, digests([files[number] for number in doubtful]), strict=True))
    numbers: dict[object, int] = {}
    found = [numbers.setdefault(hashes.get(number) or number, number) for number in range(len(files))]
    return np.array(found, np.int64) if len(numbers) < len(files) else None


def stamp(place: Path | Sequence[Path]) -> str:
    """A hash that changes with the content of a file; of files in a list, in their order, and with which are there; or
    of those under a folder, behind links as well, and with their names.

    A folder that several links lead to counts where it is met first. Hidden files do not count. What is in a folder
    besides the files of a list is not looked at: it may be much, behind links.
    """
    files = files_of(place)
    names = [os.path.relpath(file, place) if isinstance(place, Path) and file != place else "" for file in files]
    lines = [f"{name}\0{digest}\n" for name, digest in zip(names, digests(files), strict=True)]
    return hashlib.sha256("".join(lines).encode(errors="surrogateescape")).hexdigest()[:16]


def files_of(place: Path | Sequence[Path]) -> list[Path]:
    """The file, the files of the list, or those under the folder that are not hidden, by name."""
    if not isinstance(place, Path):
        return list(place)
    return sorted(_below(place, set())) if place.is_dir() else [place]


@contextmanager
def unchanged(files: Iterable[Path]) -> Iterator[None]:
    """While this holds, these files are to stay as they are.

    Raises:
        UserError: afterwards, if some have changed, have gone or have come; names them.
    """
    before = {name: _state(name) for name in map(str, files)}
    yield
    changed = [name for name, found in before.items() if _state(name) != found]
    if changed:
        more = f" and {len(changed) - NAMED} more" if len(changed) > NAMED else ""
        raise UserError(
            f"{', '.join(changed[:NAMED])}{more}: changed while the data were read. Start again when nothing writes "
            "there any more"
        )


def _state(name: str) -> State | None:
    """The state of a file; None where there is none that can be read, as behind a link that leads nowhere."""
    try:
        found = os.stat(name)
    except (OSError, ValueError):  # a name that no file can have
        return None
    if not stat.S_ISREG(found.st_mode):  # to open a pipe would wait for whoever writes into it
        return None
    return found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino


def _below(folder: Path, seen: set[tuple[int, int]]) -> Iterator[Path]:
    """The files under a folder; adds it and those below it to the folders `seen`."""
    status = os.stat(folder)
    if (status.st_dev, status.st_ino) in seen:  # behind a link, which may lead back
        return
    seen.add((status.st_dev, status.st_ino))
    for name in sorted(name for name in os.listdir(folder) if not label_files.is_hidden(name)):
        path = folder / name
        if path.is_dir():
            yield from _below(path, seen)
        else:
            yield path


def _hashes(names: Sequence[str]) -> dict[str, str]:
    return {name: _hash(name) for name in names}


def _hash(name: str) -> str:
    digest = hashlib.blake2b(digest_size=16)
    try:
        file = os.open(name, os.O_RDONLY | os.O_CLOEXEC)  # `open` takes longer than to read a small picture
        try:
            while block := os.read(file, BLOCK):
                digest.update(block)
        finally:
            os.close(file)
    except OSError:  # whoever needs it says why
        return ""
    return digest.hexdigest()


def _database() -> sqlite3.Connection:
    database = sqlite3.connect(writable() / KEPT, timeout=10)
    database.execute(
        "CREATE TABLE IF NOT EXISTS digests "
        "(path BLOB PRIMARY KEY, size INTEGER, mtime INTEGER, ctime INTEGER, inode INTEGER, digest TEXT) WITHOUT ROWID"
    )
    return database


def _known(states: Mapping[str, State]) -> dict[str, str]:
    """The hashes that are kept of files in these states."""
    names, known = list(states), {}
    try:
        with closing(_database()) as database:
            for start in range(0, len(names), AT_ONCE):
                part = [os.fsencode(name) for name in names[start : start + AT_ONCE]]
                places = ", ".join("?" * len(part))
                for path, *state, digest in database.execute(f"SELECT * FROM digests WHERE path IN ({places})", part):
                    name = os.fsdecode(path)
                    if tuple(state) == _signed(states[name]):
                        known[name] = digest
    except (sqlite3.Error, UserError) as error:  # locked for long, or no folder can be written: read the files
        if isinstance(error, sqlite3.DatabaseError) and not isinstance(error, sqlite3.OperationalError):
            (writable() / KEPT).unlink(missing_ok=True)  # damaged
        return {}
    return known


def _keep(found: Mapping[str, tuple[State, str]]) -> None:
    """Keep hashes for the next time, by each file's state before it was read."""
    rows = [(os.fsencode(name), *_signed(state), digest) for name, (state, digest) in found.items()]
    try:
        with closing(_database()) as database, database:
            database.executemany("INSERT OR REPLACE INTO digests VALUES (?, ?, ?, ?, ?, ?)", rows)
    except (sqlite3.Error, UserError):
        pass


def _signed(state: State) -> State:
    """The state as SQLite's 64 bits hold it: an inode may need the highest."""
    size, content, change, inode = state
    return size, content, change, inode - (1 << 64) if inode >= 1 << 63 else inode
