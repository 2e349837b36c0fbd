"""Studies on a cluster, read from outside: where each shares its files, their download, and the local copy."""

import hashlib
import json
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from study import __version__
from study.cluster.dashboard import ClusterDashboard, NodeNotFoundError, RemoteFileNotFoundError
from study.cluster.driver_job import DriverJob
from study.cluster.log_share import (
    LOG_SHARES_FOLDER,
    MANIFEST_FILE,
    MANIFEST_RENEWAL_INTERVAL_S,
    SHARED_FILES,
    SHARED_FOLDERS,
    STUDY_LINK_NAME,
)
from study.errors import StudyNotFoundError, UserError, find_disk_error
from study.files import is_safe_file_name, replace_atomically, safe_path_below, sha256_of_file, write_atomically
from study.home.folder import HOME_FORMAT_VERSION, FetchOrigin, Home, StudyFolder, read_fetch_origin, write_home_format
from study.home.lease import LeaseHolder
from study.home.ledger import lease_path
from study.home.ledger_line import LineChainState, last_line
from study.text import escape_control, study_command

RemoteFileReader = Callable[[str, int, int], Iterator[bytes]]
"""Yields a file of the study, by its name, in blocks: its last `lines` lines (-1: all of it), at most so many bytes."""

STUDY_FILE_NAME, LEDGER_FILE_NAME = "study.yaml", "ledger.jsonl"

RECENT_LEDGER_LINES = 50
"""Lines of a ledger that are asked for first where some are here, and in addition to those that are known to be new."""

MAX_LEDGER_GROWTH_BYTES = 16 << 20
"""Bytes by which a file may have grown since it was announced."""


class RemoteFileChangedError(UserError):
    """The file that came is not the one that the cluster announced, which may have changed meanwhile."""

    def __init__(self, name: str, how: str) -> None:
        super().__init__(f"{name}: what came is not what the cluster says of it ({how})")


class LedgerMismatchError(UserError):
    """The ledger here does not begin as that on the cluster does, or is longer."""


@dataclass(frozen=True)
class ShareManifest:
    """The list of files that a log share offers.

    Attributes:
        files: bytes and SHA-256 by name; for the ledger those of its beginning, as it may have grown since.
    """

    host: str
    folder: str
    written: float
    files: Mapping[str, tuple[int, str]]

    @classmethod
    def from_document(cls, name: str, document: Any) -> "ShareManifest":
        """Build a manifest from a log share's file.

        Raises:
            UserError: another version of this package wrote it, or what it says is impossible.
        """
        try:
            form, maker = int(document["format"]), escape_control(str(document["study"])[:100])
            if form != HOME_FORMAT_VERSION:
                raise UserError(
                    f"{name}: is in form {form} on the cluster, whose study {maker} made it; this is study "
                    f"{__version__}, which reads form {HOME_FORMAT_VERSION}. Install study {maker} here"
                )
            listed = document["files"].items()
            files = {_check_is_shared_file(key): (int(told["bytes"]), str(told["sha256"])) for key, told in listed}
            host, folder = escape_control(str(document["host"])), escape_control(str(document["folder"]))
            return cls(host, folder, float(document["written"]), files)
        except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
            raise UserError(f"{name}: what the cluster says of its files cannot be read") from None


def _check_is_shared_file(name: str) -> str:
    """Return the name of a file if it may be downloaded.

    Raises:
        ValueError: it may not, as one that leads out of the folder.
    """
    first, *rest = name.split("/")
    inside = first in SHARED_FOLDERS and rest and all(is_safe_file_name(part) for part in rest)
    if not (inside or (first in SHARED_FILES and not rest)):
        raise ValueError
    return name


FOLDERS_DOWNLOADED_BY_DEFAULT = ("errors", "output", "requests")
"""Folders of a study that commands read which look at it from afar."""


@dataclass(frozen=True)
class FetchOptions:
    """Which files of a study are wanted besides study file and ledger, and how they are downloaded.

    Attributes:
        is_wanted: returns whether a further file is wanted; in the folders `FOLDERS_DOWNLOADED_BY_DEFAULT`, files that
            no longer exist are removed.
        keeps_own_events: whether a ledger here that has events of its own is kept.
        change_study_file: what is done with the study file before it is in its place.
    """

    is_wanted: Callable[[str], bool]
    keeps_own_events: bool = False
    change_study_file: Callable[[Path], None] | None = None


