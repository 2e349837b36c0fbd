"""What was read of a cluster's studies, in a folder of the local home that is none of its studies: a home of its own,
`.clusters/HOST_PORT`, in which everything that reads a study works. A head that has gone leaves what was read there.
"""

import json
import os
import re
import shutil
from dataclasses import asdict
from urllib.parse import urlsplit

from study.cluster.download import Wish
from study.cluster.head import Head
from study.cluster.job import Job
from study.cluster.reading import Reading
from study.errors import UserError, of_disk
from study.files import below, write_whole
from study.home.fetched import Fetched, fetched
from study.home.folder import Home, StudyFolder, write_format
from study.home.lease import Holder
from study.home.ledger import lease_file

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
            UserError: see `study.cluster.reading.Reading.bring`; or the local home cannot be written.
        """
        try:
            self.home.path.mkdir(parents=True, exist_ok=True)
            write_format(self.home.path)
            found, _ = Reading(head, name, drivers, self.known(name)).bring(
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
