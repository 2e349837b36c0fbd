"""Files that are written whole or not at all, paths, and digests."""

import errno
import fcntl
import hashlib
import json
import os
import secrets
import shutil
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeVar

from typing_extensions import TypedDict

from study.errors import UserError, find_disk_error

if TYPE_CHECKING:
    from pydantic import TypeAdapter

ValueT = TypeVar("ValueT")


class FileDigest(TypedDict):
    """A file that trials begin from or run: what it is called, its name on disk, its SHA-256."""

    name: str
    file: str
    sha256: str


# A file is written beside its place, then renamed. No reader ever sees half of one, and of several writers at once the
# last to end wins. Nothing is synced to the disk: a machine that loses its power may lose the newest file.
# `study.home.ledger` syncs what must not be lost.


PRIVATE_FILE_MODE = 0o600
"""Mode of a file that only its owner may read."""


@contextmanager
def replace_atomically(path: Path) -> Iterator[Path]:
    """Yield a path to write to; after the block the file takes the place of `path`.

    Where the block fails, nothing of it is left, and what was at `path` stays. A process that is killed leaves one of
    `unfinished_files`.

    Raises:
        OSError: it cannot be written or put in its place; it names the file. Also where the block raised another error
            because of the disk, as `torch.save` does.
    """
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        yield part
        part.replace(path)
    except BaseException as error:
        if isinstance(error, OSError) and error.filename in (None, str(part)):  # None: of a write, which knows no path
            error.filename = str(path)
        with suppress(OSError):  # the first error is the one to raise
            part.unlink()
        if not isinstance(error, OSError) and (problem := find_disk_error(error)):
            raise OSError(problem.errno, problem.strerror, str(path)) from error
        raise


def write_atomically(path: Path, content: str | bytes, mode: int = 0o666) -> None:
    """Write a file, text as UTF-8.

    Args:
        mode: of the new file from its first byte on, less the umask; that of an existing file does not count.

    Raises:
        OSError: it cannot be written; what was there stays.
    """
    data = content.encode() if isinstance(content, str) else content
    with (
        replace_atomically(path) as part,
        open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file,
    ):
        file.write(data)


def read_json_or_none(path: Path, value_type: type[ValueT]) -> ValueT | None:
    """Read a file's JSON as a dataclass, or as plain values of a kind.

    None where there is no such file, it is no JSON, or a field is missing or of another kind: anybody may have written
    it.
    """
    try:
        return parse_json(path.read_bytes(), value_type)
    except OSError:
        return None


def parse_json(text: str | bytes, value_type: type[ValueT]) -> ValueT | None:
    """Read a text's JSON, as `read_json_or_none` does."""
    from pydantic import ValidationError  # which most commands do not need

    try:
        found: ValueT = _json_adapter(value_type).validate_json(text, strict=True)  # type: ignore[arg-type]
        return found
    except ValidationError:
        return None


@cache
def _json_adapter(kind: Any) -> "TypeAdapter[Any]":
    from pydantic import TypeAdapter

    return TypeAdapter(kind)


def unfinished_files(folder: Path) -> list[Path]:
    """Return the files that `replace_atomically` is writing in a folder, or left there when its process was killed."""
    return [*folder.glob(".*.part")]


def lock_file(file: IO[Any] | int, timeout_s: float = 0.0) -> bool:
    """Take the lock of a file or a folder, which closing it releases; return whether `timeout_s` was enough."""
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if time.monotonic() >= deadline:
                return False
            time.sleep(0.02)


