"""Where a data set's files are on disk, and where they come from."""

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

from study import writable_folders
from study.errors import UserError


def data_roots() -> list[Path]:
    """List the folders to look for files in; each is used if those before it cannot be written.

    They are `STUDY_DATA`, `~/.cache/study`, and `.cache/study` in the home of studies.
    """
    given, own = os.environ.get("STUDY_DATA"), Path(writable_folders.CACHE_FOLDER_NAME, "study")
    usual = [Path(os.path.expanduser("~"), own), writable_folders.study_home_path() / own]
    return list(dict.fromkeys([*([Path(os.path.expanduser(given))] if given else []), *usual]))


def data_root() -> Path:
    """Return the folder of all data sets: `STUDY_DATA`, else the first of `data_roots` that is there or can be made."""
    there = data_roots()
    usable = (place for place in there if os.path.isdir(place) or not writable_folders.why_unwritable(place))
    return there[0] if os.environ.get("STUDY_DATA") else next(usable, there[0])


def writable_data_folder(folder: str = "") -> Path:
    """Return this folder in the first of the roots that can be written, created if necessary.

    Raises:
        UserError: none of them can be written; says why and what to do.
    """
    reasons = []
    for parent in data_roots():
        place = parent / folder
        try:
            place.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=place):
                return place
        except OSError as error:
            reasons.append(f"{place}: {error.strerror}")
    raise UserError(f"no folder for data can be written ({'; '.join(reasons)}). Set STUDY_DATA to one that can")


@dataclass(frozen=True)
class Source:
    """One file or folder that a data set is made from.

    Attributes:
        path: under `data_root()`, as `MNIST/raw/train-images-idx3-ubyte.gz`.
        url: where `study data prepare` gets it (or its archive); None: its terms require that the user gets it.
        sha256, md5: of the file (or archive), sha256 perhaps its first digits; None if no official one is known.
        note: for the user: where to get it and in which form, in a sentence.
        archive: under `data_root()`: a .tar, .tar.gz or .zip that contains `path`.
        command: what the user types to get it.
    """

    path: str
    url: str | None = None
    sha256: str | None = None
    note: str = ""
    md5: str | None = None
    archive: str | None = None
    command: str = "study data prepare NAME"

    def find(self) -> Path:
        """Return its path.

        Raises:
            UserError: it is not there.
        """
        path = self.path_or_none()
        if path is None:
            raise UserError(self.missing_message())
        return path

    def path_or_none(self) -> Path | None:
        """Return its path, or None if it is not there."""
        return _first_existing_path(self.path)

    def existing_archive(self) -> Path | None:
        """Return the path of its archive, or None if there is none."""
        return _first_existing_path(self.archive) if self.archive else None

    def missing_message(self) -> str:
        """Write the message that it is missing, with the ways to get it."""
        ways = []
        if self.url:
            ways = [
                f"`{self.command}` downloads it",
                f"without a network, put the file of {self.url} at {data_root() / (self.archive or self.path)}",
            ]
        elif self.archive:
            ways = [f"put its archive at {data_root() / self.archive}"]
        if self.archive:
            ways.append(f"`{self.command}` unpacks it")
        instructions = "; ".join(ways)
        sentences = (f"{data_root() / self.path}: not found.", instructions and f"{instructions}.", self.note)
        return " ".join(sentence for sentence in sentences if sentence)


def _first_existing_path(path: str) -> Path | None:
    return next((parent / path for parent in data_roots() if os.path.exists(parent / path)), None)
