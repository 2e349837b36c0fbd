"""The followed log of a job, where the connection is lost."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from servers import answering

from study.cluster import job_log
from study.cluster.job_client import JobClient
from study.errors import StudyStoppedError, UserError

NOBODY = "http://127.0.0.1:1"
"""A port that is given to no program: a free one may be another test's by the time that it is asked."""


class Jobs(JobClient):
    """A cluster whose job writes a line and a half, and then is as it is told."""

    address = NOBODY

    def __init__(self, end: Exception | None, outcome: Any = None) -> None:
        self._end, self._outcome = end, outcome

    def follow_log(self, job: str) -> Iterator[str]:
        yield "0:00  lo"
        yield "ading data\n0:0"
        if self._end:
            raise self._end

    def wait_for_job(self, job: str, patience: float | None = None, expected: str = "stop") -> Any:
        if isinstance(self._outcome, Exception):
            raise self._outcome
        return self._outcome


@pytest.mark.parametrize("error", [RuntimeError("closed with code 1006"), ConnectionResetError()])
def test_a_lost_connection_says_what_to_type(error: Exception) -> None:
    shown: list[str] = []
    with pytest.raises(
        StudyStoppedError, match=f"connection to {NOBODY} was lost. mine may go on or not.*study status mine"
    ):
        Jobs(error).follow_job("study-mine", shown.append, "mine")
    assert "".join(shown).startswith("0:00  loading data\n")
    with pytest.raises(StudyStoppedError, match="study-data-1 may go on there or not"):
        Jobs(error).follow_job("study-data-1", shown.append)


def test_a_head_that_is_gone_once_the_log_has_ended_is_a_lost_connection() -> None:
    with pytest.raises(StudyStoppedError, match="was lost"):
        Jobs(None, UserError("no Ray dashboard answers there")).follow_job("study-mine", str, "mine")
    ended = SimpleNamespace(state="succeeded")
    assert Jobs(None, ended).follow_job("study-mine", str, "mine") is ended


@pytest.mark.parametrize("error", [BrokenPipeError("closed"), OSError(28, "No space left on device")])
def test_a_log_that_cannot_be_shown_is_no_lost_connection(error: OSError) -> None:
    def show(text: str) -> None:
        raise error

    with pytest.raises(OSError, match=str(error.strerror or error)) as raised:
        Jobs(None).follow_job("study-mine", show, "mine")
    assert raised.value is error


@pytest.mark.slow
def test_a_connection_that_is_cut_and_says_nothing_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_log, "MAX_SILENCE_S", 0.05)

    async def silent(pause: float) -> AsyncIterator[str]:
        yield "a line\n"
        await asyncio.sleep(pause)
        yield "another\n"

    with answering(401) as server:  # it is there, whatever it says
        assert list(job_log.iterate_log_chunks(silent(0.3), f"http://{server.rpartition('@')[2]}")) == [
            "a line\n",
            "another\n",
        ]
    shown: list[str] = []
    with pytest.raises(OSError, match="refused"):
        shown.extend(job_log.iterate_log_chunks(silent(60), NOBODY))
    assert shown == ["a line\n"]
