"""The log of a job on a cluster as it is written, until the job is over or the connection is lost."""

import asyncio
import re
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from typing import Protocol

from study.cluster.driver_job import Job
from study.errors import StudyStoppedError, UserError
from study.text import typed

COLOURS = re.compile(r"\x1b\[[0-9;]*m")
"""Escape codes that Ray writes around the names of its processes."""

SILENCE = 30.0
"""Seconds without output after which the cluster is asked whether it is there, and within which it has to answer: a
connection that is cut says nothing."""


class Jobs(Protocol):
    """The part of `study.cluster.job_client.Jobs` that following a job needs."""

    address: str

    def follow(self, job: str) -> Iterator[str]: ...

    def wait(self, job: str) -> Job: ...


def pieces(log: AsyncIterator[str], address: str) -> Iterator[str]:
    """Yield what comes of a log, until it ends.

    Raises:
        OSError: the cluster does not answer any more.
    """

    def is_there() -> None:
        with suppress(urllib.error.HTTPError), urllib.request.urlopen(f"{address}/api/version", timeout=SILENCE):
            pass

    async def received() -> str | None:
        return await anext(log, None)

    async def next_piece() -> str | None:
        piece = asyncio.ensure_future(received())
        while not (await asyncio.wait({piece}, timeout=SILENCE))[0]:
            await asyncio.to_thread(is_there)
        return piece.result()

    with asyncio.Runner() as runner:  # Ctrl-C in it closes the connection first
        while (text := runner.run(next_piece())) is not None:
            yield text


def followed(jobs: Jobs, job: str, study: str = "") -> Iterator[str]:
    """Yield the log of a job as it is written, without colours.

    Args:
        study: whose driver it is, if it is one.

    Raises:
        StudyStoppedError: the connection was lost; says what to do.
    """
    from aiohttp import ClientError

    try:
        for piece in jobs.follow(job):
            yield COLOURS.sub("", piece)
    except (ClientError, RuntimeError, OSError):
        raise _lost(jobs.address, job, study) from None


def outcome(jobs: Jobs, job: str, study: str = "") -> Job:
    """Return the end of a job whose log has ended.

    Raises:
        StudyStoppedError: as for `followed`: a log ends, too, where the head does.
    """
    try:
        return jobs.wait(job)
    except UserError:
        raise _lost(jobs.address, job, study) from None


def _lost(address: str, job: str, study: str) -> StudyStoppedError:
    if not study:
        return StudyStoppedError(f"the connection to {address} was lost; {job} may go on there or not")
    state = typed("status", study, "--address", address)
    return StudyStoppedError(
        f"the connection to {address} was lost. {study} may go on or not; no trial that has ended is lost. Once the "
        f"cluster answers: {state}. If it was started anew and has forgotten the study: study submit of the same file"
    )
