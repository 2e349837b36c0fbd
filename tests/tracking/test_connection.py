"""Which MLflow servers are spoken to."""

import subprocess
import sys
import time
from pathlib import Path

import pytest
from contract import contract
from helpers import ROOT
from mlflow.exceptions import MlflowException
from servers import closed_port

from study.errors import UserError
from study.tracking.connection import (
    DATABASE_SCHEMES,
    OTHER_CREDENTIAL_VARIABLES,
    SERVER_SCHEMES,
    connect_to_mlflow,
    format_mlflow_error,
    require_server_password,
)


@pytest.fixture(autouse=True)
def _no_password(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MLFLOW_TRACKING_USERNAME", "MLFLOW_TRACKING_PASSWORD", *OTHER_CREDENTIAL_VARIABLES):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    "uri", ["sqlite:///runs.db", "http://127.0.0.1:5000", "http://localhost", "http://[::1]:5000", "databricks"]
)
def test_what_nobody_else_reaches_needs_no_password(uri: str) -> None:
    require_server_password(uri)


@pytest.mark.parametrize(
    ("password", "told"),
    [
        (None, "no password is given"),
        ("", "no password is given"),
        ("password1234", "MLflow's default is given"),
        ("elevenchars", "one of 11 characters is given"),
    ],
)
def test_a_server_elsewhere_needs_a_good_password(
    monkeypatch: pytest.MonkeyPatch, password: str | None, told: str
) -> None:
    if password is not None:
        monkeypatch.setenv("MLFLOW_TRACKING_USERNAME", "ada")
        monkeypatch.setenv("MLFLOW_TRACKING_PASSWORD", password)
    with pytest.raises(UserError, match=told) as refused:
        require_server_password("http://ada@mlflow.example.org:5000")
    assert "MLFLOW_TRACKING_URI: http://mlflow.example.org:5000: " in str(refused.value)
    monkeypatch.setenv("MLFLOW_TRACKING_USERNAME", "ada")
    monkeypatch.setenv("MLFLOW_TRACKING_PASSWORD", "twelve chars")
    require_server_password("http://mlflow.example.org:5000")


@pytest.mark.parametrize("name", OTHER_CREDENTIAL_VARIABLES)
def test_there_are_other_ways_to_show_who_one_is(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, "x")
    require_server_password("https://mlflow.example.org")


@pytest.mark.slow
def test_a_server_that_cannot_be_reached_is_told_in_words() -> None:
    """What MLflow raises of it is a line of 300 letters that begins with HTTPConnectionPool."""
    with closed_port() as port:
        refused, unknown = f"http://ada:secret@127.0.0.1:{port}", "http://no-such-host.invalid:5000"
        for uri, told in (
            (refused, f"nothing listens at http://127.0.0.1:{port}"),
            (unknown, f"there is no such host as that of {unknown}"),
        ):
            with pytest.raises(MlflowException) as failed:
                connect_to_mlflow(uri, timeout=5)
            assert format_mlflow_error(failed.value, uri) == told


@pytest.mark.slow
def test_a_database_that_a_killed_process_began_is_not_there(tmp_path: Path) -> None:
    """MLflow would say of it that its tables exist already, each time."""
    database = tmp_path / "mlflow.db"
    code = "import sys; from study.tracking.connection import connect_to_mlflow; connect_to_mlflow(sys.argv[1])"
    process = subprocess.Popen([sys.executable, "-c", code, f"sqlite:///{database}"], cwd=ROOT)
    while not any(path.stat().st_size for path in tmp_path.iterdir()):
        assert process.poll() is None
        time.sleep(0.001)
    process.kill()
    process.wait()
    assert not database.exists()
    assert connect_to_mlflow(f"sqlite:///{database}").search_experiments()
    assert database.exists()


@pytest.mark.parametrize("uri", ["file:", "file:///tmp/runs", "mlruns", "/tmp/runs", "ftp://host/x", "htp://host:5000"])
def test_where_mlflow_would_keep_nothing_is_refused_before(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MLFLOW_ALLOW_FILE_STORE", raising=False)
    with pytest.raises(UserError, match=r"MLFLOW_TRACKING_URI: .* Allowed: http://HOST:PORT, sqlite:"):
        require_server_password(uri)
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    if not uri.startswith(("ftp", "htp")):
        require_server_password(uri)


@pytest.mark.parametrize(
    "uri", ["sqlite:////a/b.db", "sqlite+pysqlite:////a", "postgresql+psycopg2://h/d", "databricks"]
)
def test_the_others_are_not(uri: str) -> None:
    require_server_password(uri)


def test_mlflow_knows_these_kinds_of_address() -> None:
    with contract("mlflow", "the schemes of its tracking stores", "MLFLOW_TRACKING_URI, refused before a study begins"):
        from mlflow.tracking._tracking_service.utils import _tracking_store_registry

        assert {*SERVER_SCHEMES, *DATABASE_SCHEMES, "", "file"} <= set(_tracking_store_registry._registry)