def download_study(read: RemoteFileReader, manifest: ShareManifest, folder: Path, options: FetchOptions) -> list[str]:
    """Download what is new into a folder; return the names of the files that came.

    The ledger comes first: where it is refused, nothing else comes. Each file is whole and as the cluster announced, or
    is not written.

    Raises:
        RemoteFileChangedError: a file is not what the manifest says.
        LedgerMismatchError: the ledger here and that on the cluster have events of their own; nothing was written.
        UserError: the ledger on the cluster is damaged, or a file cannot be had.
    """
    for needed in (STUDY_FILE_NAME, LEDGER_FILE_NAME):
        if needed not in manifest.files:
            raise UserError(f"{folder.name}: has no {needed} on the cluster, in {manifest.folder}")
    folder.mkdir(parents=True, exist_ok=True)
    came = list[str]()
    if _download_ledger(read, manifest, folder / LEDGER_FILE_NAME, options.keeps_own_events):
        came.append(LEDGER_FILE_NAME)
    if _download_file(read, manifest, folder, STUDY_FILE_NAME, options.change_study_file):
        came.append(STUDY_FILE_NAME)
    for name in sorted({*manifest.files} - {STUDY_FILE_NAME, LEDGER_FILE_NAME}):
        if options.is_wanted(name) and _download_file(read, manifest, folder, name):
            came.append(name)
    for part in (part for part in FOLDERS_DOWNLOADED_BY_DEFAULT if options.is_wanted(f"{part}/")):
        for path in (folder / part).glob("[!.]*"):
            if f"{part}/{path.name}" not in manifest.files:
                path.unlink(missing_ok=True)
    return came


def _download_file(
    read: RemoteFileReader,
    manifest: ShareManifest,
    folder: Path,
    name: str,
    change: Callable[[Path], None] | None = None,
) -> bool:
    path, (size, digest) = safe_path_below(folder, name), manifest.files[name]
    if path.is_file() and path.stat().st_size == size and sha256_of_file(path) == digest:
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    found, count = hashlib.sha256(), 0
    with replace_atomically(path) as part:
        with part.open("xb") as file:
            for block in read(name, -1, size + MAX_LEDGER_GROWTH_BYTES):
                count += len(block)
                found.update(block)
                file.write(block)
        if count != size or found.hexdigest() != digest:
            raise RemoteFileChangedError(name, f"{count} bytes of {size}")
        if change is not None:
            change(part)
    return True


def _download_ledger(read: RemoteFileReader, manifest: ShareManifest, path: Path, own: bool) -> bool:
    """Download the new lines of the ledger, which grows meanwhile; return whether there were any.

    The chain of check values (`home.ledger_line`) and the cluster's digest prove that they follow those that are here.

    Raises:
        RemoteFileChangedError, LedgerMismatchError: see `download_study`.
    """
    size, digest = manifest.files[LEDGER_FILE_NAME]
    local = _whole_lines(path.read_bytes()) if path.exists() else b""
    new = _download_new_lines(read, local, size + MAX_LEDGER_GROWTH_BYTES) if local else None
    if new is None:
        remote = _whole_lines(b"".join(read(LEDGER_FILE_NAME, -1, size + MAX_LEDGER_GROWTH_BYTES)))
        if not remote.startswith(local):
            if own and local.startswith(remote):
                return False
            if own:
                is_other = local.partition(b"\n")[0] != remote.partition(b"\n")[0]
                raise LedgerMismatchError("is another study" if is_other else "has events of its own")
            local = b""
        new = remote[len(local) :]
    data = local + new
    if len(data) < size or hashlib.sha256(data[:size]).hexdigest() != digest:
        raise RemoteFileChangedError(LEDGER_FILE_NAME, f"{len(data)} bytes, {size} or more")
    _check_ledger_lines_follow(new, local)
    if new:
        with replace_atomically(path) as part:
            part.write_bytes(data)
    return bool(new)


def _download_new_lines(read: RemoteFileReader, local: bytes, most: int) -> bytes | None:
    """Return the lines after those that are here; None: they do not follow, or too many are new to ask for a part."""
    last, asked = last_line(local), RECENT_LEDGER_LINES
    for _ in range(2):
        lines = _whole_lines(b"".join(read(LEDGER_FILE_NAME, asked, most))).splitlines(keepends=True)
        if last in lines:
            return b"".join(lines[lines.index(last) + 1 :])
        if not lines:
            return None
        asked += LineChainState.before_line(lines[-1]).number - LineChainState.before_line(last).number
    return None


