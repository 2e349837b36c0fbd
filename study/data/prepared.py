"""Prepared data sets that are made from many files, cached by their options and a stamp of the files."""

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from study.data.cache import cached
from study.data.dataset import Dataset, Facts, Split

VERSION = 1
"""Of the code that reads and resizes images."""


def prepared(
    name: str, options: Any, facts: Facts, places: Sequence[Path], build: Callable[[], Mapping[str, Split]]
) -> Dataset:
    """The data set, built once for these options and files, then mapped from disk.

    Args:
        options: of the data set, a dataclass.
        places: files and folders that it is made from, always in the same order; their paths do not matter.
        build: makes the splits.
    """
    stamps = [stamp(place) for place in places]
    return cached(name, {"options": asdict(options), "version": VERSION, "files": stamps}, facts, build)


def stamp(place: Path) -> str:
    """A hash that changes with a file's content, or with the names and sizes of the files under a folder."""
    digest = hashlib.sha256()
    if place.is_dir():
        for name, size in sorted(_listing(str(place), "")):
            digest.update(f"{name}\0{size}\n".encode(errors="surrogateescape"))
    else:
        with place.open("rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()[:16]


def _listing(folder: str, prefix: str) -> Iterator[tuple[str, int]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir():
                yield from _listing(entry.path, f"{prefix}{entry.name}/")
            else:
                yield prefix + entry.name, entry.stat().st_size
