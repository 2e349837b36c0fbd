"""Prepared data sets on disk: for each split a memory-mapped array file, and its labels.

An entry is a folder whose name has a hash of everything that its arrays depend on. One process builds it while others
wait; it appears in one step, and is built again if one of its files is missing or cut short.
"""

import fcntl
import hashlib
import json
import math
import os
import shutil
import sqlite3
import stat
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from study.data import label_files
from study.data.dataset import Dataset, Facts, Split, fingerprint_of_splits
from study.data.source import Source, data_roots, writable_data_folder
from study.errors import UserError
from study.files import temporary_folder_beside
from study.knobs import Section

DIGESTS_FILE = "digests-of-files.sqlite"
"""Database of the hashes of files, by path and state, in the folder of all data sets, so that a second start reads none
again. Where that folder cannot be written, files are read each time.
"""

FILE_TIME_RESOLUTION_S = 2.0
"""Seconds within which a file may be written twice and have the same state."""

READ_BLOCK_BYTES = 1 << 20
"""Bytes to read at a time."""

FILES_PER_BATCH = 500
"""Files that a query of the database names, or that a thread reads at a time."""

MAX_NAMED_FILES = 3
"""Files that a message names; it counts the rest."""

FileState = tuple[int, int, int, int]
"""State of a file: its size, the times of change of its content and of its inode in nanoseconds, and its inode."""


def hash_files(files: Sequence[Path]) -> list[str]:
    """Hash the content of each file, in hexadecimal; empty where a file cannot be read."""
    names = [os.path.abspath(file) for file in files]
    states = {name: found for name in dict.fromkeys(names) if (found := _file_state(name))}
    known = _look_up_hashes(states)
    new = [name for name in states if name not in known]
    if new:
        began = time.time_ns()
        with ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as pool:
            blocks = [new[start : start + FILES_PER_BATCH] for start in range(0, len(new), FILES_PER_BATCH)]
            read = {name: found for block in pool.map(_hash_each_file, blocks) for name, found in block.items()}
        known |= read
        settled = began - int(FILE_TIME_RESOLUTION_S * 1e9)
        # a file that was written while it was read has another state now, so its entry is never found
        _store_hashes({name: (states[name], read[name]) for name in new if read[name] and states[name][2] < settled})
    return [known.get(name, "") for name in names]


def group_equal_files(files: Sequence[Path]) -> NDArray[np.int64] | None:
    """Number files (N,) so that files of equal bytes, and links to one file, have one number; None: all differ.

    Files are read only where others have their size.
    """
    return _group_equal_files_cached(tuple(files), file_states(files))


def file_states(files: Iterable[Path]) -> tuple[FileState | None, ...]:
    """Return the state of each file, to tell whether one must be read again; None where there is no file."""
    return tuple(_file_state(str(file)) for file in files)


@lru_cache(4)
def _group_equal_files_cached(
    files: tuple[Path, ...], states: tuple[FileState | None, ...]
) -> NDArray[np.int64] | None:
    """Cache `group_equal_files` by the states of the files; a command asks several times."""
    sizes = [(-1 - number if found is None else found[0]) for number, found in enumerate(states)]
    several = {size for size, count in Counter(sizes).items() if count > 1}
    doubtful = [number for number, size in enumerate(sizes) if size in several]
    hashes = dict(zip(doubtful, hash_files([files[number] for number in doubtful]), strict=True))
    numbers: dict[object, int] = {}
    found = [numbers.setdefault(hashes.get(number) or number, number) for number in range(len(files))]
    return np.array(found, np.int64) if len(numbers) < len(files) else None


def hash_file_or_folder(place: Path | Sequence[Path]) -> str:
    """Hash the content of a file, of a list of files in their order, or of all files under a folder with names.

    For a list the hash also tells which of its files exist; what else is in their folders is not looked at, as it may
    be much, behind links. A folder is followed behind links; one that several links lead to counts where it is met
    first. Hidden files do not count.
    """
    files = list_files_at_path(place)
    names = [os.path.relpath(file, place) if isinstance(place, Path) and file != place else "" for file in files]
    lines = [f"{name}\0{digest}\n" for name, digest in zip(names, hash_files(files), strict=True)]
    return hashlib.sha256("".join(lines).encode(errors="surrogateescape")).hexdigest()[:16]


