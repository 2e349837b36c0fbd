"""What a command answers, in this process, as `study` does it from a shell; within ten seconds of its own."""

import contextlib
import io
import resource
import signal
import sys
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from study import cli

SECONDS, PATIENCE = 10.0, 60
"""Of processor time, so that it holds on a busy machine, and by the clock."""


@dataclass(frozen=True)
class Answer:
    """Exit status and what was printed."""

    status: int
    out: str
    err: str


def answer(*arguments: str) -> Answer:
    """Of `study` with these arguments. A warning that would be printed is in `err`.

    Raises:
        TimeoutError: there was none within a minute.
    """
    out, err, began = io.StringIO(), io.StringIO(), time.process_time()
    with pytest.MonkeyPatch.context() as patch, _patience(), warnings.catch_warnings():
        warnings.simplefilter("always")
        patch.setattr(warnings, "showwarning", lambda message, *_: print(f"warning: {message}", file=err))
        patch.setattr(sys, "argv", ["study", *arguments])
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                cli.main()
            except SystemExit as ended:
                status = ended.code
    assert isinstance(status, int)
    assert time.process_time() - began < SECONDS
    return Answer(status, out.getvalue(), err.getvalue())


@contextlib.contextmanager
def _patience() -> Iterator[None]:
    def stop(*_: Any) -> None:
        raise TimeoutError(f"no answer within {PATIENCE} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(PATIENCE)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def peak() -> int:
    """Megabytes that this process has had at most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
