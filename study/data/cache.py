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
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from study.data import contents
from study.data.dataset import Dataset, Facts, Split, fingerprint
from study.data.source import Source, roots, writable
from study.errors import UserError
from study.files.whole import folder_beside

# Checks that the arrays of a data set fit its facts.


def check(name: str, facts: Facts, splits: Mapping[str, Split], made_from: str = "") -> None:
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
        problem = next((text for text in _problems(facts, split_name, split) if text), None)
        if problem:
            raise UserError(f"{where}: split {split_name}: {problem}")


def _problems(facts: Facts, name: str, split: Split) -> list[str]:
    count = len(split)
    if count == 0:
        return ["is empty; the files are not complete, or the options leave nothing for it"]
    expected = np.dtype(np.float32 if facts.is_table else np.uint8)
    lowest = -1 if facts.unlabelled and name == "train" else 0
    return [
        _shape("inputs", split.inputs, (count, *facts.shape)),
        "" if split.inputs.dtype == expected else f"inputs are {split.inputs.dtype}, {expected} is needed",
        _labels("target", split.target, count, facts.classes, lowest),
        _optional("bias", split.bias, facts.on(name).bias_classes),
        "" if split.bias is None else _labels("bias", split.bias, count, facts.bias_classes or 0, -facts.some_bias),
        _optional("condition", split.condition, facts.condition),
        "" if split.condition is None else _shape("condition", split.condition, (count, facts.condition or 0)),
        "" if split.condition is None or np.isfinite(split.condition).all() else "condition is not finite everywhere",
        "" if not facts.is_table or np.isfinite(split.inputs).all() else "inputs are not finite everywhere",
    ]


def _shape(what: str, array: NDArray[np.generic], shape: tuple[int, ...]) -> str:
    return "" if array.shape == shape else f"{what} have shape {array.shape}, {shape} is needed"


def _optional(what: str, array: NDArray[np.generic] | None, size: int | None) -> str:
    if (array is None) == (size is None):
        return ""
    return f"has no {what}" if array is None else f"has {what}, which the data set does not declare"


def _labels(what: str, labels: NDArray[np.int64], count: int, classes: int, lowest: int = 0) -> str:
    if labels.shape != (count,) or labels.dtype != np.int64:
        return f"{what} is {labels.dtype} {labels.shape}, int64 ({count},) is needed"
    low, high = int(labels.min()), int(labels.max())
    if low < lowest or high >= classes:
        wrong = low if low < lowest else high
        position = int(np.argmax(labels == wrong))
        return f"{what} of sample {position} is {wrong}, allowed is {lowest} to {classes - 1}"
    return ""


FORMAT = 1
"""Version of an entry's files."""

FOLDER, INDEX = "prepared", "entry.json"


def cached(
    name: str,
    key: Mapping[str, Any],
    facts: Facts,
    build: Callable[[], Mapping[str, Split]],
    sources: Sequence[Source] = (),
) -> Dataset:
    """The data set, built once for this key and these files, then mapped from disk.

    Args:
        name: of the data set, for the folder's name.
        key: everything else that the arrays depend on, plain values: options, a version of the code that builds them.
        facts: the arrays are checked against them when they are built.
        build: makes the splits, with arrays that do not fit into memory in `scratch`.
        sources: the files that it reads; their content is part of the key.

    Raises:
        UserError: a source is missing, the arrays do not fit `facts`, or no folder can be written.
    """
    shape = (facts.classes, facts.bias_classes, facts.shape, facts.condition, facts.splits)
    stamps = {source.path: contents.stamp(source.find()) for source in sources}
    text = json.dumps([FORMAT, dict(key), shape, stamps], sort_keys=True)
    entry = f"{name}-{hashlib.sha256(text.encode()).hexdigest()[:16]}"
    for folder in roots():
        if dataset := _read(folder / FOLDER / entry, facts):
            return dataset
    place = writable(FOLDER) / entry
    with _alone(place):
        if not (dataset := _read(place, facts)):  # another process may have built it while this one waited
            with contents.unchanged([file for source in sources for file in contents.files_of(source.find())]):
                splits = build()
            check(name, facts, splits, ", ".join(str(source.find()) for source in sources))
            _write(place, splits, key)
            dataset = _read(place, facts)
        if not dataset:
            raise UserError(f"{place}: cannot be read after it was written. Check the disk, or set STUDY_DATA")
        return dataset


