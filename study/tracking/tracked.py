"""What MLflow has of a study: how far its ledger is there, kept beside it, and files that were made anew."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from study.files import read_json, write_whole
from study.home.folder import Home, StudyFolder, path_of
from study.tracking.connection import error_line, open_mlflow, public

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
        noted = read_json(path, cls)
        return noted if noted and noted.uri == uri else cls(uri)

    def save(self, path: Path) -> None:
        """Write it in one step."""
        write_whole(path, json.dumps(vars(self)))


# Files of a study that were made anew after it ended, into MLflow.

TIMEOUT = 5
"""Seconds that a request may take here, where someone waits."""


def refresh(home: Home, folder: StudyFolder, files: Mapping[Path, str | None]) -> str | None:
    """Log files as artifacts of the study's run in place of those that it has. Others may be writing to that run.

    Args:
        files: each with the artifact folder that it goes to (None: the topmost).

    Returns:
        What went wrong, else None; nothing is done for a study that MLflow does not have.
    """
    progress = Tracked.load(folder.tracking_file, home.tracking_uri)
    if STUDY not in progress.runs:
        return None
    try:
        client = open_mlflow(home, TIMEOUT)
        for path, artifact_folder in files.items():
            client.log_artifact(progress.runs[STUDY], str(path), artifact_folder)
    except Exception as error:  # whatever MLflow, its database or the network raise
        return error_line(error, home.tracking_uri)
    return None
