"""Prepared data sets that are made from many files, cached by their options and the content of the files."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from study.data import contents
from study.data.cache import cached
from study.data.dataset import Dataset, Facts, Split

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
