"""Files that are there whole or not at all: written beside their place, then renamed. No reader ever sees half of one,
and of several writers at once the last to end has it. Nothing is synced to the disk: a machine that loses its power may
lose the newest file. `study.home.ledger` syncs what must not be lost."""

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from study.errors import of_disk

PRIVATE = 0o600
"""The mode of a file that only its owner may read."""


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """A file to write within the block, which is at `path` once the block ends, in place of what was there.

    Where the block fails, nothing of it is left, and what was at `path` stays. A process that is killed leaves one of
    `parts`.

    Raises:
        OSError: it cannot be written or put in its place; it names the file. So it is where the block made an error of
            its own of what the disk said, as `torch.save` does.
    """
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        yield part
        part.replace(path)
    except BaseException as error:
        if isinstance(error, OSError) and error.filename in (None, str(part)):  # None: of a write, which knows no path
            error.filename = str(path)
        with suppress(OSError):  # what went wrong before is told
            part.unlink()
        if not isinstance(error, OSError) and (problem := of_disk(error)):
            raise OSError(problem.errno, problem.strerror, str(path)) from error
        raise


def write_whole(path: Path, content: str | bytes, mode: int = 0o666) -> None:
    """Write a file, text as UTF-8.

    Args:
        mode: of the new file from its first byte on, less the umask; that of a file which is there does not count.

    Raises:
        OSError: it cannot be written; what was there stays.
    """
    data = content.encode() if isinstance(content, str) else content
    with whole(path) as part, open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
        file.write(data)


def parts(folder: Path) -> list[Path]:
    """What `whole` writes in a folder at this moment, or has left there when it was killed."""
    return [*folder.glob(".*.part")]


@contextmanager
def folder_beside(path: Path) -> Iterator[Path]:
    """An empty folder beside `path`, to make there what is then moved to `path`; it is gone when the block ends.

    For one process at a time: what one that was killed left is removed first.
    """
    part = path.with_name(f".{path.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    try:
        yield part
    finally:
        shutil.rmtree(part, ignore_errors=True)