def list_files_at_path(place: Path | Sequence[Path]) -> list[Path]:
    """List the file itself, the files of the list, or those under the folder that are not hidden, by name."""
    if not isinstance(place, Path):
        return list(place)
    return sorted(_walk_files(place, set())) if place.is_dir() else [place]


@contextmanager
def check_files_unchanged(files: Iterable[Path]) -> Iterator[None]:
    """Check that these files stay as they are while the context is open.

    Raises:
        UserError: on leaving, if some have changed, have gone or have come; names them.
    """
    before = {name: _file_state(name) for name in map(str, files)}
    yield
    changed = [name for name, found in before.items() if _file_state(name) != found]
    if changed:
        more = f" and {len(changed) - MAX_NAMED_FILES} more" if len(changed) > MAX_NAMED_FILES else ""
        raise UserError(
            f"{', '.join(changed[:MAX_NAMED_FILES])}{more}: changed while the data were read. Start again when "
            "nothing writes there any more"
        )


def _file_state(name: str) -> FileState | None:
    """Return the state of a file; None where there is none that can be read, as behind a link that leads nowhere."""
    try:
        found = os.stat(name)
    except (OSError, ValueError):  # a name that no file can have
        return None
    if not stat.S_ISREG(found.st_mode):  # to open a pipe would wait for whoever writes into it
        return None
    return found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino


def _walk_files(folder: Path, seen: set[tuple[int, int]]) -> Iterator[Path]:
    """Yield the files under a folder; add it and the folders below it to `seen`."""
    status = os.stat(folder)
    if (status.st_dev, status.st_ino) in seen:  # behind a link, which may lead back
        return
    seen.add((status.st_dev, status.st_ino))
    for name in sorted(name for name in os.listdir(folder) if not label_files.is_hidden_path(name)):
        path = folder / name
        if path.is_dir():
            yield from _walk_files(path, seen)
        else:
            yield path


def _hash_each_file(names: Sequence[str]) -> dict[str, str]:
    return {name: _hash_file_content(name) for name in names}


def _hash_file_content(name: str) -> str:
    digest = hashlib.blake2b(digest_size=16)
    try:
        file = os.open(name, os.O_RDONLY | os.O_CLOEXEC)  # `open` takes longer than to read a small picture
        try:
            while block := os.read(file, READ_BLOCK_BYTES):
                digest.update(block)
        finally:
            os.close(file)
    except OSError:  # whoever needs it says why
        return ""
    return digest.hexdigest()


def _digest_database() -> sqlite3.Connection:
    return open_one_table_database(
        writable_data_folder() / DIGESTS_FILE, "digests (file TEXT PRIMARY KEY, digest TEXT)", 10
    )


def open_one_table_database(place: Path, table: str, timeout: float) -> sqlite3.Connection:
    """Open a database of one table, `NAME (COLUMN TYPE PRIMARY KEY, ...)`, which is created if necessary.

    Raises:
        sqlite3.Error: it is damaged, or locked for `timeout` seconds.
    """
    database = sqlite3.connect(place, timeout=timeout)
    try:
        database.execute(f"CREATE TABLE IF NOT EXISTS {table} WITHOUT ROWID")
    except BaseException:
        database.close()
        raise
    return database


def _look_up_hashes(states: Mapping[str, FileState]) -> dict[str, str]:
    """Look up the hashes of files in these states."""
    names, known = {_hash_cache_key(name, state): name for name, state in states.items()}, {}
    keys = list(names)
    try:
        with closing(_digest_database()) as database:
            for start in range(0, len(keys), FILES_PER_BATCH):
                part = keys[start : start + FILES_PER_BATCH]
                marks = ", ".join("?" * len(part))
                for key, digest in database.execute(f"SELECT * FROM digests WHERE file IN ({marks})", part):
                    known[names[key]] = digest
    except (sqlite3.Error, UserError) as error:  # locked for long, or no folder can be written: read the files
        if isinstance(error, sqlite3.DatabaseError) and not isinstance(error, sqlite3.OperationalError):
            (writable_data_folder() / DIGESTS_FILE).unlink(missing_ok=True)  # damaged
        return {}
    return known


