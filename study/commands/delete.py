"""Removing a study whole."""

import shutil
import uuid

from study.home.folder import Home
from study.home.ledger import Ledger
from study.home.record import StudyRecord
from study.tracking.remove import remove


def told(home: Home, name: str) -> str:
    """What would be removed.

    Raises:
        UserError: there is no such study.
    """
    folder = home.find(name)
    record = StudyRecord.load(folder.ledger_file)
    return (
        f"{folder.path}: {record.state}, {len(record.trials)} trial(s), and their runs in MLflow ({home.tracking_uri})."
    )


def delete(home: Home, name: str) -> None:
    """Remove a study: its MLflow runs and their artifacts, then its folder.

    Where this is cut off, what is left is still a study, and it can be deleted again.

    Raises:
        UserError: there is no such study, it runs, or MLflow does not answer.
    """
    folder = home.find(name)
    ledger = Ledger(folder.ledger_file)  # refuses while the study runs
    try:
        remove(home, folder)
        gone = folder.path.with_name(f".{name}-deleted-{uuid.uuid4().hex[:8]}")
        folder.path.rename(gone)  # from here on it is no study any more, whatever happens to the removal
    finally:
        ledger.close()
    shutil.rmtree(gone)
