"""How far a ledger is in MLflow, kept beside it."""

import json
from dataclasses import dataclass, field
from pathlib import Path

from study.files import write_whole
from study.home.folder import path_of
from study.tracking.connection import public

STUDY = "study"
"""Key of the study's own run; those of its trials are their numbers, as text."""


@dataclass
class Tracked:
    """The part of a ledger that MLflow has.

    Attributes:
        uri: which MLflow, without a password; of the home's own database the file's name, so that a home that is moved
            or copied goes on with the runs that are in it.
        offset: bytes of the ledger.
        last: check value of the line that ends there.
        experiment: id of the experiment that the runs are in.
        runs: run id by key.
        former: run id by key, of runs that MLflow lost.
        epochs: last epoch that the run of each trial holds which may run again.
        open: keys of the trials whose runs are not terminated.
        results: the last value of each metric of the study's own run.
        marked: keys of the runs that have a tag which another configuration may get, by tag.
        attached: whether the study's files are artifacts of its run.
    """

    uri: str = ""
    offset: int = 0
    last: str = ""
    experiment: str = ""
    runs: dict[str, str] = field(default_factory=dict)
    former: dict[str, str] = field(default_factory=dict)
    epochs: dict[str, int] = field(default_factory=dict)
    open: list[str] = field(default_factory=list)
    results: dict[str, float] = field(default_factory=dict)
    marked: dict[str, list[str]] = field(default_factory=dict)
    attached: bool = False

    @classmethod
    def load(cls, path: Path, uri: str) -> "Tracked":
        """Return what this MLflow has: nothing, where the file tells of another one, is missing or cannot be read."""
        database = path_of(uri)
        uri = database.name if database and database.parent == path.parent.parent else public(uri)
        try:
            noted = cls(**json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            return cls(uri)
        return noted if noted.uri == uri and _is_sound(noted) else cls(uri)

    def save(self, path: Path) -> None:
        """Write it in one step."""
        write_whole(path, json.dumps(vars(self)))


def _is_sound(noted: Tracked) -> bool:
    """Return whether everything is of the kind that it should be: the file may have been edited."""
    kinds = {name: type(value) for name, value in vars(Tracked()).items()}
    return all(type(value) is kinds[name] for name, value in vars(noted).items())
