"""The folder of a Ray of one's own: private, short enough for sockets, and gone after its driver whatever ends that."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from study.sweep.session_folder import LOCK, LONGEST, PREFIX, session_folder

from study.upstream.own_ray_internals import SESSION

HOLDS = """
import sys, time
from study.sweep.session_folder import session_folder
with session_folder() as folder:
    (folder / "session").mkdir()
    (folder / "session" / "socket").touch()
    (folder / "latest").symlink_to(folder / "session")
    print(folder, flush=True)
    time.sleep(120)
"""


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch) -> Path:
    """A temporary folder of the system, with a path that is short enough."""
    path = Path(tempfile.mkdtemp(dir="/tmp"))
    monkeypatch.setenv("TMPDIR", str(path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return path


@contextmanager
def held(place: Path) -> "Iterator[tuple[subprocess.Popen[str], Path]]":
    """One whose driver lives."""
    with subprocess.Popen([sys.executable, "-c", HOLDS], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            folder = Path(process.stdout.readline().strip())
            assert folder.parent == place
            yield process, folder
        finally:
            process.kill()


def test_only_its_user_can_enter_it_and_it_is_gone_afterwards(place: Path) -> None:
    umask = os.umask(0)
    try:
        with session_folder() as folder:
            assert folder.parent == place
            assert folder.stat().st_mode & 0o777 == 0o700
            (folder / "session").mkdir()
            (folder / "session" / "log").write_text("text")
    finally:
        os.umask(umask)
    assert [*place.iterdir()] == []


def test_what_a_killed_driver_left_goes_with_the_next_and_no_living_ones(place: Path) -> None:
    with held(place) as (killed, left), held(place) as (_, kept):
        (place / f"{PREFIX}other").mkdir()  # one that is just made, or no folder of a driver
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        with session_folder():
            assert not left.exists()
            assert {path.name for path in kept.iterdir()} == {LOCK, "session", "latest"}
            assert (place / f"{PREFIX}other").exists()


def test_another_users_folder_and_a_link_stay(place: Path, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / LOCK).touch()
    (place / f"{PREFIX}link").symlink_to(victim)
    with session_folder():
        assert (victim / LOCK).exists()


def test_a_long_temporary_folder_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray refuses a socket whose path has more than 107 characters, 103 elsewhere than on Linux."""
    long = tmp_path / ("x" * 60)
    long.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(long))
    with session_folder() as folder:
        assert folder.parent == Path("/tmp")
        assert len(str(folder)) + SESSION <= 103
    assert len("/tmp") <= LONGEST


def test_it_waits_for_nobody(place: Path) -> None:
    with held(place):
        began = time.monotonic()
        with session_folder():
            pass
        assert time.monotonic() - began < 5
