"""What MLflow has of a study, kept in a file beside its ledger; and the addresses of MLflow's pages."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

from study.address import MODE, mlflow_page
from study.errors import UserError
from study.files import read_json, write_whole
from study.home.folder import Home, StudyFolder, path_of
from study.home.ledger import Tail
from study.text import public, tell
from study.tracking.connection import check_database, error_line, open_mlflow, relocate
from study.upstream.environment import ProcessKind, variables

STUDY = "study"
"""Key of the study's own run; those of its trials are their numbers, as text."""

VIEW = "study"
"""Key of the view of an experiment that shows a study's trials."""


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
        database = path_of(uri)
        uri = database.name if database and database.parent == path.parent.parent else public(uri)
        noted = read_json(path, cls)
        return noted if noted and noted.uri == uri else cls(uri)

    def save(self, path: Path) -> None:
        """Write the file in one step."""
        write_whole(path, json.dumps(vars(self)))


def study_id(ledger: Path) -> str:
    """Return the id of a study, from its ledger's first line; empty where that is missing or lost."""
    with suppress(ValueError):  # damage after that line does not matter
        return str(next(Tail(ledger).new(), {}).get("id", ""))
    return ""


TIMEOUT = 5
"""Seconds that a request may take where someone waits."""


def refresh(home: Home, folder: StudyFolder, files: Mapping[Path, str | None]) -> str | None:
    """Log files as artifacts of the study's run in place of those that it has; others may be writing to that run.

    Args:
        files: each with the artifact folder that it goes to (None: the topmost).

    Returns:
        What went wrong, else None; nothing is done for a study that MLflow does not have.
    """
    progress = TrackingState.load(folder.tracking_file, home.tracking_uri)
    if (run_id := progress.runs.get(STUDY)) is None:
        return None
    own = next(home.artifacts.glob(f"*/{run_id}/artifacts"), None) if home.owns_tracking else None
    try:
        if own is not None:  # what its client would do, without MLflow, whose import takes seconds
            relocate(home.database, home.artifacts)
            for path, artifact_folder in files.items():
                (place := own / (artifact_folder or "")).mkdir(parents=True, exist_ok=True)
                shutil.copy2(path, place)
            return None
        client = open_mlflow(home, TIMEOUT)
        for path, artifact_folder in files.items():
            client.log_artifact(run_id, str(path), artifact_folder)
    except Exception as error:  # whatever MLflow, its database or the network raise
        return error_line(error, home.tracking_uri)
    return None


# The UI opens in a mode for language models; addresses ask for that for training, after the `#`.
# `tests/tracking/test_pages.py` says what of MLflow this depends on.


def experiments_page(uri: str) -> str:
    """Return the address of a server's list of experiments, without a password that may be in the server's address."""
    return mlflow_page(public(uri))


def run_page(uri: str, experiment: str, run_id: str, artifact: str = "") -> str:
    """Return the address of a run, or of one of its artifacts, as `report/report.html`.

    Args:
        uri: of the server; empty: the server that the link itself is read on.
    """
    server = f"{public(uri).rstrip('/')}/" if uri else ""
    page = f"{server}#/experiments/{experiment}/runs/{run_id}"
    return f"{page}{f'/artifacts/{quote(artifact)}' if artifact else ''}?{MODE}"


def trials_page(experiment: str) -> str:
    """Return the address, on the server that shows the link, of the trials of an experiment's studies."""
    return f"#/experiments/{experiment}/runs?viewStateShareKey={VIEW}&{MODE}"


def is_server(uri: str) -> bool:
    """Return whether an MLflow has pages: a server, not a database."""
    return uri.startswith(("http://", "https://"))


def serve(home: Home, port: int) -> None:
    """Serve MLflow's UI on the home's own database until interrupted.

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
    page = experiments_page(f"http://127.0.0.1:{port}")
    tell(f"MLflow UI of {home.path}: {page}, in some seconds. Views, Trials shows the trials; Ctrl-C ends it")
    command = [sys.executable, "-m", "mlflow", "server", "--backend-store-uri", home.tracking_uri]
    artifacts = home.artifacts.as_uri()  # also of experiments that the MLflow of `study cluster up` made in this home
    command += ["--default-artifact-root", artifacts, "--artifacts-destination", artifacts]
    command += ["--host", "127.0.0.1", "--port", str(port), "--workers", "1"]
    environment = os.environ | variables(ProcessKind.MLFLOW_SERVER)
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
