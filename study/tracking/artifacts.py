"""Files of a study that were made anew after it ended, into MLflow."""

from collections.abc import Mapping
from pathlib import Path

from study.home.folder import Home, StudyFolder
from study.tracking.connection import error_line, open_mlflow
from study.tracking.tracked import STUDY, Tracked

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
