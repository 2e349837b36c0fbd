"""What happened in a study: one line of JSON per event, appended and synced to disk before anyone acts on it.

The ledger is the one truth of a study. Optuna's history, ASHA's rungs, the MLflow runs, progress and report are
all derived from it, so that after a crash they can be derived again (`study.record` folds it into objects).

Events, each with `time` in seconds since the epoch:

| event | fields |
|---|---|
| created | id: the study exists |
| opened | versions, machine, data fingerprint: a driver took the study up |
| trial | trial, stage, params, seed, repeats: a configuration was decided on |
| started | trial, node: it runs, from its first epoch |
| report | trial, epoch, metrics |
| ended | trial, state, reason |
| tested | trial, metrics: the test split was read |
| untested | trial, reason: it should have been, and could not |
| extended | trials: how many configurations the search may try from now on |
| closed | state, enough: the driver let go of the study; which limit ended the search |
"""

import fcntl
import json
import os
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from study.errors import UserError

Event = dict[str, Any]


class Ledger:
    """The ledger of one study, open for appending by one driver at a time.

    Raises:
        UserError: another process holds it, or a line in it is damaged.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = open(path, "ab")  # noqa: SIM115 (closed by close())
        if not _lock(self._file, patience=0.5):
            self._file.close()
            raise UserError(f"{path.parent.name}: another process is running this study; its state: study status")
        whole = _whole_lines(path)
        self._file.truncate(whole)  # a crash in mid-write leaves a part of a line, which nobody has acted on

    @classmethod
    def create(cls, path: Path) -> None:
        """Begin the ledger of a new study, with an id of its own."""
        path.touch()
        ledger = cls(path)
        ledger.append("created", id=uuid.uuid4().hex)
        ledger.close()

    def append(self, event: str, **fields: Any) -> Event:
        """Write one event; it is on disk when this returns. Fields that are None are left out."""
        given = {key: value for key, value in fields.items() if value is not None}
        entry: Event = {"event": event, "time": round(time.time(), 3), **given}
        self._file.write(json.dumps(entry, allow_nan=False, separators=(",", ":")).encode() + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())
        return entry

    def close(self) -> None:
        self._file.close()


def read(path: Path) -> list[Event]:
    """All events on disk; an unfinished last line is left out."""
    return list(Tail(path).new())


def is_open(path: Path) -> bool:
    """Whether a driver holds the ledger at this moment."""
    with open(path, "rb") as file:
        return not _lock(file)


class Tail:
    """Reads a ledger from an offset on, as it grows.

    Args:
        offset: bytes to leave out; after each event that `new` gives, the offset behind it.
    """

    def __init__(self, path: Path, offset: int = 0) -> None:
        self.path, self.offset = path, offset

    def new(self) -> Iterator[Event]:
        """Events that were completed since the last call."""
        with open(self.path, "rb") as file:
            file.seek(self.offset)
            for line in file:
                if not line.endswith(b"\n"):
                    return
                try:
                    event = json.loads(line)
                except ValueError as error:  # no JSON, or no text at all
                    raise UserError(f"{self.path}: damaged at byte {self.offset}: {error}") from None
                if not isinstance(event, dict) or "event" not in event:
                    raise UserError(f"{self.path}: damaged at byte {self.offset}: no event")
                self.offset += len(line)
                yield event


def _lock(file: IO[bytes], patience: float = 0.0) -> bool:
    """Take the file's lock; `patience` in seconds, because `is_open` may hold it for a moment."""
    deadline = time.monotonic() + patience
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if time.monotonic() >= deadline:
                return False
            time.sleep(0.05)


def _whole_lines(path: Path) -> int:
    data = path.read_bytes()
    return data.rfind(b"\n") + 1
