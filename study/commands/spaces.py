"""What `study spaces` lists: the shipped study files, and the data sets, networks and methods there are."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from study import data, methods, models
from study.catalogue import Catalogue
from study.spec.document import shipped
from study.spec.suite import shipped_suites

MAX_LINE_CHARACTERS = 150


def document() -> dict[str, Any]:
    """Return the study files, the suites, and the values that `data.name`, `model.name` and `method.name` take."""
    catalogues = {"data": data.CATALOGUE, "model": models.CATALOGUE, "method": methods.CATALOGUE}
    return {
        "files": [{"name": name, "about": _about(path), "path": str(path)} for name, path in shipped().items()],
        "suites": [{"name": name, "about": _about(path), "path": str(path)} for name, path in shipped_suites().items()],
        **{section: list(_names(section, catalogue)) for section, catalogue in catalogues.items()},
    }


def text(document: Mapping[str, Any]) -> str:
    """Return that document as text for people."""
    lines = ["study files, for study run NAME:"]
    lines += [f"  {row['name']:<20} {_cut(row['about'])}" for row in document["files"]]
    lines.append("suites, for study suite NAME:")
    lines += [f"  {row['name']:<20} {_cut(row['about'])}" for row in document["suites"]]
    for section in ("data", "model", "method"):
        lines.append(f"{section}.name:")
        for row in document[section]:
            origin = f" (of {row['origin']})" if row["origin"] else ""
            about = f"cannot be used: {row['problem']}" if row["problem"] else _cut(row["about"])
            lines.append(f"  {row['name']:<30} {about}{origin}")
    return "\n".join([*lines, "whether files of a data set are there: study data list"])


def _about(path: Path) -> str:
    """Return the first sentence of the comment at the head of a file."""
    comment = " ".join(_head(path.read_text(encoding="utf-8")))
    return re.split(r"(?<=\.)\s", comment, maxsplit=1)[0].rstrip(".")


def _head(text: str) -> Iterator[str]:
    """Yield the lines of the comment at the head of a file, without those for editors."""
    for line in text.splitlines():
        if not line.startswith("#"):
            return
        if not line.startswith("# yaml-language-server:"):
            yield line.removeprefix("#").strip()


def _names(section: str, catalogue: Catalogue) -> Iterator[dict[str, Any]]:
    for name in catalogue.names():
        problem = catalogue.problem(name)
        words = "" if problem else methods.about(name) if section == "method" else catalogue.about(name)
        yield {"name": name, "about": words, "origin": catalogue.origin(name), "problem": problem}


def _cut(words: str) -> str:
    return words if len(words) <= MAX_LINE_CHARACTERS else f"{words[: MAX_LINE_CHARACTERS - 3].rsplit(' ', 1)[0]} ..."