def _store_hashes(found: Mapping[str, tuple[FileState, str]]) -> None:
    """Store hashes for the next time, by each file's state before it was read."""
    rows = [(_hash_cache_key(name, state), digest) for name, (state, digest) in found.items()]
    try:
        with closing(_digest_database()) as database, database:
            database.executemany("INSERT OR REPLACE INTO digests VALUES (?, ?)", rows)
    except (sqlite3.Error, UserError):
        pass


def _hash_cache_key(name: str, state: FileState) -> str:
    """Write a file and its state as text that SQLite can hold."""
    return json.dumps([name, *state])


def check_splits_fit_facts(name: str, facts: Facts, splits: Mapping[str, Split], made_from: str = "") -> None:
    """Refuse splits that do not fit the facts: names, counts, shapes, types, ranges of the labels.

    Args:
        name: of the data set, for the message.
        made_from: the files that it was made from, for the message.

    Raises:
        UserError: says which split, what it has and what it should have.
    """
    where = f"{name} (made from {made_from})" if made_from else name
    if set(splits) != set(facts.splits):
        raise UserError(f"{where}: has the splits {', '.join(splits)}, {', '.join(facts.splits)} are needed")
    for split_name, split in splits.items():
        if problem := _why_split_misfits(facts, split_name, split):
            raise UserError(f"{where}: split {split_name}: {problem}")


def _why_split_misfits(facts: Facts, name: str, split: Split) -> str | None:
    count, bias_classes = len(split), facts.facts_of_split(name).bias_classes
    if count == 0:
        return "is empty; the files are not complete, or the options leave nothing for it"
    wanted = {
        "inputs": (_input_dtype(split, facts), (count, *facts.shape)),
        "target": ("int64", (count,)),
        "bias": ("int64", (count,)) if bias_classes else None,
        "condition": None if facts.condition is None else ("float32", (count, facts.condition)),
    }
    for what, kind in wanted.items():
        array = getattr(split, what)
        found = None if array is None else (str(array.dtype), array.shape)
        if found != kind:
            return f"{what}: {found} given, {kind} is needed"
        if array is not None and array.dtype.kind == "f" and not np.isfinite(array).all():
            return f"{what}: not finite everywhere"
    lowest = -1 if facts.unlabelled and name == "train" else 0
    for what, labels, low, classes in (
        ("target", split.target, lowest, facts.classes),
        ("bias", split.bias, -facts.some_bias, bias_classes or 0),
    ):
        if labels is not None and len(wrong := np.flatnonzero((labels < low) | (labels >= classes))):
            return f"{what} of sample {wrong[0]} is {labels[wrong[0]]}, allowed is {low} to {classes - 1}"
    return None


def _input_dtype(split: Split, facts: Facts) -> str:
    """Return the type that inputs must have: float16 holds features that a network computed."""
    if not facts.is_table:
        return "uint8"
    return "float16" if split.inputs.dtype == np.float16 else "float32"


CACHE_FORMAT_VERSION = 6
"""Version of an entry's files, and of the code that reads and resizes images and numbers labels for them."""

PREPARED_FOLDER, ENTRY_INDEX_FILE = "prepared", "entry.json"


def load_or_build_dataset(
    name: str,
    options: Any,
    facts: Facts,
    build: Callable[[], Mapping[str, Split]],
    places: Sequence[Source | Path | Sequence[Path]] = (),
) -> Dataset:
    """Load the data set, memory-mapped; build it first if it was not built for these options and files.

    Args:
        name: of the data set, for the folder's name.
        options: all that the arrays depend on besides files: a dataclass, or plain values by name.
        facts: the arrays are checked against them when they are built.
        build: makes the splits, with arrays that do not fit into memory in `allocate_array_on_disk`.
        places: files, folders and lists of files that it reads, always in the same order; their content is part of the
            key, their paths are not.

    Raises:
        UserError: a source is missing, the arrays do not fit `facts`, or no folder can be written.
    """
    shape = (facts.classes, facts.bias_classes, facts.shape, facts.condition, facts.splits)
    found = [place.find() if isinstance(place, Source) else place for place in places]
    key = dict(options) if isinstance(options, Mapping) else asdict(options)
    for option in ("aligned", "folds"):  # say something of the labels and of what trials take, and change no array
        key.pop(option, None)
    text = json.dumps([CACHE_FORMAT_VERSION, key, shape, list(map(hash_file_or_folder, found))], sort_keys=True)
    entry = f"{name}-{hashlib.sha256(text.encode()).hexdigest()[:16]}"
    for folder in data_roots():
        if dataset := _read_cache_entry(folder / PREPARED_FOLDER / entry, facts):
            return dataset
    place = writable_data_folder(PREPARED_FOLDER) / entry
    with _lock_cache_entry(place):
        if not (dataset := _read_cache_entry(place, facts)):  # another process may have built it while this one waited
            with check_files_unchanged([file for one in found for file in list_files_at_path(one)]):
                splits = build()
            check_splits_fit_facts(name, facts, splits, ", ".join(str(one) for one in found if isinstance(one, Path)))
            _write_cache_entry(place, splits, key)
            dataset = _read_cache_entry(place, facts)
        if not dataset:
            raise UserError(f"{place}: cannot be read after it was written. Check the disk, or set STUDY_DATA")
        return dataset


