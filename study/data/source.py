"""Where the files of a data set lie, and where they come from."""

import os
from dataclasses import dataclass
from pathlib import Path

from study.errors import UserError


def root() -> Path:
    """The folder of all data sets: `STUDY_DATA`, or `~/.cache/study`."""
    return Path(os.environ.get("STUDY_DATA") or "~/.cache/study").expanduser()


@dataclass(frozen=True)
class Source:
    """One file or folder that a data set is made from.

    Attributes:
        path: under `root()`, as `MNIST/raw/train-images-idx3-ubyte.gz`.
        url: where `study data prepare` gets it; None: only the user can, as its terms ask.
        sha256: of the file; None where no official one is known.
        note: for the user: where to get it and in which form, in a sentence.
    """

    path: str
    url: str | None = None
    sha256: str | None = None
    note: str = ""

    def find(self) -> Path:
        """Where it is.

        Raises:
            UserError: it is not there.
        """
        place = root() / self.path
        if not place.exists():
            raise UserError(f"{place}: not found. {self.note}".rstrip())
        return place
