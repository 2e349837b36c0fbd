"""The MLflow of the ready files, started as Compose starts it, on a real PostgreSQL."""

import os
import re
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from cluster_files import CLUSTER, documents
from mlflow import MlflowClient
from mlflow.exceptions import MlflowException
from mlflow.server.auth.client import AuthServiceClient
from routes import mlflow_lets_in
from servers import Postgres, free_port

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

PASSWORD = "secret of this test"


@contextmanager
def running(url: str, log: Path, *command: str, **environment: str) -> Iterator[None]:
    """A server, from when it answers; killed in the end, helpers and all."""
    with log.open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, *command], env=environment, stdout=out, stderr=out, start_new_session=True
        )
    try:
        deadline = time.monotonic() + 200
        while not answers(url):
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.5)
        yield
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, 9)
        process.wait()


def answers(url: str) -> bool:
    """Whether a server answers well there."""
    with suppress(OSError), urllib.request.urlopen(url, timeout=30) as answer:
        return bool(answer.status == 200)
    return False


@pytest.fixture(scope="module")
def environment() -> Iterator[dict[str, str]]:
    """What the compose file gives its MLflow, with this machine's addresses, one password for all, and one worker."""
    (document,) = documents(CLUSTER / "compose" / "compose.yaml")
    given = document["services"]["mlflow"]["environment"]
    given = {name: re.sub(r"\$\{.*\}", PASSWORD, value) for name, value in given.items()}
    postgres, port = Postgres(), free_port()
    address = postgres.address
    here = {
        "PGHOST": address[0],
        "PGPORT": str(address[1]),
        "MLFLOW_HOST": "127.0.0.1",
        "MLFLOW_PORT": str(port),
        "MLFLOW_WORKERS": "1",  # each takes seconds to start
        "PATH": os.environ["PATH"],
    }
    assert set(here) - set(given) == {"PGPORT", "MLFLOW_PORT", "PATH"}
    yield given | here
    postgres.remove()


def test_mlflow_wants_a_password_and_keeps_the_runs_and_artifacts_of_who_is_no_administrator(
    environment: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = f"http://127.0.0.1:{environment['MLFLOW_PORT']}"
    script, folder = str(CLUSTER / "mlflow_server.py"), tmp_path / "artifacts"
    environment = environment | {"MLFLOW_ARTIFACTS_DESTINATION": str(folder)}
    with running(f"{server}/health", tmp_path / "log", script, **environment):
        assert mlflow_lets_in(server, tmp_path) == []
        monkeypatch.setenv("MLFLOW_TRACKING_USERNAME", environment["MLFLOW_TRACKING_USERNAME"])
        monkeypatch.setenv("MLFLOW_TRACKING_PASSWORD", PASSWORD)
        client = MlflowClient(server)
        run = client.create_run(client.create_experiment("e")).info.run_id
        client.log_metric(run, "val/accuracy", 0.5)
        client.log_text(run, "text", "file.txt")
        client.create_registered_model("m")
        with pytest.raises(MlflowException, match="Permission denied"):
            AuthServiceClient(server).create_user("another", PASSWORD)
    environment |= {"MLFLOW_TRACKING_PASSWORD": f"new {PASSWORD}"}
    with running(f"{server}/health", tmp_path / "log", script, **environment):  # the tables and the user are there
        monkeypatch.setenv("MLFLOW_TRACKING_PASSWORD", f"new {PASSWORD}")
        assert MlflowClient(server).get_run(run).data.metrics == {"val/accuracy": 0.5}
    assert [file.read_text() for file in folder.rglob("file.txt")] == ["text"]
    assert PASSWORD not in (tmp_path / "log").read_text()


@pytest.mark.parametrize("name", ["MLFLOW_AUTH_ADMIN_PASSWORD", "PGPASSWORD"])
def test_mlflow_without_a_secret_does_not_start(name: str, environment: dict[str, str]) -> None:
    done = subprocess.run(
        [sys.executable, str(CLUSTER / "mlflow_server.py")],
        env=environment | {name: ""},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.returncode, done.stderr) == (1, f"not set: {name}\n")
