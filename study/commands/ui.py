"""The MLflow UI on a home's own database, on loopback."""

import os
import signal
import socket
import subprocess
import sys
from contextlib import suppress

from study.errors import UserError
from study.home.folder import Home
from study.text import tell
from study.tracking.connection import check_database, public
from study.tracking.pages import experiments_page, is_server
from study.upstream.environment import Part, variables


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
