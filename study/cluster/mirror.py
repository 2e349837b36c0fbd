"""Studies on a cluster, read from outside it: where each shares its files, these downloaded into a folder here, and
the copy of those that were read.
"""

import json
import os
import re
import shutil
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from study.cluster.download import LARGEST, LEDGER, Changed, Manifest, Wish, download
from study.cluster.head import Head, NodeGone, NotThere
from study.cluster.job import Job
from study.cluster.log_share import FOLDER as WINDOW
from study.cluster.log_share import MANIFEST, PLACE, RENEWAL
from study.errors import UserError, of_disk
from study.files import below, write_whole
from study.home.fetched import Fetched, fetched
from study.home.folder import Home, StudyFolder, write_format
from study.home.lease import Holder
from study.home.ledger import lease_file
from study.home.line import Chain, last_line
from study.text import typed

TRIES = 3
"""How often files are asked for that are not what the cluster says: they may be changing."""

JOB = 180.0
"""Seconds that a job that shares a study's files may take: all cores of the head may be busy."""


class NotMade(UserError):
    """The cluster has no such study, or not yet."""


class Reading:
    """One study on a cluster.

    Args:
        drivers: its jobs, the oldest first; none where the head has forgotten them.
        known: where it was found before.
    """

    def __init__(self, head: Head, name: str, drivers: Sequence[Job], known: Fetched | None = None) -> None:
        self._head, self._name, self._known = head, name, known
        self._last = drivers[-1] if drivers else None
        nodes = [job.node for job in reversed(drivers)] + ([known.node] if known else [])
        self._nodes = list(dict.fromkeys(node for node in nodes if node))
        self._node = ""

    def download(self, folder: Path, wish: Wish) -> tuple[Fetched, list[str]]:
        """Bring what is new into a folder, which then says where it came from; gives that, and the files that came.

        Raises:
            NotMade: there is no such study, or not yet.
            UserError: see `study.cluster.download.download`, or the cluster does not answer.
        """
        manifest = self._manifest_there()
        for left in reversed(range(TRIES)):
            try:
                came = download(self._read, manifest, folder, wish)
                break
            except Changed:
                if not left:
                    raise
                manifest = self._renewed()
            except NotThere:
                raise NotMade(f"{self._name}: its files are no more in {manifest.folder} on the cluster") from None
        last = self._last
        found = Fetched(
            address=self._head.address,
            name=self._name,
            job=last.id if last else "",
            state=last.state if last else "",
            at=round(time.time(), 3),
            host=manifest.host,
            node=self._node,
            folder=manifest.folder,
            python=self._python,
            events=Chain.at(last_line((folder / LEDGER).read_bytes())).number + 1,
        )
        if self._known and LEDGER not in came and self._known.events:
            found = replace(found, events=self._known.events)  # what came of it later is its own
        found.save(folder)
        return found, came

    @property
    def _python(self) -> str:
        return self._last.python if self._last else self._known.python if self._known else "python"

    def _read(self, name: str, lines: int) -> Iterator[bytes]:
        # `download` reads no more than was announced
        return self._head.file(self._node, f"{PLACE}/{self._name}/{WINDOW}/{name}", lines, most=LARGEST)

    def _manifest_there(self) -> Manifest:
        """Return what there is to download; where no node that is there shares its files, a job does."""
        lost = not self._nodes and (self._last is None or self._last.is_over)
        for node in self._nodes:
            self._node = node
            try:
                return self._manifest()
            except NotThere:
                continue
            except NodeGone:
                lost = True
        if not lost or (self._last and not self._last.is_over):
            what = f"{self._last.id}, {self._last.state}" if self._last else "no driver"
            ended = self._last and self._last.is_over
            why = "its driver ended before it made it, or it was deleted" if ended else "its driver has not made it yet"
            raise NotMade(f"{self._name}: no such study on the cluster: {why} ({what})")
        return self._made()

    def _renewed(self) -> Manifest:
        """The same after a while: by its driver, where one runs, else by a job."""
        if self._last and not self._last.is_over:
            time.sleep(1.5 * RENEWAL)
            return self._manifest()
        return self._made()

    def _manifest(self) -> Manifest:
        data = b"".join(self._head.file(self._node, f"{PLACE}/{self._name}/{MANIFEST}"))
        try:
            document: Any = json.loads(data)
        except (ValueError, RecursionError):
            document = None
        return Manifest.of(self._name, document)

    def _made(self) -> Manifest:
        """By a job that shares the study's files.

        Raises:
            NotMade: there is no such study.
        """
        from study.cluster.jobs import Jobs

        jobs = Jobs(self._head.address)
        job = jobs.begin(["share", self._name, "--json"], self._python, self._last.environment if self._last else {})
        self._node = jobs.wait(job, JOB, "answer").node or ""
        try:
            return Manifest.of(self._name, jobs.answer(job))
        except UserError as error:
            if "no such study" in str(error):
                submit = typed("submit", "FILE", "--address", self._head.address)
                raise NotMade(f"{error} (on the cluster). A first one: {submit}") from None
            raise


# What was read of a cluster's studies, in a folder of the local home that is none of its studies: a home of its own,
# `.clusters/HOST_PORT`, in which everything that reads a study works. A head that has gone leaves what was read there.

FOLDER = ".clusters"


def read_files(name: str) -> bool:
    """Return whether a file of this name is read besides study file and ledger."""
    return name.startswith(("errors/", "requests/"))


class Mirror:
    """The copy of one cluster's studies.

    Args:
        home: the local home.
        address: of the cluster's head.
    """

    def __init__(self, home: Home, address: str) -> None:
        parts = urlsplit(address)
        key = re.sub(r"[^A-Za-z0-9.-]", "_", f"{parts.hostname}_{parts.port or ''}")
        self.home = Home(home.path / FOLDER / key)

    def update(self, head: Head, name: str, drivers: list[Job]) -> Fetched:
        """Bring what is new of a study.

        Raises:
            UserError: see `Reading.download`; or the local home cannot be written.
        """
        try:
            self.home.path.mkdir(parents=True, exist_ok=True)
            write_format(self.home.path)
            found, _ = Reading(head, name, drivers, self.known(name)).download(
                below(self.home.path, name), Wish(read_files)
            )
            self._tell_whether_it_runs(name, found)
        except OSError as error:
            if of_disk(error):
                raise
            raise UserError(f"{error.filename or self.home.path}: {error.strerror}") from None
        return found

    def known(self, name: str) -> Fetched | None:
        """Return where a study was found before; None: it was never read."""
        return fetched(StudyFolder(below(self.home.path, name)))

    def names(self) -> list[str]:
        """The studies that were read, whether or not the cluster has them."""
        return [folder.name for folder in self.home.studies() if self.known(folder.name)]

    def as_it_was(self, name: str) -> Fetched | None:
        """The same as `known`, with the study as it was then: that its driver ran counts."""
        found = self.known(name)
        if found:
            self._tell_whether_it_runs(name, found)
        return found

    def forget(self, name: str) -> None:
        """Remove what was read of a study."""
        shutil.rmtree(below(self.home.path, name), ignore_errors=True)

    def _tell_whether_it_runs(self, name: str, found: Fetched) -> None:
        """Have readers see a driver elsewhere, while there is one: what a shared folder would tell them."""
        path = lease_file(below(self.home.path, name) / "ledger.jsonl")
        if found.ran:
            write_whole(path, json.dumps(asdict(Holder(found.job, found.address, found.host, 1, found.at))))
        elif path.exists():
            os.unlink(path)