@contextmanager
def temporary_folder_beside(path: Path) -> Iterator[Path]:
    """Yield an empty folder beside `path`, to make there what is then moved to `path`; it is gone when the block ends.

    For one process at a time: what a killed one left is removed first.
    """
    part = path.with_name(f".{path.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    try:
        yield part
    finally:
        shutil.rmtree(part, ignore_errors=True)


# Outputs of commands: a link stays a link and its file is written, a pipe or terminal is written into, missing folders
# are made.


def check_output_path(path: Path) -> None:
    """Refuse a path that `write_output` could not write, before the work whose result goes there.

    Raises:
        UserError: says why.
    """
    there = _stat_or_none(path)
    if there is not None and stat.S_ISDIR(there.st_mode):
        raise UserError(f"{path}: cannot be written: it is a folder, a file's path is needed")
    is_new = there is None or _is_replaceable(there)
    place = next(parent for parent in _resolve_links(path).parents if os.path.lexists(parent)) if is_new else path
    if is_new and not place.is_dir():
        raise UserError(f"{path}: cannot be written: {place} is no folder")
    if not os.access(place, os.W_OK):
        is_readonly = os.statvfs(place).f_flag & os.ST_RDONLY
        why = os.strerror(errno.EROFS if is_readonly else errno.EACCES)
        raise UserError(f"{path}: cannot be written: {place}: {why}")


def write_output(path: Path, content: str | bytes) -> None:
    """Write a file, text as UTF-8, whole or not at all.

    An existing file is replaced and keeps its mode, less the umask; one with several names, and what is no regular
    file, is written into.

    Raises:
        UserError: it cannot be written there.
        OSError: the disk is full, or fails.
    """
    check_output_path(path)
    there = _stat_or_none(path)
    with as_user_error_if_unwritable(path):
        if there is None or _is_replaceable(there):
            _resolve_links(path).parent.mkdir(parents=True, exist_ok=True)
            write_atomically(_resolve_links(path), content, 0o666 if there is None else stat.S_IMODE(there.st_mode))
        else:
            path.write_bytes(content.encode() if isinstance(content, str) else content)


@contextmanager
def as_user_error_if_unwritable(path: Path, remedy: str = "") -> Iterator[None]:
    """Raise a UserError that names `path` where something cannot be written within the block.

    Args:
        remedy: a sentence that says what else the user may do. With one a read-only disk is the user's to avoid, else
            it is a fault of the disk.

    Raises:
        UserError: it cannot be written.
        OSError: the disk is full, or fails.
    """
    try:
        yield
    except OSError as error:
        if find_disk_error(error) and not (remedy and error.errno == errno.EROFS):
            raise OSError(error.errno, error.strerror, error.filename or str(path)) from None
        raise UserError(f"{path}: cannot be written: {error.strerror}{remedy and f'. {remedy}'}") from None


def _stat_or_none(path: Path) -> os.stat_result | None:
    """Return the state of what is at the end of a path's links; None where nothing is.

    Raises:
        UserError: the path leads nowhere.
    """
    try:
        return path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise UserError(f"{path}: cannot be written: {error.strerror}") from None


def _resolve_links(path: Path) -> Path:
    """Return the path with all links resolved; it need not exist."""
    return Path(os.path.realpath(path))


def _is_replaceable(there: os.stat_result) -> bool:
    """Return whether a new file takes its place: it is a regular file with one name."""
    return stat.S_ISREG(there.st_mode) and there.st_nlink == 1


MAX_FILE_NAME_BYTES = 255
"""Most bytes of one part of a path on the file systems in use."""


def is_safe_file_name(part: str) -> bool:
    """Return whether a text can be the name of one visible file: it can be printed and holds no separator."""
    too_long = len(part.encode(errors="surrogatepass")) > MAX_FILE_NAME_BYTES
    return bool(part) and part[0] != "." and part.isprintable() and not {"/", "\\"} & {*part} and not too_long


def safe_path_below(folder: Path, name: str) -> Path:
    """Return the path of `name`, which may come from a cluster or a server, below a folder.

    Args:
        name: its parts are separated by `/`.

    Raises:
        UserError: the name could lead out of the folder, is hidden, or is none.
    """
    if not all(is_safe_file_name(part) for part in name.split("/")):
        raise UserError(
            f"{name[:MAX_FILE_NAME_BYTES]!r}: cannot be the name of a file in {folder}; it leads out of it or is hidden"
        )
    return folder / name


def sha256_of_values(values: Any) -> str:
    """Return the SHA-256 of nested plain values, whatever the order of their keys."""
    return hashlib.sha256(json.dumps(values, sort_keys=True, allow_nan=False).encode()).hexdigest()


def sha256_of_file(path: Path) -> str:
    """Return the SHA-256 of a file's content."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
