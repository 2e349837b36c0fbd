"""A study's log share: a place below a node's Ray logs through which whoever has the cluster's token can read it.

Ray's dashboard serves the files below that folder to whoever has its token, and follows links there. So a job links
the folder of its study to `logs/study/NAME/folder`, and lists the files beside it in `manifest.json`, each with its
size and SHA-256, which a download is compared with. No server of our own listens for it.
"""

import hashlib
import json
import os
import platform
import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from study import __version__
from study.errors import UserError
from study.files import PRIVATE_FILE_MODE, sha256_of_file, write_atomically
from study.home.folder import HOME_FORMAT_VERSION, Home, StudyFolder
from study.text import print_text
from study.upstream.ray_internals import job_logs_folder

LOG_SHARES_FOLDER, STUDY_LINK_NAME, MANIFEST_FILE = "study", "folder", "manifest.json"
"""Names below a node's logs: the folder of all log shares; in that of one study the link to it, and the list of its
files."""

MANIFEST_RENEWAL_INTERVAL_S = 5.0
"""Seconds between two looks of a driver whether there is more to share."""

SHARED_FILES = ("study.yaml", "ledger.jsonl", "best.yaml", "model_card.md")
SHARED_FOLDERS = ("errors", "output", "requests", "report", "models")
"""What is shared of a study: these files, and all in these folders. Not its checkpoints, nor a pickled training
function."""


class StudyLogShare:
    """The log share of one study on this node.

    Args:
        logs: the folder of the node's Ray logs.
    """

    def __init__(self, folder: StudyFolder, logs: Path) -> None:
        self._folder, self._place = folder, logs / LOG_SHARES_FOLDER / folder.name
        self._known: dict[str, tuple[tuple[int, int], dict[str, Any]]] = {}
        self._ledger, self._read = hashlib.sha256(), 0

    def create_share(self) -> None:
        """Make the log share, and remove those of studies that no longer exist.

        Raises:
            UserError: something of another user, or that is no log share, is in its place.
        """
        shares = self._place.parent
        for path in (shares, self._place):
            path.mkdir(mode=0o700, exist_ok=True)
            found = path.lstat()
            if path.is_symlink() or found.st_uid != os.getuid():
                raise UserError(f"{path}: is not this user's own folder, so the study is not shown there")
            path.chmod(0o700)
        remove_shares_of_missing_studies(shares)
        link = self._place / STUDY_LINK_NAME
        if not link.is_symlink() or Path(os.readlink(link)) != self._folder.path:
            part = self._place / f".{STUDY_LINK_NAME}.{os.getpid()}"
            part.unlink(missing_ok=True)
            part.symlink_to(self._folder.path)
            part.replace(link)
        self.renew_manifest()

    def renew_manifest(self) -> None:
        """Write the list of files anew."""
        document = {
            "format": HOME_FORMAT_VERSION,
            "study": __version__,
            "name": self._folder.name,
            "host": platform.node(),
            "folder": str(self._folder.path),
            "written": round(time.time(), 3),
            "files": self._list_files(),
        }
        write_atomically(self._place / MANIFEST_FILE, json.dumps(document), PRIVATE_FILE_MODE)

    def _list_files(self) -> dict[str, dict[str, Any]]:
        root = self._folder.path
        paths = [root / name for name in SHARED_FILES]
        paths += [path for name in SHARED_FOLDERS for path in sorted((root / name).rglob("*"))]
        files = {}
        for path in paths:
            hidden = any(part.startswith(".") for part in path.relative_to(root).parts)
            if hidden or path.is_symlink():
                continue
            name = path.relative_to(root).as_posix()
            with suppress(OSError):  # removed meanwhile, or not there
                if path.is_file():
                    is_ledger = path == self._folder.ledger_file
                    files[name] = self._ledger_entry() if is_ledger else self._file_entry(name, path)
        return files

    def _file_entry(self, name: str, path: Path) -> dict[str, Any]:
        status = path.stat()
        state = (status.st_size, status.st_mtime_ns)
        if name not in self._known or self._known[name][0] != state:
            self._known[name] = (state, {"bytes": status.st_size, "sha256": sha256_of_file(path)})
        return self._known[name][1]

    def _ledger_entry(self) -> dict[str, Any]:
        """Return bytes and digest of the ledger's whole lines; lines that were read before are not read again."""
        with self._folder.ledger_file.open("rb") as file:
            file.seek(self._read)
            for line in file:
                if line.endswith(b"\n"):
                    self._ledger.update(line)
                    self._read += len(line)
        return {"bytes": self._read, "sha256": self._ledger.hexdigest()}


def remove_shares_of_missing_studies(shares: Path) -> None:
    """Remove the log shares of studies that no longer exist."""
    for place in shares.glob("*"):
        link = place / STUDY_LINK_NAME
        if link.is_symlink() and not link.exists():
            shutil.rmtree(place, ignore_errors=True)


def remove_stale_shares_on_this_node() -> None:
    """Prune the log shares on the node of this job; do nothing in a process that is no job's."""
    if logs := job_logs_folder():
        remove_shares_of_missing_studies(logs / LOG_SHARES_FOLDER)


@contextmanager
def share_study_while_running(folder: StudyFolder) -> Iterator[None]:
    """Keep the log share of a study while the block runs in a job; the share stays. Do nothing in other processes.

    A fault of the log share is reported, and does not stop the study.
    """
    logs = job_logs_folder()
    if logs is None:
        yield
        return
    share, over = StudyLogShare(folder, logs), threading.Event()

    def keep() -> None:
        while not over.wait(MANIFEST_RENEWAL_INTERVAL_S):
            with suppress(OSError):
                share.renew_manifest()

    try:
        share.create_share()
    except (OSError, UserError) as error:
        print_text(f"this study cannot be read from outside the cluster: {error}")
        yield
        return
    thread = threading.Thread(target=keep, name="log-share", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        with suppress(OSError):
            share.renew_manifest()


def create_share_of_study(home: Home, name: str) -> dict[str, Any]:
    """Make the log share of an existing study, in a job that does nothing else; return its manifest.

    Raises:
        UserError: there is no such study, or this process is no job.
    """
    folder, logs = home.find_study(name), job_logs_folder()
    if logs is None:
        raise UserError("study share: is what a cluster's jobs run, to show a study to who has the cluster's token")
    StudyLogShare(folder, logs).create_share()
    document: dict[str, Any] = json.loads((logs / LOG_SHARES_FOLDER / name / MANIFEST_FILE).read_text(encoding="utf-8"))
    return document
