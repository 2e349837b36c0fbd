"""Files that a command writes where its user says: a link stays a link and its file is written, a pipe or terminal is
written into, missing folders are made."""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from study.errors import UserError, of_disk
from study.files.whole import write_whole

NO_FILES = {
    stat.S_IFDIR: "it is a folder, a file's path is needed",
    stat.S_IFBLK: "it is a disk, not a file",
    stat.S_IFSOCK: "it is a socket, not a file",
}
"""Kinds of things that no file is written to, and why."""


def check_output(path: Path) -> None:
    """Refuse a path that `write_output` could not write, before the work whose result goes there.

    Raises:
        UserError: says why.
    """
    there = _there(path)
    if there is not None and not _is_replaced(there):
        if not os.access(path, os.W_OK):
            raise UserError(f"{path}: cannot be written: {_why(path)}")
        return
    folder = next(parent for parent in _real(path).parents if os.path.lexists(parent))
    if not folder.is_dir():
        raise UserError(f"{path}: cannot be written: {folder} is no folder")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise UserError(f"{path}: cannot be written: {_why(folder)}")


def write_output(path: Path, content: str | bytes) -> None:
    """Write a file, text as UTF-8: whole or not at all. A file that is there is replaced and keeps its mode, less the
    umask; one that has several names, and what is no file, is written into.

    Raises:
        UserError: it cannot be written there.
        OSError: the disk is full, or fails.
    """
    check_output(path)
    there = _there(path)
    with writing(path):
        if there is None or _is_replaced(there):
            _real(path).parent.mkdir(parents=True, exist_ok=True)
            write_whole(_real(path), content, 0o666 if there is None else stat.S_IMODE(there.st_mode))
        else:
            path.write_bytes(content.encode() if isinstance(content, str) else content)


@contextmanager
def writing(path: Path, remedy: str = "") -> Iterator[None]:
    """Names `path` where something cannot be written within the block.

    Args:
        remedy: what else the user may do where it cannot be, a sentence; a disk that is read-only is one to be left
            then, else one that was not when this began.

    Raises:
        UserError: it cannot be written.
        OSError: the disk is full, or fails.
    """
    try:
        yield
    except OSError as error:
        if of_disk(error) and not (remedy and error.errno == errno.EROFS):
            raise OSError(error.errno, error.strerror, error.filename or str(path)) from None
        raise UserError(f"{path}: cannot be written: {error.strerror}{remedy and f'. {remedy}'}") from None


def _there(path: Path) -> os.stat_result | None:
    """What is at the end of a path's links; None where nothing is.

    Raises:
        UserError: the path leads nowhere, or to what no file is written to.
    """
    try:
        there = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise UserError(f"{path}: cannot be written: {error.strerror}") from None
    if why := NO_FILES.get(stat.S_IFMT(there.st_mode)):
        raise UserError(f"{path}: cannot be written: {why}")
    return there


def _real(path: Path) -> Path:
    """The path behind all links; what it names need not be there."""
    return Path(os.path.realpath(path))


def _is_replaced(there: os.stat_result) -> bool:
    """Whether another file takes its place: it is a file with one name."""
    return stat.S_ISREG(there.st_mode) and there.st_nlink == 1


def _why(path: Path) -> str:
    """Why a path that is there cannot be written."""
    is_readonly = os.statvfs(path).f_flag & os.ST_RDONLY
    return f"{path}: {os.strerror(errno.EROFS if is_readonly else errno.EACCES)}"
