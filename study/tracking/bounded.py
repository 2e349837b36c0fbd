"""Answers of an MLflow server, bounded in length and time: one that goes on without end would fill the memory, and one
that trickles would hold a command for hours. MLflow limits only the wait for the next bytes."""

import time
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from requests import Response

LARGEST = 32 * 2**20
"""Bytes of an answer, unpacked; parts of files, which MLflow asks for by their range, are let through."""

LONGEST = 120.0
"""Seconds from an answer's headers to its end."""


class TooMuch(OSError):
    """An answer is longer, or takes longer, than any that MLflow gives."""


@cache
def bound_answers() -> None:
    """Bound the answers that MLflow's client reads whole, in this process from now on. It streams files to disk."""
    from mlflow.utils import request_utils

    session_for = request_utils._get_request_session

    def bounded_session(*arguments: Any, **options: Any) -> Any:
        session = session_for(*arguments, **options)
        session.hooks["response"] = [_bound]
        return session

    request_utils._get_request_session = bounded_session


def _bound(response: "Response", **options: Any) -> None:
    """Called by `requests` before it reads an answer."""
    if not options.get("stream") and "Range" not in response.request.headers:
        response.raw = _Bounded(response.raw)


class _Bounded:
    """An answer's body, as urllib3 gives it, that ends with an error where it is too much."""

    def __init__(self, body: Any) -> None:
        self._body, self._deadline = body, time.monotonic() + LONGEST

    def __getattr__(self, name: str) -> Any:
        return getattr(self._body, name)

    def stream(self, amount: int, decode_content: bool | None = None) -> Iterator[bytes]:
        """The body in pieces, each as soon as it is there."""
        size = 0
        while piece := self._body.read1(amount, decode_content=decode_content):
            size += len(piece)
            if size > LARGEST:
                self._refuse(f"more than {LARGEST / 2**20:.0f} MiB")
            if time.monotonic() > self._deadline:
                self._refuse(f"more than {LONGEST:.0f} s")
            yield piece

    def _refuse(self, what: str) -> None:
        self._body.close()
        raise TooMuch(f"the server's answer has no end: {what}")
