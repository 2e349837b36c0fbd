"""What became of a study's trials: their runs, losses and ends, with the traceback of one that failed."""

from typing import Any

from study.errors import UserError
from study.home.folder import StudyFolder
from study.home.ledger import read
from study.text.moment import moment

TOLD = ("opened", "started", "lost", "ended", "tested", "untested", "closed")


def document(folder: StudyFolder, trial: int | None) -> dict[str, Any]:
    """Events of a trial, or of the study without its reports; plain values for JSON.

    Raises:
        UserError: there is no such trial.
    """
    events = read(folder.ledger_file)
    if trial is None:
        found = [event for event in events if event["event"] in TOLD]
    else:
        found = [event for event in events if event.get("trial") == trial]
        if not found:
            raise UserError(f"{folder.name}: has no trial {trial}")
    file = None if trial is None else folder.error_file(trial)
    error = file.read_text(encoding="utf-8") if file and file.exists() else None
    return {"name": folder.name, "trial": trial, "events": found, "traceback": error}


def text(told: dict[str, Any]) -> str:
    """The same for people, a line for each event."""
    lines = [_line(event) for event in told["events"]]
    return "\n".join([*lines, *(["", told["traceback"].rstrip()] if told["traceback"] else [])])


def _line(event: dict[str, Any]) -> str:
    left_out = ("event", "time", "libraries", "metrics")
    given = ", ".join(f"{key} {value}" for key, value in event.items() if key not in left_out)
    metrics = ", ".join(f"{key} {value:.4g}" for key, value in event.get("metrics", {}).items() if value is not None)
    return f"{moment(event['time'])}  {event['event']:<8} {given}{f': {metrics}' if metrics else ''}"
