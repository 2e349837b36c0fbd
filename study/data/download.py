"""Download and unpack sources, with resume and checksum; only `study data prepare` and `study models prepare` do so."""

import gzip
import hashlib
import shutil
import tarfile
import urllib.error
import urllib.request
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

from study.data.source import Source, data_root, writable_data_folder
from study.errors import UserError
from study.files import temporary_folder_beside

CHUNK_BYTES, TIMEOUT_S, MAX_ATTEMPTS = 1 << 18, 30.0, 3
"""Bytes at a time; seconds without an answer; attempts, each of which continues the last one."""

ProgressCallback = Callable[[str, int, int | None], None]
"""Function called with the file's name, its bytes so far, and its total size, if that is known."""


def ignore_progress(name: str, done: int, total: int | None) -> None:
    """Ignore all progress."""


def find_or_download(source: Source, progress: ProgressCallback = ignore_progress) -> Path:
    """Return the path of a source, downloaded and unpacked if it is missing; compare a file with its checksum.

    Raises:
        UserError: it cannot be downloaded, only the user may get it, or the download is not the file; says where to put
            it by hand.
    """
    if existing := source.path_or_none():
        if not source.archive:
            verify_checksum(source, existing)
        return existing
    archive = source.existing_archive()
    if archive is None:
        if source.url is None:
            raise UserError(source.missing_message())
        path = source.archive or source.path
        archive = writable_data_folder(Path(path).parent.as_posix()) / Path(path).name
        download_source(source, archive, progress)
    else:
        verify_checksum(source, archive)
    return unpack_archive(archive, source.path) if source.archive else archive


def download_source(source: Source, place: Path, progress: ProgressCallback = ignore_progress) -> None:
    """Download `source.url` to PLACE.part, resumed if that is there, then check it and rename it to this place.

    Raises:
        UserError: no connection, or the checksum differs.
    """
    part = place.with_name(f"{place.name}.part")
    for attempt in range(1, MAX_ATTEMPTS + 1):
        try:
            _resume_download(source.url or "", part, place.name, progress)
            break
        except urllib.error.HTTPError as error:
            error.close()
            raise _download_error(source, place, f"{error.code} {error.reason}") from None
        except (OSError, EOFError) as error:  # URLError is an OSError
            if attempt == MAX_ATTEMPTS:
                raise _download_error(source, place, str(getattr(error, "reason", error))) from None
    verify_checksum(source, part, remove=True)
    part.replace(place)


def verify_checksum(source: Source, place: Path, remove: bool = False) -> None:
    """Compare a file with its published checksum, where there is one.

    Raises:
        UserError: it differs.
    """
    for name, expected in (("sha256", source.sha256), ("md5", source.md5)):
        if expected is None:
            continue
        with place.open("rb") as file:
            digest = hashlib.file_digest(file, name).hexdigest()
        if not digest.startswith(expected):
            if remove:
                place.unlink()
            done = "It was removed; try again" if remove else f"Remove it, then run `{source.command}`"
            raise UserError(f"{place}: {name} is {digest}, {expected} was published: not the file, or damaged. {done}")


def unpack_archive(archive: Path, path: str) -> Path:
    """Unpack an archive to `path` of the data folder; nothing is written outside of it.

    A .tar (.tar.gz, .tgz) or .zip must hold a file or folder with the last name of `path`.

    Raises:
        UserError: the archive is cut short, unsafe, or does not hold `path`.
    """
    goal = writable_data_folder(Path(path).parent.as_posix()) / Path(path).name
    try:
        with temporary_folder_beside(goal) as part:
            if zipfile.is_zipfile(archive):  # shutil would leave out each file with two dots in its name
                with zipfile.ZipFile(archive) as packed:
                    packed.extractall(part)  # drops absolute and parent paths itself
            else:
                shutil.unpack_archive(archive, part, filter="data")
            inner = part / goal.name
            if not inner.exists():
                held = ", ".join(sorted(entry.name for entry in part.iterdir())[:5])
                raise UserError(f"{archive}: holds {held or 'nothing'}, {goal.name} is needed")
            inner.replace(goal)
    except (tarfile.TarError, zipfile.BadZipFile, shutil.ReadError, gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise UserError(f"{archive}: cannot be unpacked: {error}. Remove it and get it again") from None
    return goal


def _resume_download(url: str, part: Path, name: str, progress: ProgressCallback) -> None:
    """Download what is missing from the part file, continuing at its end where the server can."""
    done = part.stat().st_size if part.exists() else 0
    request = urllib.request.Request(url, headers={"Range": f"bytes={done}-"} if done else {})
    try:
        answer = urllib.request.urlopen(request, timeout=TIMEOUT_S)
    except urllib.error.HTTPError as error:
        if error.code != 416 or not done:
            raise
        error.close()
        part.unlink()  # it has the whole file already, or more: begin again
        answer = urllib.request.urlopen(url, timeout=TIMEOUT_S)
    with answer:
        done = done if answer.status == 206 else 0
        length = answer.headers.get("Content-Length")
        total = done + int(length) if length else None
        with part.open("ab" if done else "wb") as file:
            while chunk := answer.read(CHUNK_BYTES):
                file.write(chunk)
                done += len(chunk)
                progress(name, done, total)
    if total is not None and done < total:
        raise EOFError(f"the connection ended after {done} of {total} bytes")


def _download_error(source: Source, place: Path, reason: str) -> UserError:
    by_hand = f"Try again, or put that file at {data_root() / (source.archive or source.path)} yourself"
    return UserError(f"{source.url}: cannot be downloaded to {place}: {reason}. {by_hand}. {source.note}".rstrip())
