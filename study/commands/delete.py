"""Removing a study completely."""

import shutil
import uuid

from study.cluster.log_share import remove_stale_shares_on_this_node
from study.errors import UserError
from study.home.folder import Home
from study.home.ledger import Ledger
from study.home.record import StudyRecord
from study.text import pluralise, redact_credentials
from study.tracking.remove_runs import remove_study_runs


def deletion_sentence(home: Home, name: str) -> str:
    """Return a sentence about what would be removed; for a study that cannot be read, it says why.

    Raises:
        UserError: there is no such study.
    """
    folder = home.find_study(name)
    try:
        record = StudyRecord.load(folder.ledger_file)
        held = f"{folder.path}: {record.state}, {pluralise(len(record.trials), 'trial')}"
    except UserError as error:
        held = f"{folder.path}: unreadable ({error})"
    return f"{held}, and their runs in MLflow ({redact_credentials(home.tracking_uri)})."


def delete_study(home: Home, name: str) -> None:
    """Remove a study: its MLflow runs and their artifacts, then its folder.

    If this is cut off, what is left is still a study and can be deleted again.

    Raises:
        UserError: there is no such study, it is running, MLflow does not answer, or the ledger's first line is lost.
    """
    folder = home.find_study(name)
    ledger = Ledger(folder.ledger_file)  # refuses while the study runs
    try:
        remove_study_runs(home, folder)
        gone = folder.path.with_name(f".{name}-deleted-{uuid.uuid4().hex[:8]}")
        folder.path.rename(gone)  # from here on it is no longer a study, even if the removal fails
    finally:
        ledger.close()
    remove_stale_shares_on_this_node()
    shutil.rmtree(gone)
