"""Addresses of pages of MLflow's UI, in its mode for training; it opens in another, for language models.

The UI reads the mode behind the `#`. `tests/tracking/test_pages.py` says what of MLflow that rests on.
"""

from urllib.parse import quote

from study.address import MODE, mlflow_page
from study.home.folder import Home, StudyFolder
from study.tracking.connection import public
from study.tracking.tracked import STUDY, Tracked


def experiments_page(uri: str) -> str:
    """The list of experiments of a server, without a password that may be in its address."""
    return mlflow_page(public(uri))


def run_page(uri: str, experiment: str, run_id: str, artifact: str = "") -> str:
    """A run, or one of its artifacts, as `report/report.html`.

    Args:
        uri: of the server; empty: the server that the link itself is read on.
    """
    page = f"{_server(uri)}#/experiments/{experiment}/runs/{run_id}"
    return f"{page}{f'/artifacts/{quote(artifact)}' if artifact else ''}?{MODE}"


def _server(uri: str) -> str:
    return f"{public(uri).rstrip('/')}/" if uri else ""


def study_page(home: Home, folder: StudyFolder) -> str | None:
    """The page of a study's own run; None where MLflow is a database, or does not have the study."""
    if not is_server(home.tracking_uri):
        return None
    progress = Tracked.load(folder.tracking_file, home.tracking_uri)
    run_id = progress.runs.get(STUDY)
    return run_page(home.tracking_uri, progress.experiment, run_id) if run_id else None


def is_server(uri: str) -> bool:
    """Return whether an MLflow has pages: a server, not a database."""
    return uri.startswith(("http://", "https://"))
