"""MLflow's UI: addresses of its pages, in its mode for training (it opens in another, for language models), and the UI
on a home's own database, served on loopback.

The UI reads the mode behind the `#`. `tests/tracking/test_pages.py` says what of MLflow that rests on.
"""

import os
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from urllib.parse import quote

from study.address import MODE, mlflow_page
from study.errors import UserError
from study.home.folder import Home, StudyFolder
from study.text import tell
from study.tracking.connection import check_database, public
from study.tracking.tracked import STUDY, Tracked
from study.upstream.environment import Part, variables


def experiments_page(uri: str) -> str:
    """The list of experiments of a server, without a password that may be in its address."""
    return mlflow_page(public(uri))


def run_page(uri: str, experiment: str, run_id: str, artifact: str = "") -> str:
    """A run, or one of its artifacts, as `report/report.html`.

    Args:
        uri: of the server; empty: the server that the link itself is read on.
    """
    server = f"{public(uri).rstrip('/')}/" if uri else ""
    page = f"{server}#/experiments/{experiment}/runs/{run_id}"
    return f"{page}{f'/artifacts/{quote(artifact)}' if artifact else ''}?{MODE}"


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


def serve(home: Home, port: int) -> None:
    """Serve until interrupted.

    Raises:
        UserError: MLflow is another server, the home has nothing to show, its database is damaged, or the port is
            taken.
    """
    if not home.owns_tracking:
        uri = home.tracking_uri
        instead = f"open {experiments_page(uri)} in a browser" if is_server(uri) else f"it is {public(uri)}"
        raise UserError(f"MLFLOW_TRACKING_URI is set: {instead}; without it, study ui serves this home's own database")
    if not home.database.exists():
        raise UserError(f"{home.path}: nothing to show yet; a first study: study run quickstart")
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            raise UserError(f"--port {port}: taken on this machine; another one: study ui --port {port + 1}") from None
    check_database(home)
    tell(f"MLflow UI of {home.path}: {experiments_page(f'http://127.0.0.1:{port}')} (Ctrl-C ends it)")
    command = [sys.executable, "-m", "mlflow", "server", "--backend-store-uri", home.tracking_uri]
    artifacts = home.artifacts.as_uri()  # also of experiments that the MLflow of `study cluster up` made in this home
    command += ["--default-artifact-root", artifacts, "--artifacts-destination", artifacts]
    command += ["--host", "127.0.0.1", "--port", str(port), "--workers", "1"]
    environment = os.environ | variables(Part.MLFLOW_SERVER)
    server = subprocess.Popen(command, env=environment, start_new_session=True)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        status = server.wait()
    except KeyboardInterrupt:
        status = 130
    finally:
        with suppress(ProcessLookupError):
            os.killpg(server.pid, signal.SIGTERM)  # the server has helpers of its own
    raise SystemExit(status)
