"""What `study data` does: which data sets there are, and getting one onto disk."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

from study import data
from study.data.dataset import Dataset, Facts, Split, fingerprint
from study.data.download import OnProgress, no_progress, obtain
from study.errors import UserError, nearest
from study.knobs import knobs

WIDEST = 20
"""Bias classes or classes up to which cells are printed; all are in the JSON document."""


def overview() -> list[dict[str, Any]]:
    """One row per data set: name, what it is, its keys, what it has, and whether its files are there.

    `origin` is the distribution that brings it, null for this package; `problem` says why it cannot be used.
    """
    return [_row(name) for name in data.names()]


def table(rows: Iterable[Mapping[str, Any]]) -> str:
    """The same for people."""
    lines = [f"{'data set':<18} {'classes':>7} {'bias':>5}  {'sample':<12} {'files':<8} what"]
    for row in rows:
        facts = row["facts"] or {}
        shape = " x ".join(str(size) for size in facts.get("shape", ())) or "-"
        bias = facts.get("bias_classes") or "-"
        there = {True: "there", False: "missing", None: "-"}[row["there"]]
        about = row["about"].removeprefix(f"{row['name']}: ")
        about += f" (of {row['origin']})" if row["origin"] else ""
        about = f"cannot be used: {row['problem']}" if row["problem"] else about
        lines.append(f"{row['name']:<18} {facts.get('classes', '-'):>7} {bias:>5}  {shape:<12} {there:<8} {about}")
    return "\n".join([*lines, f"files are looked for in {data.root()}; get one: study data prepare NAME"])


def prepare(name: str, assignments: Iterable[str] = (), progress: OnProgress = no_progress) -> dict[str, Any]:
    """Get the files of a data set, check them, build what trials read; what it then has.

    Args:
        assignments: keys of the data section, as `rho=0.95`.
        progress: told of downloads.

    Raises:
        UserError: an unknown name or key, a file that cannot be got or is not right, or prepared data that is damaged.
    """
    section = _section(name, assignments)
    for source in data.sources(section):
        obtain(source, progress)
    dataset = data.load(section)
    if fingerprint(dataset.splits) != dataset.fingerprint:
        raise UserError(
            f"{name}: its prepared files in {data.root()} are damaged: they are not what was written. Remove them "
            "(prepared/ there) and prepare it again"
        )
    splits = {split: _contents(dataset, part) for split, part in dataset.splits.items()}
    return {
        "name": name,
        "title": dataset.facts.title or name,
        "options": {key: value for key, value in section.items() if key != "name"},
        "fingerprint": dataset.fingerprint,
        **_plain(dataset.facts),
        "splits": splits,
    }


def text(document: Mapping[str, Any]) -> str:
    """What `prepare` found, for people."""
    options = ", ".join(f"{key}={value}" for key, value in document["options"].items())
    shape = " x ".join(str(size) for size in document["shape"])
    bias = f", {document['bias_classes']} bias classes" if document["bias_classes"] else ""
    lines = [
        f"{document['title']} ({options})" if options else document["title"],
        f"{document['classes']} classes{bias}, samples {shape}, fingerprint {document['fingerprint']}",
    ]
    for name, split in document["splits"].items():
        lines.append(f"{name:<6} {split['samples']:>7} samples")
        if split["aligned"] is not None:
            lines[-1] += f", {split['conflicting']} conflicting ({split['conflicting'] / split['samples']:.2%})"
        if split["cells"] and max(document["classes"], document["bias_classes"]) <= WIDEST:
            lines.append("       samples per class (rows) and bias class (columns):")
            for label, row in enumerate(split["cells"]):
                lines.append(f"       {label:>2}: " + " ".join(f"{count:6d}" for count in row))
    return "\n".join(lines)


@contextmanager
def download_bars(quiet: bool = False) -> Iterator[OnProgress]:
    """What `prepare` tells of its downloads, shown as bars on standard error, or not at all."""
    if quiet:
        yield no_progress
        return
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True)) as bars:
        tasks: dict[str, TaskID] = {}

        def show(name: str, done: int, total: int | None) -> None:
            if name not in tasks:
                tasks[name] = bars.add_task(name, total=total)
            bars.update(tasks[name], completed=done, total=total)

        yield show


def _row(name: str) -> dict[str, Any]:
    row: dict[str, Any] = {"name": name, "about": "", "origin": data.CATALOGUE.origin(name)}
    row |= {"problem": data.CATALOGUE.problem(name), "keys": [], "required": []}
    row |= {"facts": None, "files": [], "there": None}
    if row["problem"]:
        return row
    module = data.module(name)
    keys = list(knobs(module.Options))
    required = [knob.key for knob in keys if knob.required]
    row |= {"about": (module.__doc__ or "").partition("\n")[0].rstrip(".")}
    row |= {"keys": [knob.key for knob in keys], "required": required}
    if required:  # which files, only the user knows
        return row
    section = {"name": name}
    sources = data.sources(section)
    row["files"] = [{"path": one.path, "there": one.existing_path() is not None, "url": one.url} for one in sources]
    row["there"] = all(file["there"] for file in row["files"])
    try:
        row["facts"] = _plain(data.describe(section))
    except UserError:  # what it has depends on files that are not there
        row["there"] = False
    return row


def _section(name: str, assignments: Iterable[str]) -> dict[str, Any]:
    """The checked data section of a name and `key=value` overrides, every default filled in."""
    from study.spec.checks import Problems, check, section_model  # these bring torch, which takes seconds
    from study.spec.document import Document, override

    if name not in data.names():
        raise UserError(f"{name!r}: no such data set. {nearest(name, data.names())}Known: {', '.join(data.names())}")
    document = Document(f"study data prepare {name}", {})
    override(document, assignments)
    problems = Problems(document)
    values = check(section_model("data", knobs(data.module(name).Options)), document.values, (), problems)
    problems.raise_any()
    return {"name": name, **(values or {})}


def _plain(facts: Facts) -> dict[str, Any]:
    """Facts as JSON has them."""
    return {key: list(value) if isinstance(value, tuple) else value for key, value in asdict(facts).items()}


def _contents(dataset: Dataset, split: Split) -> dict[str, Any]:
    facts, labelled = dataset.facts, split.target >= 0
    found: dict[str, Any] = {"samples": len(split), "unlabelled": int((~labelled).sum())}
    found["classes"] = np.bincount(split.target[labelled], minlength=facts.classes).tolist()
    found |= {"cells": None, "aligned": None, "conflicting": None}
    if split.bias is not None and facts.bias_classes:
        cells = split.target[labelled] * facts.bias_classes + split.bias[labelled]
        counts = np.bincount(cells, minlength=facts.classes * facts.bias_classes)
        found["cells"] = counts.reshape(facts.classes, facts.bias_classes).tolist()
        if facts.classes == facts.bias_classes and not facts.is_table:  # else no bias class is a class's own
            found["aligned"] = int((split.target == split.bias).sum())
            found["conflicting"] = len(split) - found["aligned"]
    return found
