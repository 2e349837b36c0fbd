"""The folder of a Ray of one's own: private, short enough for sockets, and gone after its driver whatever ends that."""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from study import doctor as doctors
from study.cli.help import doctor
from study.upstream.scratch import (
    RUN_FOLDER_PREFIX,
    SCRATCH_FOLDER_VARIABLE,
    SCRATCH_LOCK_FILE,
    make_scratch_folder,
    remove_abandoned_scratch_folders,
)

HOLDS = """
import sys, time
from study.upstream.scratch import RUN_FOLDER_PREFIX, make_scratch_folder
with make_scratch_folder(RUN_FOLDER_PREFIX) as folder:
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
        with make_scratch_folder(RUN_FOLDER_PREFIX) as folder:
            assert folder.parent == place
            assert folder.stat().st_mode & 0o777 == 0o700
            (folder / "session").mkdir()
            (folder / "session" / "log").write_text("text")
    finally:
        os.umask(umask)
    assert [*place.iterdir()] == []


def test_what_a_killed_driver_left_goes_with_the_next_and_no_living_ones(place: Path) -> None:
    with held(place) as (killed, left), held(place) as (_, kept):
        (place / f"{RUN_FOLDER_PREFIX}other").mkdir()
        (place / f"{RUN_FOLDER_PREFIX}other" / "mine").touch()  # no folder of a driver: nothing in it says so
        (place / f"{RUN_FOLDER_PREFIX}new").mkdir()  # of one that was killed as soon as it was made
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        with make_scratch_folder(RUN_FOLDER_PREFIX):
            assert not left.exists()
            assert {path.name for path in kept.iterdir()} == {SCRATCH_LOCK_FILE, "session", "latest"}
            assert (place / f"{RUN_FOLDER_PREFIX}other" / "mine").exists()
            assert not (place / f"{RUN_FOLDER_PREFIX}new").exists()


def test_another_users_folder_and_a_link_stay(place: Path, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / SCRATCH_LOCK_FILE).touch()
    (place / f"{RUN_FOLDER_PREFIX}link").symlink_to(victim)
    with make_scratch_folder(RUN_FOLDER_PREFIX):
        assert (victim / SCRATCH_LOCK_FILE).exists()


def test_what_a_killed_process_started_is_ended_and_nothing_else(place: Path) -> None:
    """Of those that have its folder in their environment; none of a living one."""

    def waits(folder: Path) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(["sleep", "120"], env={**os.environ, SCRATCH_FOLDER_VARIABLE: str(folder)})

    with (
        held(place) as (killed, left),
        held(place) as (_, kept),
        waits(left) as lost,
        waits(kept) as used,
        waits(place) as other,
    ):
        assert left not in remove_abandoned_scratch_folders()
        killed.kill()
        killed.wait()
        assert left in remove_abandoned_scratch_folders()
        lost.wait(timeout=100)
        assert used.poll() is None
        assert other.poll() is None
        used.kill()
        other.kill()


def test_one_that_is_taken_for_left_before_it_is_locked_is_made_again(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain, made = tempfile.mkdtemp, list[str]()

    def slow(**given: str) -> str:
        made.append(plain(**given))
        if len(made) < 3:
            assert Path(made[-1]) in remove_abandoned_scratch_folders()
        return made[-1]

    monkeypatch.setattr(tempfile, "mkdtemp", slow)
    with make_scratch_folder(RUN_FOLDER_PREFIX) as folder:
        assert str(folder) == made[2]
        assert (folder / SCRATCH_LOCK_FILE).exists()


def test_doctor_cleans_when_it_is_asked_to(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(doctors, "run_checks", lambda address: [])
    with held(place) as (killed, left), held(place) as (_, kept):
        killed.kill()
        killed.wait()
        doctor()
        assert left.exists()
        doctor(clean=True)
        assert not left.exists()
        assert kept.exists()
    told = capsys.readouterr()
    assert f"removed {left}, " in told.err
    assert str(kept) not in told.err


GUARDS = """
import sys
from pathlib import Path
from study.upstream.scratch import remove_after_death
remove_after_death(Path(sys.argv[1]))
"""


@pytest.mark.parametrize(("told", "stays"), [(b"", False), (b"ended in order", True)])
def test_a_guard_removes_what_a_process_left_that_did_not_say_its_end(tmp_path: Path, told: bytes, stays: bool) -> None:
    (left := tmp_path / "left").mkdir()
    (left / SCRATCH_LOCK_FILE).touch()
    subprocess.run([sys.executable, "-c", GUARDS, str(left)], input=told, check=True, timeout=60)
    assert left.exists() == stays
