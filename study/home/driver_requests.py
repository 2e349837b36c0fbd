"""Requests of users to the driver of a study: files in the study's folder, which its driver obeys and removes.

A request is one file, written beside its place and renamed, so it is there whole or not at all. Whoever may write in
the folder may ask, from any machine that shares it; the driver looks every second (`study.sweep.tune_adapters`), obeys
in the order of the files' names, which begin with the time, and writes each answer to the ledger before it removes the
file. A file that outlives its driver is handled by the next one, which knows from the ledger whether it was answered.
"""

import json
import os
import re
import time
import uuid
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal

from study.files import parse_json, write_atomically
from study.home.events import NonNegativeInteger, ParamValues

RequestKind = Literal["enqueue", "stop", "end"]

MAX_REQUEST_BYTES = 2**16
"""Most bytes of a request."""

MAX_REQUESTS_AT_ONCE = 100
"""Most requests that are read at one look."""

_REQUEST_FILE_NAME = re.compile(r"\d{20}-([0-9a-f]{32})\.json")


@dataclass(frozen=True)
class DriverRequest:
    """A request of a user.

    Attributes:
        kind: `enqueue`: try `params` next; `stop`: end `trial` at its next report; `end`: end the search.
    """

    kind: RequestKind
    params: ParamValues = field(default_factory=dict)
    trial: NonNegativeInteger = 0
    id: str = field(default_factory=lambda: uuid.uuid4().hex)


def submit_request(folder: Path, request: DriverRequest) -> Path:
    """Leave a request for the driver; return its file, which is gone once it is answered.

    Raises:
        OSError: the folder cannot be written.
    """
    folder.mkdir(exist_ok=True)
    path = folder / f"{time.time_ns():020d}-{request.id}.json"
    write_atomically(path, json.dumps(asdict(request)), 0o600)
    return path


def pending_requests(folder: Path) -> list[tuple[Path, DriverRequest | None]]:
    """Return the requests of a folder that were not answered, the oldest first; None for an unreadable one.

    Files without a request's name are left out, and so are folders. A folder that cannot be read holds none: whoever
    made it may keep it from the driver, and a file system may be away for a while.
    """
    try:
        with os.scandir(folder) as entries:
            named = (entry for entry in entries if _REQUEST_FILE_NAME.fullmatch(entry.name))
            names = sorted(entry.name for entry in named if not entry.is_dir(follow_symlinks=False))
    except OSError:
        return []
    return [(folder / name, _read_request(folder / name)) for name in names[:MAX_REQUESTS_AT_ONCE]]


def remove_request(path: Path) -> None:
    """Remove an answered request, if it is still there and can be removed."""
    with suppress(OSError):
        path.unlink()


def request_id(path: Path) -> str:
    """Return the id in the name of a request's file."""
    named = _REQUEST_FILE_NAME.fullmatch(path.name)
    assert named is not None  # it is one of `pending_requests`
    return named[1]


def _read_request(path: Path) -> DriverRequest | None:
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
            request = parse_json(file.read(MAX_REQUEST_BYTES), DriverRequest)
    except OSError:
        return None
    return request if request and request_id(path) == request.id else None
