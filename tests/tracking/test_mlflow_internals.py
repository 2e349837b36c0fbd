"""Everything of MLflow that this package uses and that MLflow does not promise to keep, tried on a database of its own.

What fails here is to be mended in `study/tracking/connection.py`; the message says who needs it.
"""

import re
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from contract import contract
from helpers import ROOT
from mlflow import MlflowClient
from mlflow.entities import Metric, Param, RunTag

from study.home.folder import Home
from study.tracking.connection import (
    ARTIFACT_LOCATION_COLUMNS,
    STUDY_EXPERIMENTS_QUERY,
    connect_to_mlflow,
    require_server_password,
)

MOVED = "relocate in study/tracking/connection.py: artifacts of a home that was moved"


@pytest.fixture
def database(home: Home) -> Iterator[sqlite3.Connection]:
    """That of a home, as MLflow made it."""
    with closing(sqlite3.connect(home.database_file)) as connection:
        yield connection


def columns(database: sqlite3.Connection, table: str) -> list[tuple[str, str, bool, Any, bool]]:
    """Name, type, whether it must be given, its default, whether it is of the primary key."""
    rows = database.execute(f"PRAGMA table_info({table})")
    return [(name, kind, bool(must), default, bool(key)) for _, name, kind, must, default, key in rows]


def a_run(client: MlflowClient, experiment: str) -> str:
    """A run with a tag, a parameter and a metric, ended."""
    run_id = str(client.create_run(experiment, tags={"mlflow.user": "ada"}, run_name="by the client").info.run_id)
    client.log_batch(run_id, [Metric("m", 0.5, 1, 1)], [Param("p", "1")], [RunTag("t", "1")])
    client.set_terminated(run_id)
    return run_id


def test_where_artifacts_are_is_in_these_columns_and_no_others(home: Home, database: sqlite3.Connection) -> None:
    """And what tells an experiment with a study's runs."""
    client = connect_to_mlflow(home.tracking_uri)
    experiment = client.create_experiment("one", (home.artifacts_folder / "one").as_uri())
    run_id = a_run(client, experiment)
    model = client.create_logged_model(experiment, "model", run_id)
    client.create_registered_model("served")
    client.create_model_version("served", model.artifact_location, run_id, model_id=model.model_id)
    with contract("mlflow", f"addresses of artifacts in {ARTIFACT_LOCATION_COLUMNS}", MOVED):
        found = [
            (table, name)
            for (table,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
            for name, *_ in columns(database, table)
            if database.execute(
                f'SELECT 1 FROM "{table}" WHERE instr("{name}", ?)', (home.artifacts_folder.as_uri(),)
            ).fetchone()
        ]
        assert sorted(found) == sorted(ARTIFACT_LOCATION_COLUMNS)
        assert database.execute(STUDY_EXPERIMENTS_QUERY).fetchall() == []
        client.set_tag(run_id, "study.id", "1")
        assert database.execute(STUDY_EXPERIMENTS_QUERY).fetchall() == [
            ("one", f"{home.artifacts_folder.as_uri()}/one")
        ]


@pytest.mark.slow
def test_a_database_that_was_moved_away_is_not_written_to_and_a_new_one_is(home: Home) -> None:
    """SQLite refuses to write to a file that is not at its path any more, and a connection is kept for a second."""
    client = connect_to_mlflow(home.tracking_uri)
    client.create_experiment("before")
    home.database_file.rename(home.path / "moved")
    with pytest.raises(Exception, match=r"readonly|no such table"):
        client.create_experiment("between")
    home.database_file.unlink(missing_ok=True)
    time.sleep(1.2)
    assert [one.name for one in connect_to_mlflow(home.tracking_uri).search_experiments()] == ["Default"]


def test_the_password_is_the_one_that_the_client_would_send(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with contract("mlflow", "where its client has a password from", "check_server: no server without a password"):
        from mlflow.utils.credentials import read_mlflow_creds

        monkeypatch.setenv("MLFLOW_TRACKING_USERNAME", "ada")
        monkeypatch.setenv("MLFLOW_TRACKING_PASSWORD", "a long enough password")
        assert read_mlflow_creds().password == "a long enough password"
        require_server_password("http://mlflow.example.org")
        monkeypatch.delenv("MLFLOW_TRACKING_PASSWORD")
        monkeypatch.setenv("HOME", str(tmp_path))
        (tmp_path / ".mlflow").mkdir()
        (tmp_path / ".mlflow" / "credentials").write_text("[mlflow]\nmlflow_tracking_password = another long one\n")
        assert read_mlflow_creds().password == "another long one"
        require_server_password("http://mlflow.example.org")


def test_no_other_module_touches_what_mlflow_does_not_promise() -> None:
    """Its tables are touched where a home is moved, and nothing else of its inside anywhere."""
    tables = re.compile(r"sqlalchemy|sqlite3")
    inside = re.compile(r"(from|import) mlflow\.(utils|store|server|tracking\._)|dbmodels|_hard_delete|alembic\.")
    found: dict[str, set[str]] = {"tables": set(), "inside": set()}
    for path in (ROOT / "study").rglob("*.py"):
        text, name = path.read_text(encoding="utf-8"), path.relative_to(ROOT / "study").as_posix()
        # databases of their own, and Optuna's
        if name in ("data/cache.py", "commands/guide.py", "training/features.py", "ranking/optuna_storage.py"):
            continue
        found["tables"] |= {name} if tables.search(text) else set()
        found["inside"] |= {name} if inside.search(text) else set()
    assert found == {"tables": {"tracking/connection.py"}, "inside": set()}