def scratch(shape: tuple[int, ...], dtype: DTypeLike = np.uint8) -> NDArray[Any]:
    """An array on disk for a build to fill; it disappears when it is no longer used.

    Raises:
        OSError: there is no room. Where that came out while it is filled, the system would end the process.
    """
    folder = writable(FOLDER)
    with tempfile.TemporaryFile(dir=folder) as file:
        try:
            os.posix_fallocate(file.fileno(), 0, max(1, math.prod(shape) * np.dtype(dtype).itemsize))
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(folder)) from None
        return np.memmap(file, dtype=dtype, mode="w+", shape=shape)


@contextmanager
def _alone(place: Path) -> Iterator[None]:
    """While this holds, no other process builds the same entry."""
    with place.with_name(f".{place.name}.lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
        except OSError as error:
            problem = f"{place.parent}: cannot be locked: {error.strerror}. Set STUDY_DATA to a disk that can"
            raise UserError(problem) from None
        yield


def _write(place: Path, splits: Mapping[str, Split], key: Mapping[str, Any]) -> None:
    needed, free = sum(split.inputs.nbytes for split in splits.values()), shutil.disk_usage(place.parent).free
    if needed > free:
        problem = f"{needed / 1e6:.0f} MB are needed, {free / 1e6:.0f} MB are free"
        raise UserError(f"{place.parent}: {problem}. Make room, or set STUDY_DATA to a larger disk")
    with folder_beside(place) as part:
        for name, split in splits.items():
            with (part / f"{name}.npy").open("wb") as file:
                plain: Any = SimpleNamespace(write=file.write)  # into a file itself NumPy hides what the disk says
                np.save(plain, split.inputs, allow_pickle=False)
            labels: dict[str, Any] = {"target": split.target, "bias": split.bias, "condition": split.condition}
            np.savez(part / f"{name}.labels.npz", **{k: v for k, v in labels.items() if v is not None})
        sizes = {file.name: file.stat().st_size for file in sorted(part.iterdir())}
        index = {"fingerprint": fingerprint(splits), "bytes": sizes, "key": dict(key)}
        (part / INDEX).write_text(json.dumps(index, indent=1), encoding="utf-8")
        shutil.rmtree(place, ignore_errors=True)  # a damaged one
        part.replace(place)


def _read(folder: Path, facts: Facts) -> Dataset | None:
    """The entry; None if it is missing, or damaged by the sizes of its files."""
    try:
        index = json.loads((folder / INDEX).read_text(encoding="utf-8"))
        if any((folder / file).stat().st_size != size for file, size in index["bytes"].items()):
            return None
        splits = {split: _split(folder, split) for split in facts.splits}
        return Dataset(facts, splits, index["fingerprint"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _split(folder: Path, name: str) -> Split:
    with np.load(folder / f"{name}.labels.npz", allow_pickle=False) as labels:
        # as a plain array on the same mapped file: pickle, and so Ray, would copy a memmap instead of sharing it
        inputs = np.asarray(np.load(folder / f"{name}.npy", mmap_mode="r", allow_pickle=False))
        return Split(inputs, **{label: labels[label] for label in labels.files})


# Prepared data sets that are made from many files, cached by their options and the content of the files.

VERSION = 5
"""Of the code that reads and resizes images, and numbers a user's labels."""


def prepared(
    name: str,
    options: Any,
    facts: Facts,
    places: Sequence[Path | Sequence[Path]],
    build: Callable[[], Mapping[str, Split]],
) -> Dataset:
    """The data set, built once for these options and files, then mapped from disk.

    Args:
        options: of the data set, a dataclass.
        places: files, folders and lists of files that it is made from, always in the same order; their paths do not
            matter.
        build: makes the splits.
    """
    stamps = [contents.stamp(place) for place in places]

    def build_unchanged() -> Mapping[str, Split]:
        with contents.unchanged([file for place in places for file in contents.files_of(place)]):
            return build()

    key = {"options": asdict(options), "version": VERSION, "files": stamps}
    return cached(name, key, facts, build_unchanged)
