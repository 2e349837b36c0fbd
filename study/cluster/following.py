"""The log of a job on a cluster as it comes, until the job is over or the connection is lost."""

import asyncio
import re
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from typing import Protocol

from study.cluster.job import Job
from study.errors import Stopped, UserError
from study.text import typed

# Ray's own lines in the log of a driver, told from those of the study: by line, as the log is read.

COLOURS = re.compile(r"\x1b\[[0-9;]*m")

FORWARDED = r"\((?:raylet|gcs_server|autoscaler(?: \+[\dhms]+)?|pid=\d+)(?:, ip=[^)]*)?\) "
"""What Ray writes before what it forwards of its processes, and of those that run nothing yet. What a trial prints has
the name of the trial's function before `pid`."""

LOGGED = r"\s*\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} [A-Z] \d+ \d+\] (?:\([\w:. -]+\) )?[\w.]+\.(?:cc|h):\d+: "
"""What its C++ logs, also where it quotes the end of another process's log, indented."""

OF_PYTHON = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}\t[A-Z]+ \w+\.py:\d+ -- "
"""What its Python logs."""

WARNED = r"\S*/site-packages/ray/\S+\.py:\d+: \w*Warning: "
"""A warning of Python's whose place is in Ray; a line of code follows, indented."""

FRAMES = (
    r"\*\*\* (?:StackTrace Information|SIG\w+ received at .*) \*\*\*$|\S*/ray/\S*\(.*\) \[0x[0-9a-f]+\]"
    r"|PC: @ +0x[0-9a-f]+ |    @ (?: *0x[0-9a-f]+ |\.\.\. and at least \d+ more)"
)
"""Where in its C++ it was, or ended itself."""

OTHER = (
    r"\s*\[state-dump\]|Running entrypoint for job \S+: |\t\(\d\) raylet "
    r"|Refer to the documentation on how to address the out of memory issue: "
)
"""What goes on with what it forwarded, and the first line of a job's log."""

RAY = re.compile("|".join((FORWARDED, LOGGED, OF_PYTHON, WARNED, FRAMES, OTHER)))


class OursAlone:
    """Leaves Ray's lines out of a log that comes in pieces, which may end in the midst of a line; it is held back then.

    With the lines go the empty one that ends a quotation, and the line of code below a warning.
    """

    def __init__(self) -> None:
        self._held, self._before = "", ""

    def __call__(self, piece: str) -> str:
        """Return what of a piece, and of what was held back, is the study's."""
        *whole, self._held = (self._held + piece).split("\n")
        return "".join(self._kept(f"{line}\n") for line in whole)

    def end(self) -> str:
        """Return what was held back, once no more comes."""
        return self._kept(self._held)

    def _kept(self, line: str) -> str:
        plain, before = COLOURS.sub("", line), self._before
        is_rays = RAY.match(plain) is not None
        self._before = plain if is_rays else ""
        ended = not plain.strip() and before[:1].isspace()
        code = plain.startswith("  ") and re.match(WARNED, before)
        return "" if is_rays or (before and (ended or code)) else line


def ours_alone(log: str) -> str:
    """A log without Ray's lines."""
    keep = OursAlone()
    return keep(log) + keep.end()


SILENCE = 30.0
"""Seconds without a word after which the cluster is asked whether it is there: a connection that is cut says nothing.
It has as long to answer."""


class Jobs(Protocol):
    """The part of `study.cluster.jobs.Jobs` that following a job needs."""

    address: str

    def follow(self, job: str) -> Iterator[str]: ...

    def wait(self, job: str) -> Job: ...


def pieces(log: AsyncIterator[str], address: str) -> Iterator[str]:
    """Yield what comes of a log, until it ends.

    Raises:
        OSError: the cluster does not answer any more.
    """

    async def received() -> str | None:
        return await anext(log, None)

    async def next_piece() -> str | None:
        piece = asyncio.ensure_future(received())
        while not (await asyncio.wait({piece}, timeout=SILENCE))[0]:
            await asyncio.to_thread(_ask, address)
        return piece.result()

    with asyncio.Runner() as runner:  # Ctrl-C in it closes the connection first
        while (text := runner.run(next_piece())) is not None:
            yield text


def followed(jobs: Jobs, job: str, study: str = "") -> Iterator[str]:
    """The log of a job, without Ray's own lines.

    Args:
        study: whose driver it is, if it is one.

    Raises:
        Stopped: the connection was lost; says what to do.
    """
    from aiohttp import ClientError

    keep = OursAlone()
    try:
        for piece in jobs.follow(job):
            if text := keep(piece):
                yield text
    except (ClientError, RuntimeError, OSError):
        raise _lost(jobs.address, job, study) from None
    yield keep.end()


def outcome(jobs: Jobs, job: str, study: str = "") -> Job:
    """Return what became of a job whose log has ended.

    Raises:
        Stopped: as for `followed`: a log ends, too, where the head does.
    """
    try:
        return jobs.wait(job)
    except UserError:
        raise _lost(jobs.address, job, study) from None


def _lost(address: str, job: str, study: str) -> Stopped:
    if not study:
        return Stopped(f"the connection to {address} was lost; {job} may go on there or not")
    state = typed("status", study, "--address", address)
    return Stopped(
        f"the connection to {address} was lost. {study} may go on or not; no trial that has ended is lost. Once the "
        f"cluster answers: {state}. If it was started anew and has forgotten the study: study submit of the same file"
    )


def _ask(address: str) -> None:
    with suppress(urllib.error.HTTPError), urllib.request.urlopen(f"{address}/api/version", timeout=SILENCE):
        pass
