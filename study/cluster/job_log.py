"""The log of a job on a cluster as it is written, until the job is over or the connection is lost."""

import asyncio
import re
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress

ANSI_COLOUR_PATTERN = re.compile(r"\x1b\[[0-9;]*m")
"""Escape codes that Ray writes around the names of its processes."""

MAX_SILENCE_S = 30.0
"""Seconds without output after which the cluster is asked whether it is there, and within which it has to answer: a
connection that is cut says nothing."""


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
