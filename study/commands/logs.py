"""The history of a study's trials: their runs, losses and ends, with the traceback of a failed one and its output."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from study.errors import UserError
from study.home.folder import StudyFolder
from study.home.ledger import read
from study.text import moment

FEW_METRICS = 5
"""Metrics of an event up to which all are shown."""

MAX_OUTPUT_LINES = 200
"""Last lines of a trial's output that are shown."""

STUDY_EVENTS = ("opened", "started", "lost", "ended", "tested", "untested", "closed")


def document(folder: StudyFolder, trial: int | None) -> dict[str, Any]:
    """Return the events of a trial, or of the study without its reports, as plain values for JSON.

    `looked_at` names the metrics that decide, and the loss; `printed` is what the trial of a training function printed.

    Raises:
        UserError: there is no such trial.
    """
    events = read(folder.ledger_file)
    if trial is None:
        selected = [event for event in events if event["event"] in STUDY_EVENTS]
    else:
        selected = [event for event in events if event.get("trial") == trial]
        if not selected:
            raise UserError(f"{folder.name}: has no trial {trial}")
    error = None if trial is None else _read(folder.error_file(trial))
    printed = None if trial is None else _read(folder.output_file(trial))
    looked_at = ["train/loss", *folder.spec().objective.needed]
    history = {"name": folder.name, "trial": trial, "looked_at": looked_at, "events": selected, "traceback": error}
    return history | {"printed": printed}


def _read(file: Path) -> str | None:
    """Read a file; None where it is not there."""
    return file.read_text(encoding="utf-8", errors="replace") if file.exists() else None


def text(document: dict[str, Any]) -> str:
    """Return a history as text, a line for each event; of many metrics only those in `looked_at`."""
    lines = [_line(event, document["looked_at"]) for event in document["events"]]
    if document["traceback"]:
        lines += ["", document["traceback"].rstrip()]
    if document["printed"]:
        printed = document["printed"].rstrip().splitlines()
        before = (
            f", {len(printed) - MAX_OUTPUT_LINES} lines before these (--json)"
            if len(printed) > MAX_OUTPUT_LINES
            else ""
        )
        lines += ["", f"printed{before}:", *printed[-MAX_OUTPUT_LINES:]]
    return "\n".join(lines)


def _line(event: dict[str, Any], looked_at: list[str]) -> str:
    left_out = ("event", "time", "libraries", "metrics", "device", "chain")
    values = [f"{key} {value}" for key, value in event.items() if key not in left_out and not _is_long(value)]
    device, measured = (_table(event.get(key)) for key in ("device", "metrics"))
    values += [f"device {device['name']}"] if "name" in device else []
    there = {name: value for name, value in measured.items() if isinstance(value, (int, float))}
    shown = [name for name in there if name in looked_at] if len(there) > FEW_METRICS else list(there)
    metrics = ", ".join(f"{name} {there[name]:.4g}" for name in shown)
    metrics += f" and {len(there) - len(shown)} more (--json)" if len(there) > len(shown) else ""
    return f"{moment(event['time'])}  {event['event']:<8} {', '.join(values)}{f': {metrics}' if metrics else ''}"


def _table(value: object) -> Mapping[str, object]:
    """Return a field that is a mapping; an event of another version may hold anything there."""
    return value if isinstance(value, dict) else {}


def _is_long(value: object) -> bool:
    """Return whether a value is too long for a line: tables, and objects of objects; `--json` has them."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return any(isinstance(one, (dict, list)) for one in inner)
