"""The log of a job on a cluster as it is written, until the job is over or the connection is lost."""

import asyncio
import re
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from typing import Protocol

from study.cluster.driver_job import DriverJob
from study.errors import StudyStoppedError, UserError
from study.text import shell_command

ANSI_COLOUR_PATTERN = re.compile(r"\x1b\[[0-9;]*m")
"""Escape codes that Ray writes around the names of its processes."""

MAX_SILENCE_S = 30.0
"""Seconds without output after which the cluster is asked whether it is there, and within which it has to answer: a
connection that is cut says nothing."""


class JobFollower(Protocol):
    """The part of `study.cluster.job_client.JobClient` that following a job needs."""

    address: str

    def follow_log(self, job: str) -> Iterator[str]: ...

    def wait_for_job(self, job: str) -> DriverJob: ...


def iterate_log_chunks(log: AsyncIterator[str], address: str) -> Iterator[str]:
    """Yield what comes of a log, until it ends.

    Raises:
        OSError: the cluster does not answer any more.
    """

    def is_there() -> None:
        with suppress(urllib.error.HTTPError), urllib.request.urlopen(f"{address}/api/version", timeout=MAX_SILENCE_S):
            pass

    async def received() -> str | None:
        return await anext(log, None)

    async def next_piece() -> str | None:
        piece = asyncio.ensure_future(received())
        while not (await asyncio.wait({piece}, timeout=MAX_SILENCE_S))[0]:
            await asyncio.to_thread(is_there)
        return piece.result()

    with asyncio.Runner() as runner:  # Ctrl-C in it closes the connection first
        while (text := runner.run(next_piece())) is not None:
            yield text


def follow_job_log(jobs: JobFollower, job: str, study: str = "") -> Iterator[str]:
    """Yield the log of a job as it is written, without colours.

    Args:
        study: whose driver it is, if it is one.

    Raises:
        StudyStoppedError: the connection was lost; says what to do.
    """
    from aiohttp import ClientError

    try:
        for piece in jobs.follow_log(job):
            yield ANSI_COLOUR_PATTERN.sub("", piece)
    except (ClientError, RuntimeError, OSError):
        raise _connection_lost_error(jobs.address, job, study) from None


def wait_for_job_end(jobs: JobFollower, job: str, study: str = "") -> DriverJob:
    """Return the end of a job whose log has ended.

    Raises:
        StudyStoppedError: as for `follow_log`: a log ends, too, where the head does.
    """
    try:
        return jobs.wait_for_job(job)
    except UserError:
        raise _connection_lost_error(jobs.address, job, study) from None


def _connection_lost_error(address: str, job: str, study: str) -> StudyStoppedError:
    if not study:
        return StudyStoppedError(f"the connection to {address} was lost; {job} may go on there or not")
    state = shell_command("status", study, "--address", address)
    return StudyStoppedError(
        f"the connection to {address} was lost. {study} may go on or not; no trial that has ended is lost. Once the "
        f"cluster answers: {state}. If it was started anew and has forgotten the study: study submit of the same file"
    )
