"""What MLflow has of a study, kept in a file beside its ledger; and the addresses of MLflow's pages."""

import json
import shutil
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from study.files import read_json_or_none, write_atomically
from study.home.folder import Home, StudyFolder, sqlite_path
from study.home.ledger import LedgerTail
from study.text import redact_credentials
from study.tracking.connection import correct_artifact_locations, format_mlflow_error, open_mlflow_of_home

STUDY_RUN_KEY = "study"
"""Key of the study's own run; those of its trials are their numbers, as text."""


@dataclass
class TrackingState:
    """The part of a ledger that MLflow has.

    Attributes:
        uri: which MLflow, without a password; for the home's own database the file's name, so that a home that is moved
            or copied goes on with the runs that are in it.
        offset: bytes of the ledger.
        last: check value of the line that ends there.
        experiment: id of the experiment that the runs are in.
        runs: run id by key.
        former: run id by key, of runs that MLflow lost; in a home of its own their artifacts are still there.
        epochs: last epoch in the run of each trial that may run again.
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
    def load(cls, path: Path, uri: str) -> "TrackingState":
        """Return what this MLflow has: nothing, where the file is about another one, is missing or cannot be read."""
        database = sqlite_path(uri)
        uri = database.name if database and database.parent == path.parent.parent else redact_credentials(uri)
        noted = read_json_or_none(path, cls)
        return noted if noted and noted.uri == uri else cls(uri)

    def save(self, path: Path) -> None:
        """Write the file in one step."""
        write_atomically(path, json.dumps(vars(self)))


def study_id_of_ledger(ledger: Path) -> str:
    """Return the id of a study, from its ledger's first line; empty where that is missing or lost."""
    with suppress(ValueError):  # damage after that line does not matter
        return str(next(LedgerTail(ledger).new_entries(), {}).get("id", ""))
    return ""


ARTIFACT_REQUEST_TIMEOUT_S = 5
"""Seconds that a request may take where someone waits."""


def replace_study_artifacts(home: Home, folder: StudyFolder, files: Mapping[Path, str | None]) -> str | None:
    """Log files as artifacts of the study's run in place of those that it has; others may be writing to that run.

    Args:
        files: each with the artifact folder that it goes to (None: the topmost).

    Returns:
        What went wrong, else None; nothing is done for a study that MLflow does not have.
    """
    progress = TrackingState.load(folder.tracking_state_file, home.tracking_uri)
    if (run_id := progress.runs.get(STUDY_RUN_KEY)) is None:
        return None
    own = next(home.artifacts_folder.glob(f"*/{run_id}/artifacts"), None) if home.uses_own_mlflow else None
    try:
        if own is not None:  # what its client would do, without MLflow, whose import takes seconds
            correct_artifact_locations(home.database_file, home.artifacts_folder)
            for path, artifact_folder in files.items():
                (place := own / (artifact_folder or "")).mkdir(parents=True, exist_ok=True)
                shutil.copy2(path, place)
            return None
        client = open_mlflow_of_home(home, ARTIFACT_REQUEST_TIMEOUT_S)
        for path, artifact_folder in files.items():
            client.log_artifact(run_id, str(path), artifact_folder)
    except Exception as error:  # whatever MLflow, its database or the network raise
        return format_mlflow_error(error, home.tracking_uri)
    return None
