"""Prepared data sets that are made from many files, cached by their options and a stamp of the files."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from study.data.cache import cached
from study.data.dataset import Dataset, Facts, Split
from study.data.source import stamp_of_files, stamp_of_folder
from study.files import digest

VERSION = 3
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
    stamps = [stamp(place) for place in places]
    return cached(name, {"options": asdict(options), "version": VERSION, "files": stamps}, facts, build)


def stamp(place: Path | Sequence[Path]) -> str:
    """A hash that changes with a file's content, with names and sizes under a folder, or with sizes in a list of files.

    What is in a folder besides the files of a list is not looked at: it may be much, behind links.
    """
    if not isinstance(place, Path):
        return stamp_of_files(place)
    return stamp_of_folder(place) if place.is_dir() else digest.of_file(place)[:16]
