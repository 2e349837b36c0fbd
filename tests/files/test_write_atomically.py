"""A file is the old one or the new one, whatever happens while it is written."""

import os
import signal
import stat
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest
from helpers import ROOT

from study.files import (
    PRIVATE_FILE_MODE,
    replace_atomically,
    temporary_folder_beside,
    unfinished_files,
    write_atomically,
)

OLD, NEW = "old " * 1000, "new " * 1000
WRITES = (
    "from study.files import write_atomically, replace_atomically; from pathlib import Path; import os, resource, sys\n"
)


def run(code: str, path: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", WRITES + code, str(path)]
    return subprocess.run(command, env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("content", ["grün\n", b"\x00\xff\n"], ids=["text", "bytes"])
@pytest.mark.parametrize("before", [None, OLD], ids=["new", "replaced"])
def test_a_file_is_what_was_written(tmp_path: Path, content: str | bytes, before: str | None) -> None:
    path = tmp_path / "file.txt"
    if before:
        path.write_text(before)
    write_atomically(path, content)
    assert path.read_bytes() == (content if isinstance(content, bytes) else content.encode("utf-8"))
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("room", [0, 1, 3999])
@pytest.mark.parametrize("before", [None, OLD], ids=["new", "replaced"])
def test_a_disk_that_is_full_leaves_what_was_there(tmp_path: Path, before: str | None, room: int) -> None:
    """A limit on the size of files stands for the full disk."""
    path = tmp_path / "file.txt"
    if before:
        path.write_text(before)
    limit = f"resource.setrlimit(resource.RLIMIT_FSIZE, ({room}, {room}))\n"
    done = run(f"{limit}write_atomically(Path(sys.argv[1]), {NEW!r})", path)
    assert f"OSError: [Errno 27] File too large: '{path}'" in done.stderr
    assert {one.name: one.read_text() for one in tmp_path.iterdir()} == ({"file.txt": before} if before else {})


@pytest.mark.parametrize("before", [None, OLD], ids=["new", "replaced"])
def test_a_writer_that_is_killed_leaves_what_was_there_and_a_part_that_is_known(
    tmp_path: Path, before: str | None
) -> None:
    path = tmp_path / "file.txt"
    if before:
        path.write_text(before)
    done = run(
        "with replace_atomically(Path(sys.argv[1])) as part:\n    part.write_text('half'); os.kill(os.getpid(), 9)",
        path,
    )
    assert done.returncode == -signal.SIGKILL
    assert (path.read_text() if path.exists() else None) == before
    (left,) = unfinished_files(tmp_path)
    assert left.read_text() == "half"
    write_atomically(path, NEW)
    assert path.read_text() == NEW
    assert set(tmp_path.iterdir()) == {path, left}


@pytest.mark.parametrize("trouble", [ValueError, KeyboardInterrupt])
def test_a_block_that_fails_leaves_what_was_there(tmp_path: Path, trouble: type[BaseException]) -> None:
    path = tmp_path / "file.txt"
    path.write_text(OLD)

    def fail() -> None:
        with replace_atomically(path) as part:
            part.write_text("half")
            raise trouble

    with pytest.raises(trouble):
        fail()
    assert path.read_text() == OLD
    assert list(tmp_path.iterdir()) == [path]


def test_nothing_is_left_where_the_file_cannot_take_its_place(tmp_path: Path) -> None:
    """Nor where it cannot be written at all. The error names the file, not the part of it."""
    (tmp_path / "file.txt" / "inside").mkdir(parents=True)
    with pytest.raises(OSError, match=r"Is a directory|File exists") as raised:
        write_atomically(tmp_path / "file.txt", NEW)
    assert raised.value.filename == str(tmp_path / "file.txt")
    assert not unfinished_files(tmp_path)
    with pytest.raises(FileNotFoundError):
        write_atomically(tmp_path / "nowhere" / "file.txt", NEW)


def test_readers_and_writers_at_once_see_whole_files(tmp_path: Path) -> None:
    path = tmp_path / "file.txt"
    write_atomically(path, OLD)
    writers = [
        threading.Thread(target=lambda text=text: [write_atomically(path, text) for _ in range(200)])
        for text in (OLD, NEW)
    ]
    for one in writers:
        one.start()
    seen = set()
    while any(one.is_alive() for one in writers):
        seen.add(path.read_text())
    assert seen <= {OLD, NEW}
    assert list(tmp_path.iterdir()) == [path]


def test_secrets_are_for_their_owner_alone(tmp_path: Path) -> None:
    """Whatever the mode of the file before; also while they are written, in a folder that all can read."""
    path, seen = tmp_path / "token", []
    path.write_text("old")
    path.chmod(0o644)
    over, deadline = threading.Event(), time.monotonic() + 60

    def write_often() -> None:
        while not over.is_set():
            write_atomically(path, "new" * 1_000_000, PRIVATE_FILE_MODE)

    writer = threading.Thread(target=write_often)
    writer.start()
    while len(seen) < 100 and time.monotonic() < deadline:  # on a busy machine a whole write may pass unseen
        for part in unfinished_files(tmp_path):
            with suppress(FileNotFoundError):
                seen.append(stat.S_IMODE(part.stat().st_mode))
    over.set()
    writer.join()
    assert set(seen) == {0o600}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path.read_text() == "new" * 1_000_000


def test_others_may_read_what_is_no_secret(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        write_atomically(tmp_path / "file.txt", NEW)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "file.txt").stat().st_mode) == 0o644


def test_a_folder_to_make_something_in_is_empty_and_gone_afterwards(tmp_path: Path) -> None:
    goal = tmp_path / "goal"
    (tmp_path / ".goal.part").mkdir()
    (tmp_path / ".goal.part" / "left").touch()  # by a process that was killed
    with temporary_folder_beside(goal) as folder:
        assert list(folder.iterdir()) == []
        (folder / "made").write_text(NEW)
        (folder / "made").replace(goal)
    assert list(tmp_path.iterdir()) == [goal]
