"""What `study spaces` lists: the shipped study files, and the names that study files can have."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from study import data, methods, models, published
from study.catalogue import Catalogue
from study.spec.document import read
from study.spec.find import shipped

PAPER = re.compile(r"\b(FairKL|DCL|CCL-K|WCL|FSCL) paper\b")
"""How a comment at the head of a study file names a paper; in small letters, without `-`, it is the paper's key."""

LONGEST = 150


def document() -> dict[str, Any]:
    """The study files, and for each of `data.name`, `model.name` and `method.name` what it can be."""
    papers = [published.load(name).paper for name in published.names()]
    titles: dict[str, str] = {one.key: f"{one.title} ({one.authors}, {one.year})" for one in papers}
    named = {"data": data.CATALOGUE, "model": models.CATALOGUE, "method": methods.CATALOGUE}
    return {
        "files": [_file(name, path, titles) for name, path in shipped().items()],
        **{section: list(_names(section, catalogue)) for section, catalogue in named.items()},
    }


def text(found: Mapping[str, Any]) -> str:
    """The same for people."""
    lines = ["study files, for study run NAME:"]
    for row in found["files"]:
        paper = f"; paper: {row['paper']}" if row["paper"] else ""
        lines += [f"  {row['name']:<20} {_cut(row['about'])}", f"  {'':<20} data: {', '.join(row['data'])}{paper}"]
    for section in ("data", "model", "method"):
        lines.append(f"{section}.name:")
        for row in found[section]:
            origin = f" (of {row['origin']})" if row["origin"] else ""
            words = f"cannot be used: {row['problem']}" if row["problem"] else _cut(row["about"])
            lines.append(f"  {row['name']:<30} {words}{origin}")
    return "\n".join([*lines, "whether files of a data set are there: study data list"])


def _file(name: str, path: Path, titles: Mapping[str, str]) -> dict[str, Any]:
    """A study file: the first sentence of the comment at its head, the paper, the data sets that its trials have."""
    words = " ".join(_head(path.read_text(encoding="utf-8")))
    key: str | None = published.load(name).paper.key if name in published.names() else None
    if key is None and (quoted := PAPER.search(words)):
        key = quoted[1].replace("-", "").lower()
    about = re.split(r"(?<=\.)\s", words, maxsplit=1)[0].rstrip(".")
    return {
        "name": name,
        "about": about,
        "paper": titles[key] if key else None,
        "data": _data_sets(read(path).values),
        "path": str(path),
    }


def _head(text: str) -> Iterator[str]:
    """The lines of the comment at the head of a file, what is for editors aside."""
    for line in text.splitlines():
        if not line.startswith("#"):
            return
        if not line.startswith("# yaml-language-server:"):
            yield line.removeprefix("#").strip()


def _data_sets(values: Mapping[str, Any]) -> list[str]:
    """The data sets that a shipped file's trials have: those that the search names, or else its own."""
    search = values["search"]
    labelled = search.get("alternatives", {}).get("data", {})
    enqueued = [one for one in search.get("enqueue", []) if isinstance(one, dict)]  # not where it is the word papers
    given = [search.get("space", {}), search.get("baseline") or {}, *enqueued]
    chosen = [name for one in given if "data.name" in one for name in _choices(one["data.name"])]
    names = [labelled[one]["name"] if one in labelled else one for one in chosen] or [values["data"]["name"]]
    return list(dict.fromkeys(names))


def _choices(domain: Any) -> list[str]:
    return domain["choices"] if isinstance(domain, dict) else [domain]


def _names(section: str, catalogue: Catalogue) -> Iterator[dict[str, Any]]:
    for name in catalogue.names():
        problem = catalogue.problem(name)
        words = "" if problem else methods.about(name) if section == "method" else catalogue.about(name)
        yield {"name": name, "about": words, "origin": catalogue.origin(name), "problem": problem}


def _cut(words: str) -> str:
    return words if len(words) <= LONGEST else f"{words[: LONGEST - 3].rsplit(' ', 1)[0]} ..."