def _check_ledger_lines_follow(new: bytes, local: bytes) -> None:
    """Check that lines follow one another, and those that are here.

    Raises:
        RemoteFileChangedError: they do not.
    """
    chain = LineChainState()
    if local:
        last = last_line(local)
        chain = LineChainState.before_line(last)
        chain.advance_if_next(last)
    for line in new.splitlines(keepends=True):
        if not chain.advance_if_next(line):
            raise RemoteFileChangedError(LEDGER_FILE_NAME, f"damaged at event {chain.number}")


def _whole_lines(data: bytes) -> bytes:
    return data[: data.rfind(b"\n") + 1]


MAX_DOWNLOAD_ATTEMPTS = 3
"""Downloads of files that are not what the cluster says, as they may be changing."""

SHARE_JOB_TIMEOUT_S = 180.0
"""Seconds that a job may take which shares a study's files: all cores of the head may be busy."""


class RemoteStudyNotFoundError(UserError):
    """The cluster has no such study, or not yet."""


class RemoteStudy:
    """One study on a cluster.

    Args:
        drivers: its jobs, the oldest first; none where the head has forgotten them.
        known: where it was found before.
    """

    def __init__(
        self, head: ClusterDashboard, name: str, drivers: Sequence[DriverJob], known: FetchOrigin | None = None
    ) -> None:
        self._head, self._name, self._known = head, name, known
        self._last = drivers[-1] if drivers else None
        nodes = [job.node for job in reversed(drivers)] + ([known.node] if known else [])
        self._nodes = list(dict.fromkeys(node for node in nodes if node))
        self._node = ""

    def download_study_files(self, folder: Path, options: FetchOptions) -> tuple[FetchOrigin, list[str]]:
        """Download what is new into a folder, and note there where it came from; return the note and the names.

        Raises:
            RemoteStudyNotFoundError: there is no such study, or not yet.
            UserError: see `study.cluster.mirror.download_study`, or the cluster does not answer.
        """
        manifest = self._find_or_make_manifest()
        for left in reversed(range(MAX_DOWNLOAD_ATTEMPTS)):
            try:
                came = download_study(self._read_shared_file, manifest, folder, options)
                break
            except RemoteFileChangedError:
                if not left:
                    raise
                manifest = self._renewed_manifest()
            except RemoteFileNotFoundError:
                gone = f"its files are no more in {manifest.folder} on the cluster"
                raise RemoteStudyNotFoundError(f"{self._name}: {gone}") from None
        last = self._last
        found = FetchOrigin(
            address=self._head.address,
            name=self._name,
            job=last.id if last else "",
            state=last.state if last else "",
            downloaded_at=round(time.time(), 3),
            host=manifest.host,
            node=self._node,
            folder=manifest.folder,
            python=self._remote_python,
            events=LineChainState.before_line(last_line((folder / LEDGER_FILE_NAME).read_bytes())).number + 1,
        )
        if self._known and LEDGER_FILE_NAME not in came and self._known.events:
            found = replace(found, events=self._known.events)  # the ledger here has had its own events since
        found.save(folder)
        return found, came

    @property
    def _remote_python(self) -> str:
        return self._last.python if self._last else self._known.python if self._known else "python"

    def _read_shared_file(self, name: str, lines: int, most: int) -> Iterator[bytes]:
        path = f"{LOG_SHARES_FOLDER}/{self._name}/{STUDY_LINK_NAME}/{name}"
        return self._head.read_log_file(self._node, path, lines, most)

    def _find_or_make_manifest(self) -> ShareManifest:
        """Return what there is to download; where no living node shares its files, start a job that does."""
        lost = not self._nodes and (self._last is None or self._last.has_ended)
        for node in self._nodes:
            self._node = node
            try:
                return self._read_manifest()
            except RemoteFileNotFoundError:
                continue
            except NodeNotFoundError:
                lost = True
        if not lost or (self._last and not self._last.has_ended):
            what = f"{self._last.id}, {self._last.state}" if self._last else "no driver"
            why = "its driver has not made it yet"
            if self._last and self._last.has_ended:
                why = "no such study on the cluster: its driver ended before it made it, or it was deleted"
            raise RemoteStudyNotFoundError(f"{self._name}: {why} ({what})")
        return self._manifest_from_new_job()

    def _renewed_manifest(self) -> ShareManifest:
        """Return the manifest after a while: of the driver, where one runs, else of a job."""
        if self._last and not self._last.has_ended:
            time.sleep(1.5 * MANIFEST_RENEWAL_INTERVAL_S)
            return self._read_manifest()
        return self._manifest_from_new_job()

    def _read_manifest(self) -> ShareManifest:
        data = b"".join(self._head.read_log_file(self._node, f"{LOG_SHARES_FOLDER}/{self._name}/{MANIFEST_FILE}"))
        try:
            document: Any = json.loads(data)
        except (ValueError, RecursionError):
            document = None
        return ShareManifest.from_document(self._name, document)

    def _manifest_from_new_job(self) -> ShareManifest:
        """Return the manifest of a job that shares the study's files.

        Raises:
            RemoteStudyNotFoundError: there is no such study.
        """
        from study.cluster.job_client import JobClient

        jobs = JobClient(self._head.address)
        environment = self._last.environment if self._last else {}
        job = jobs.begin_command(["share", self._name, "--json"], self._remote_python, environment)
        self._node = jobs.wait_for_job(job, SHARE_JOB_TIMEOUT_S, "answer").node or ""
        try:
            return ShareManifest.from_document(self._name, jobs.wait_for_answer(job))
        except StudyNotFoundError as error:
            submit = study_command("submit", "FILE", "--address", self._head.address)
            raise RemoteStudyNotFoundError(f"{error} (on the cluster). A first one: {submit}") from None


