"""Where a study folder came from that was brought from a cluster: a file in it."""

import json
from dataclasses import asdict, dataclass
from datetime import UTC
from pathlib import Path

from study.errors import UserError
from study.files import read_json, write_whole
from study.home.folder import StudyFolder
from study.text import moment, typed


@dataclass(frozen=True)
class Fetched:
    """The origin of a study folder.

    Attributes:
        address: of the cluster's head.
        name: the study's there.
        job, state: its newest driver, and how that was; empty: the head knew of none.
        at: when it was brought, in seconds since the epoch.
        host, node, folder: where its folder lies on the cluster: the machine, Ray's id of it, the path there.
        python: the interpreter of its drivers.
        events: how many events were brought.
    """

    address: str
    name: str
    job: str
    state: str
    at: float
    host: str
    node: str
    folder: str
    python: str
    events: int

    @property
    def ran(self) -> bool:
        """Whether a driver was to be expected to go on with it there."""
        return self.state in ("pending", "waiting", "running")

    @property
    def when(self) -> str:
        return moment(self.at, UTC)

    def command(self, local: str) -> str:
        """Return what brings the rest of it, where it is called `local` here."""
        renamed = () if local == self.name else ("--name", local)
        return typed("fetch", self.name, "--address", self.address, *renamed)

    def words(self, local: str) -> str:
        """A line for people."""
        ran = ", while it ran there" if self.ran else ""
        return f"from {self.address} on {self.when}{ran}. What is new there: {self.command(local)}"

    def save(self, folder: Path) -> None:
        write_whole(file(folder), json.dumps(asdict(self), indent=2) + "\n")


def file(folder: Path) -> Path:
    """The file in which a study's folder says where it came from."""
    return folder / "fetched.json"


def fetched(folder: StudyFolder) -> Fetched | None:
    """Return where a study came from; None: it was made here.

    Raises:
        UserError: the file is damaged.
    """
    path = file(folder.path)
    found = read_json(path, Fetched)
    if found is None and path.exists():
        raise UserError(f"{path}: damaged. Without it the study is taken for one that was made here")
    return found