def allocate_array_on_disk(shape: tuple[int, ...]) -> NDArray[np.uint8]:
    """Allocate an array of bytes on disk for a build to fill; it disappears when it is no longer used.

    Raises:
        OSError: there is no room. If that were found out while the array is filled, the system would end the process.
    """
    folder = writable_data_folder(PREPARED_FOLDER)
    with tempfile.TemporaryFile(dir=folder) as file:
        try:
            os.posix_fallocate(file.fileno(), 0, max(1, math.prod(shape)))
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(folder)) from None
        return np.memmap(file, dtype=np.uint8, mode="w+", shape=shape)


@contextmanager
def _lock_cache_entry(place: Path) -> Iterator[None]:
    """Lock an entry, so that no other process builds it."""
    with place.with_name(f".{place.name}.lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
        except OSError as error:
            problem = f"{place.parent}: cannot be locked: {error.strerror}. Set STUDY_DATA to a disk that can"
            raise UserError(problem) from None
        yield


def _write_cache_entry(place: Path, splits: Mapping[str, Split], key: Section) -> None:
    needed, free = sum(split.inputs.nbytes for split in splits.values()), shutil.disk_usage(place.parent).free
    if needed > free:
        problem = f"{needed / 1e6:.0f} MB are needed, {free / 1e6:.0f} MB are free"
        raise UserError(f"{place.parent}: {problem}. Make room, or set STUDY_DATA to a larger disk")
    with temporary_folder_beside(place) as part:
        for name, split in splits.items():
            with (part / f"{name}.npy").open("wb") as file:
                plain: Any = SimpleNamespace(write=file.write)  # into a file itself NumPy hides what the disk says
                np.save(plain, split.inputs, allow_pickle=False)
            labels: dict[str, Any] = {"target": split.target, "bias": split.bias, "condition": split.condition}
            np.savez(part / f"{name}.labels.npz", **{k: v for k, v in labels.items() if v is not None})
        sizes = {file.name: file.stat().st_size for file in sorted(part.iterdir())}
        index = {"fingerprint": fingerprint_of_splits(splits), "bytes": sizes, "key": key}
        (part / ENTRY_INDEX_FILE).write_text(json.dumps(index, indent=1), encoding="utf-8")
        shutil.rmtree(place, ignore_errors=True)  # a damaged one
        part.replace(place)


def _read_cache_entry(folder: Path, facts: Facts) -> Dataset | None:
    """Read an entry; None if it is missing, or a file has another size than it was written with."""
    try:
        index = json.loads((folder / ENTRY_INDEX_FILE).read_text(encoding="utf-8"))
        if any((folder / file).stat().st_size != size for file, size in index["bytes"].items()):
            return None
        splits = {split: _read_cached_split(folder, split) for split in facts.splits}
        return Dataset(facts, splits, index["fingerprint"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _read_cached_split(folder: Path, name: str) -> Split:
    with np.load(folder / f"{name}.labels.npz", allow_pickle=False) as labels:
        # as a plain array on the same mapped file: pickle, and so Ray, would copy a memmap instead of sharing it
        inputs = np.asarray(np.load(folder / f"{name}.npy", mmap_mode="r", allow_pickle=False))
        return Split(inputs, **{label: labels[label] for label in labels.files})
