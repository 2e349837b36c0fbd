"""What `study spaces` lists: the shipped study files, and the data sets, networks and methods there are."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

from study import data, methods, models
from study.catalogue import Catalogue
from study.spec.suite import shipped_suites
from study.spec.yaml_document import shipped_study_files

MAX_LINE_CHARACTERS = 150


@dataclass(frozen=True)
class ShippedFile:
    """A shipped file."""

    name: str
    about: str
    path: str


@dataclass(frozen=True)
class NameRow:
    """A name that a section can have, what provides it (None: this package), and why it cannot be used."""

    name: str
    about: str
    origin: str | None
    problem: str | None


@dataclass(frozen=True)
class AvailableNames:
    """Study files, suites, and the values that `data.name`, `model.name` and `method.name` take."""

    files: Sequence[ShippedFile]
    suites: Sequence[ShippedFile]
    data: Sequence[NameRow]
    model: Sequence[NameRow]
    method: Sequence[NameRow]


def list_spaces() -> AvailableNames:
    """List what is shipped, and all names."""
    sections = (("data", data.CATALOGUE), ("model", models.CATALOGUE), ("method", methods.CATALOGUE))
    names = [list(_name_rows(section, catalogue)) for section, catalogue in sections]
    return AvailableNames(_shipped_files(shipped_study_files()), _shipped_files(shipped_suites()), *names)


def _shipped_files(files: Mapping[str, Path]) -> list[ShippedFile]:
    return [ShippedFile(name, _first_comment_sentence(path), str(path)) for name, path in files.items()]


def spaces_text(spaces: AvailableNames) -> str:
    """Return that list as text for people."""
    lines = []
    for head, files in (("study files, for study run", spaces.files), ("suites, for study suite", spaces.suites)):
        lines += [f"{head} NAME:", *(f"  {row.name:<20} {_shorten_line(row.about)}" for row in files)]
    for section, rows in (("data", spaces.data), ("model", spaces.model), ("method", spaces.method)):
        lines.append(f"{section}.name:")
        for row in rows:
            origin = f" (of {row.origin})" if row.origin else ""
            about = f"cannot be used: {row.problem}" if row.problem else _shorten_line(row.about)
            lines.append(f"  {row.name:<30} {about}{origin}")
    return "\n".join([*lines, "whether files of a data set are there: study data list"])


def _first_comment_sentence(path: Path) -> str:
    """Return the first sentence of the comment at the head of a file, without its lines for editors."""
    head = takewhile(lambda line: line.startswith("#"), path.read_text(encoding="utf-8").splitlines())
    lines = (line.removeprefix("#").strip() for line in head if not line.startswith("# yaml-language-server:"))
    return re.split(r"(?<=\.)\s", " ".join(lines), maxsplit=1)[0].rstrip(".")


def _name_rows(section: str, catalogue: Catalogue) -> Iterator[NameRow]:
    for name in catalogue.listed_names():
        problem = catalogue.why_unusable(name)
        words = "" if problem else methods.describe_method(name) if section == "method" else catalogue.description(name)
        yield NameRow(name, words, catalogue.declaring_distributions(name), problem)


def _shorten_line(words: str) -> str:
    return words if len(words) <= MAX_LINE_CHARACTERS else f"{words[: MAX_LINE_CHARACTERS - 3].rsplit(' ', 1)[0]} ..."
