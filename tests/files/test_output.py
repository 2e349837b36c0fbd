"""Where a user says that a file goes, nothing is lost: links, pipes and devices stay what they are."""

import os
import re
import stat
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from study.errors import UserError
from study.files import as_user_error_if_unwritable, check_output_path, write_output

OLD, NEW = "old\n", "new\n"


@pytest.mark.parametrize("content", ["grün\n", b"\x00\xff\n"], ids=["text", "bytes"])
def test_folders_that_are_missing_are_made(tmp_path: Path, content: str | bytes) -> None:
    path = tmp_path / "a" / "b" / "file.txt"
    check_output_path(path)
    assert not path.parent.exists()
    write_output(path, content)
    assert path.read_bytes() == (content if isinstance(content, bytes) else content.encode())


@pytest.mark.parametrize("before", [OLD, None], ids=["to a file", "to nothing"])
def test_a_link_stays_and_its_file_is_written(tmp_path: Path, before: str | None) -> None:
    file, link = tmp_path / "elsewhere" / "file.txt", tmp_path / "link"
    if before:
        file.parent.mkdir()
        file.write_text(before)
    link.symlink_to(Path("elsewhere") / "file.txt")
    check_output_path(link)
    write_output(link, NEW)
    assert os.readlink(link) == "elsewhere/file.txt"
    assert file.read_text() == NEW


def test_all_names_of_a_file_have_the_new_content(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.write_text(OLD * 2)
    second.hardlink_to(first)
    write_output(first, NEW)
    assert second.read_text() == NEW
    assert first.samefile(second)


def test_a_file_that_others_may_not_read_stays_so(tmp_path: Path) -> None:
    path = tmp_path / "file.txt"
    path.touch(0o600)
    write_output(path, NEW)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_pipe_stays_and_its_reader_gets_the_content(tmp_path: Path) -> None:
    path, heard = tmp_path / "pipe", []
    os.mkfifo(path)
    reader = threading.Thread(target=lambda: heard.append(path.read_text()), daemon=True)
    reader.start()
    check_output_path(path)
    write_output(path, NEW)
    reader.join(100)
    assert heard == [NEW]
    assert path.is_fifo()


def test_a_file_that_is_open_but_has_no_name_is_written(tmp_path: Path) -> None:
    """As the standard output of a command often is."""
    with (tmp_path / "file").open("w+") as file:
        (tmp_path / "file").unlink()
        write_output(Path(f"/dev/fd/{file.fileno()}"), NEW)
        assert file.read() == NEW
    assert list(tmp_path.iterdir()) == []


def test_null_takes_everything_and_stays() -> None:
    before = os.stat("/dev/null")
    write_output(Path("/dev/null"), NEW)
    assert os.stat("/dev/null").st_ino == before.st_ino


@pytest.mark.parametrize("check_only", [True, False], ids=["asked before", "written"])
def test_what_cannot_be_a_file_is_one_message(tmp_path: Path, check_only: bool) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text(OLD)
    (tmp_path / "circle").symlink_to("circle")
    expected = {
        "folder": "folder: cannot be written: it is a folder, a file's path is needed",
        "file/inside/name": "file is no folder",
        "circle": "Too many levels of symbolic links",
        "x" * 300: "File name too long",
    }
    for name, message in expected.items():
        with pytest.raises(UserError, match=message):
            check_output_path(tmp_path / name) if check_only else write_output(tmp_path / name, NEW)
    assert (tmp_path / "file").read_text() == OLD
    assert sorted(path.name for path in tmp_path.iterdir()) == ["circle", "file", "folder"]


@pytest.fixture
def read_only(tmp_path: Path) -> Iterator[Path]:
    """A folder in which nobody can write, root neither."""
    folder = tmp_path / "read-only"
    folder.mkdir()
    (folder / "file").write_text(OLD)
    for options in (["--bind", str(folder)], ["-o", "remount,ro,bind"]):
        if (done := subprocess.run(["mount", *options, str(folder)], capture_output=True)).returncode:
            pytest.skip(f"a folder cannot be mounted here: {done.stderr.decode().strip()}")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.mark.parametrize("name", ["file", "new", "folder/new"])
def test_a_read_only_place_is_told_before_the_work(read_only: Path, name: str) -> None:
    expected = re.escape(f"{read_only / name}: cannot be written: {read_only}: Read-only file system")
    for refuse in (check_output_path, lambda path: write_output(path, NEW)):
        with pytest.raises(UserError, match=f"^{expected}$"):
            refuse(read_only / name)


def test_a_disk_that_is_full_is_no_fault_of_the_path() -> None:
    with pytest.raises(OSError, match="No space left on device: '/dev/full'"):
        write_output(Path("/dev/full"), NEW)


def test_a_disk_that_has_become_read_only_is_no_fault_of_the_path_either(read_only: Path) -> None:
    with pytest.raises(OSError, match="Read-only file system"), as_user_error_if_unwritable(read_only):
        (read_only / "new").touch()
    with (
        pytest.raises(UserError, match=r"Read-only file system\. Take another$"),
        as_user_error_if_unwritable(read_only, "Take another"),
    ):
        (read_only / "new").touch()
