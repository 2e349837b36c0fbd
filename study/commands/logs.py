"""The history of a study's trials: their runs, losses and ends, with the traceback of a failed one and its output."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from study.home.events import EVENT_CLASSES
from study.home.folder import StudyFolder
from study.home.ledger import read_entries
from study.home.ledger_line import Entry
from study.home.record import StudyRecord
from study.home.trial_record import NAN
from study.metrics.metric_format import format_metric
from study.spec.yaml_document import mapping_or_empty
from study.text import format_time

MAX_METRICS_PER_LINE = 5
"""Metrics of an event up to which all are shown."""

MAX_OUTPUT_LINES = 200
"""Last lines of a trial's output that are shown."""

EVENT_KIND_WIDTH = max(map(len, EVENT_CLASSES))
"""Characters of the longest kind of event."""

UNLISTED_EVENT_KINDS = ("created", "trial", "report", "judged")
"""Kinds of event that a study's log leaves out: a trial's history has all but the first."""


@dataclass(frozen=True)
class EventHistory:
    """The events of a trial, or those of a study that are not in `UNLISTED_EVENT_KINDS`.

    Attributes:
        looked_at: the metrics that decide, also on test, and the loss.
        traceback: of a failed trial.
        printed: what the trial of a training function printed.
    """

    name: str
    trial: int | None
    looked_at: Sequence[str]
    events: Sequence[Entry]
    traceback: str | None
    printed: str | None


def read_history(folder: StudyFolder, trial: int | None) -> EventHistory:
    """Return the history of a trial; None: of the study.

    Raises:
        UserError: there is no such trial.
    """
    events = read_entries(folder.ledger_file)
    if trial is None:
        selected = [event for event in events if event["event"] not in UNLISTED_EVENT_KINDS]
    else:
        selected = [event for event in events if event.get("trial") == trial]
        if not selected:
            StudyRecord.load(folder.ledger_file).find_trial(trial, f"--trial {trial}", folder.name)
    error = None if trial is None else _read_file_or_none(folder.error_file(trial))
    printed = None if trial is None else _read_file_or_none(folder.output_file(trial))
    needed = folder.load_spec().objective.needed_metrics
    looked_at = ["train/loss", *needed, *(f"test/{name.split('/')[1]}" for name in needed)]
    return EventHistory(folder.name, trial, looked_at, selected, error, printed)


def _read_file_or_none(file: Path) -> str | None:
    """Read a file; None where it is not there."""
    return file.read_text(encoding="utf-8", errors="replace") if file.exists() else None


def event_history_text(history: EventHistory) -> str:
    """Return a history as text, a line for each event; of many metrics only those in `looked_at`."""
    lines = [_event_line(event, history.looked_at) for event in history.events]
    if history.traceback:
        lines += ["", history.traceback.rstrip()]
    if history.printed:
        printed = history.printed.rstrip().splitlines()
        more = len(printed) - MAX_OUTPUT_LINES
        before = f", {more} lines before these (--json)" if more > 0 else ""
        lines += ["", f"printed{before}:", *printed[-MAX_OUTPUT_LINES:]]
    return "\n".join(lines)


def _event_line(event: Entry, looked_at: Sequence[str]) -> str:
    left_out = ("event", "time", "libraries", "metrics", "device", "chain")
    told = {key: value for key, value in event.items() if key not in left_out}
    values = [f"{key} {value}" for key, value in told.items() if not _is_too_long_for_line(value)]
    device, measured = (mapping_or_empty(event.get(key)) for key in ("device", "metrics"))
    values += [f"device {device['name']}"] if "name" in device else []
    or_nan = {name: NAN if value is None else value for name, value in measured.items()}  # null: it was no number
    there = {name: value for name, value in or_nan.items() if isinstance(value, (int, float))}
    shown = [name for name in there if name in looked_at] if len(there) > MAX_METRICS_PER_LINE else list(there)
    metrics = ", ".join(f"{name} {format_metric(name, there[name])}" for name in shown)
    if more := len(there) - len(shown):
        metrics += f" and {more} more (--json)" if metrics else f"{more} metrics (--json)"
    line = ", ".join(values) + (f": {metrics}" if metrics else "")
    return f"{format_time(event['time'])}  {event['event']:<{EVENT_KIND_WIDTH}} {line}"


def _is_too_long_for_line(value: object) -> bool:
    """Return whether a value is too long for a line: tables, and objects of objects; `--json` has them."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return any(isinstance(one, (dict, list)) for one in inner)