MIRRORS_FOLDER = ".clusters"


def is_downloaded_by_default(name: str) -> bool:
    """Return whether a file of this name is read besides study file and ledger."""
    return name.startswith(tuple(f"{part}/" for part in FOLDERS_DOWNLOADED_BY_DEFAULT))


class StudyMirror:
    """The local copy of one cluster's studies, in a folder of the local home, `.clusters/HOST_PORT`.

    It is a home itself, in which everything that reads a study works. It stays when the head has gone.

    Args:
        home: the local home.
        address: of the cluster's head.
    """

    def __init__(self, home: Home, address: str) -> None:
        parts = urlsplit(address)
        key = re.sub(r"[^A-Za-z0-9.-]", "_", f"{parts.hostname}_{parts.port or ''}")
        self.home = Home(home.path / MIRRORS_FOLDER / key)

    def update_study(self, head: ClusterDashboard, name: str, drivers: list[DriverJob]) -> FetchOrigin:
        """Download what is new of a study.

        Raises:
            UserError: see `RemoteStudy.download_study_files`; or the local home cannot be written.
        """
        try:
            self.home.path.mkdir(parents=True, exist_ok=True)
            write_home_format(self.home.path)
            study, folder = RemoteStudy(head, name, drivers, self.known_origin(name)), self._folder(name)
            found, _ = study.download_study_files(folder, FetchOptions(is_downloaded_by_default))
            self._write_running_lease(name, found)
        except OSError as error:
            if find_disk_error(error):
                raise
            raise UserError(f"{error.filename or self.home.path}: {error.strerror}") from None
        return found

    def known_origin(self, name: str) -> FetchOrigin | None:
        """Return where a study was found before; None: it was never read."""
        return read_fetch_origin(StudyFolder(self._folder(name)))

    def _folder(self, name: str) -> Path:
        return safe_path_below(self.home.path, name)

    def mirrored_study_names(self) -> list[str]:
        """Return the studies that were read, whether or not the cluster has them."""
        return [folder.name for folder in self.home.list_studies() if self.known_origin(folder.name)]

    def known_origin_with_lease(self, name: str) -> FetchOrigin | None:
        """Return what `known_origin` does, and mark the driver as running if it ran when the study was read."""
        found = self.known_origin(name)
        if found:
            self._write_running_lease(name, found)
        return found

    def remove_study(self, name: str) -> None:
        """Remove what was read of a study."""
        shutil.rmtree(self._folder(name), ignore_errors=True)

    def _write_running_lease(self, name: str, found: FetchOrigin) -> None:
        """Write a lease like that of a shared folder while a driver runs elsewhere, so that readers see it."""
        path = lease_path(self._folder(name) / LEDGER_FILE_NAME)
        if found.was_running:
            holder = LeaseHolder(found.job, found.address, found.host, 1, found.downloaded_at)
            write_atomically(path, json.dumps(asdict(holder)))
        elif path.exists():
            os.unlink(path)
