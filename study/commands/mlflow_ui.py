"""What `study ui` does: serve MLflow's pages on the home's own database."""

import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import closing, suppress
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException

from study.errors import UserError
from study.home.folder import Home
from study.text import print_text, redact_credentials
from study.tracking.connection import prepare_mlflow_database
from study.tracking.mlflow_urls import (
    RESULTS_VIEW_KEY,
    experiments_page_url,
    is_mlflow_server,
    trials_page_url,
    view_url,
)
from study.tracking.tracking_state import TrackingState
from study.upstream.environment import ProcessKind, variables_of_processes


def serve_ui(home: Home, port: int) -> None:
    """Serve MLflow's UI on the home's own database until interrupted.

    Raises:
        UserError: MLflow is another server, the home has nothing to show, its database is damaged, or the port is
            taken.
    """
    if not home.uses_own_mlflow:
        uri = home.tracking_uri
        instead = f"it is {redact_credentials(uri)}"
        if is_mlflow_server(uri):
            instead = f"open {experiments_page_url(uri)} in a browser"
        raise UserError(f"MLFLOW_TRACKING_URI is set: {instead}; without it, study ui serves this home's own database")
    if not home.database_file.exists():
        raise UserError(f"{home.path}: nothing to show yet; a first study: study run quickstart")
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            raise UserError(f"--port {port}: taken on this machine; another one: study ui --port {port + 1}") from None
    prepare_mlflow_database(home)
    uri = f"http://127.0.0.1:{port}"
    print_text("starting MLflow's server", sys.stderr)
    database = home.tracking_uri
    command = [sys.executable, "-m", "mlflow", "server"]
    command += ["--backend-store-uri", database, "--registry-store-uri", database]
    artifacts = home.artifacts_folder.as_uri()  # also where `study cluster up` made the experiments of this home
    command += ["--default-artifact-root", artifacts, "--artifacts-destination", artifacts]
    command += ["--host", "127.0.0.1", "--port", str(port), "--workers", "1", "--uvicorn-opts", "--log-level warning"]
    environment = os.environ | variables_of_processes(ProcessKind.MLFLOW_SERVER) | {"PYTHONWARNINGS": "ignore"}
    server = subprocess.Popen(command, env=environment, start_new_session=True)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        while server.poll() is None and not _is_server_up(port):
            time.sleep(0.2)
        if server.returncode is None:
            page = f"MLflow UI of {home.path}: {experiments_page_url(uri)}"
            print_text("\n".join([page, *_newest_study_lines(home, uri), "Ctrl-C ends it"]))
        status = server.wait()
    except KeyboardInterrupt:
        status = 130
    finally:
        with suppress(ProcessLookupError):
            os.killpg(server.pid, signal.SIGTERM)  # the server has helpers of its own
    raise SystemExit(status)


def _newest_study_lines(home: Home, server: str) -> list[str]:
    """Return lines with addresses of the newest search, its results first, and of the newest final training."""
    searches: list[str] = []
    finals: list[str] = []
    for folder in reversed(home.list_studies()):
        if experiment := TrackingState.load(folder.tracking_state_file, home.tracking_uri).experiment:
            with suppress(UserError):  # its study file is damaged, or of another version
                is_final = folder.load_spec().final_seeds is not None
                trials = f"{folder.name}: {server}/{trials_page_url(experiment, is_final)}"
                results = f"results of {folder.name}: {server}/{view_url(experiment, RESULTS_VIEW_KEY)}"
                if is_final:
                    finals = finals or [f"final training {trials}"]
                else:
                    searches = searches or [results, f"search of {trials}"]
        if searches and finals:
            break
    return searches + finals


def _is_server_up(port: int) -> bool:
    """Return whether MLflow's server on this machine answers at a port."""
    try:
        with closing(HTTPConnection("127.0.0.1", port, timeout=1)) as connection:  # past any proxy
            connection.request("GET", "/health")
            return connection.getresponse().status == HTTPStatus.OK
    except (OSError, HTTPException):
        return False
