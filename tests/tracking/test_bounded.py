"""A server whose answers have no end takes neither the memory nor the evening."""

import subprocess
import sys
import time

import pytest
from helpers import ROOT
from servers import endless

from study.tracking import connection
from study.tracking.connection import connect

CONNECT = """
import sys
from study.tracking.connection import connect
try:
    connect(sys.argv[1])
except Exception as error:
    print(f"{type(error).__name__}: {error}"[:2000])
(peak,) = (line for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(int(peak.split()[1]) // 1024)
"""


@pytest.mark.slow
@pytest.mark.parametrize("chunked", [False, True], ids=["length", "chunked"])
def test_an_answer_without_end_is_given_up(chunked: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "LARGEST", 2**20)
    with endless(b"[" * 2**16, chunked=chunked) as uri, pytest.raises(Exception, match="has no end: more than 1 MiB"):
        connect(uri)


@pytest.mark.slow
@pytest.mark.parametrize("chunked", [False, True], ids=["length", "chunked"])
def test_an_answer_that_trickles_is_given_up(chunked: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "LONGEST", 0.5)
    began = time.monotonic()
    with endless(b" ", 0.05, chunked=chunked) as uri, pytest.raises(Exception, match="has no end: more than 0 s"):
        connect(uri)
    assert time.monotonic() - began < 200


@pytest.mark.slow
def test_the_memory_that_a_command_takes_is_bounded() -> None:
    """With the bounds as they are, and what Python and MLflow take themselves."""
    with endless(b"[" * 2**20) as uri:
        done = subprocess.run(
            [sys.executable, "-c", CONNECT, uri], cwd=ROOT, capture_output=True, text=True, check=True, timeout=300
        )
    told, megabytes = done.stdout.rsplit("\n", 2)[:2]
    assert "the server's answer has no end: more than 32 MiB" in told
    assert int(megabytes) < 500
