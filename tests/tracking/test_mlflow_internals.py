"""Everything of MLflow that this package uses and that MLflow does not promise to keep, tried on a database of its own.

What fails here is to be mended in `study/tracking`: `database.py` or `connection.py`;
the message says who needs it.
"""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from contract import contract
from helpers import ROOT
from mlflow import MlflowClient
from mlflow.entities import Metric, Param, RunTag

from study.home.folder import Home
from study.tracking.connection import EXPERIMENTS, LOCATIONS, check_server, connect
from study.tracking.database import close_connections

MOVED = "relocate in study/tracking/connection.py: artifacts of a home that was moved"
WRITER = "Database.write in study/tracking/database.py: every study's runs in its own home"
REMOVER = "study delete"

TAG = {"run_uuid": "VARCHAR(32)", "key": "VARCHAR(250)", "value": "VARCHAR(8000)"}
METRIC = {
    "run_uuid": "VARCHAR(32)",
    "key": "VARCHAR(250)",
    "value": "FLOAT",
    "timestamp": "BIGINT",
    "step": "BIGINT",
    "is_nan": "BOOLEAN",
}

COLUMNS = {
    "runs": {
        "run_uuid": "VARCHAR(32)",
        "name": "VARCHAR(250)",
        "experiment_id": "INTEGER",
        "artifact_uri": "VARCHAR(200)",
        "start_time": "BIGINT",
        "end_time": "BIGINT",
        "status": "VARCHAR(9)",
        "user_id": "VARCHAR(256)",
        "lifecycle_stage": "VARCHAR(20)",
        "source_type": "VARCHAR(20)",
        "source_name": "VARCHAR(500)",
        "source_version": "VARCHAR(50)",
        "entry_point_name": "VARCHAR(50)",
    },
    "tags": TAG,
    "params": TAG,
    "metrics": METRIC,
    "latest_metrics": METRIC,
}
"""What is written, by table."""

NOT_WRITTEN = {"runs": {"deleted_time"}}
"""What MLflow has besides; it may be empty."""

KEYS = {
    "runs": {"run_uuid"},
    "tags": {"key", "run_uuid"},
    "params": {"key", "run_uuid"},
    "metrics": {"key", "timestamp", "step", "run_uuid", "value", "is_nan"},
    "latest_metrics": {"key", "run_uuid"},
}
"""Primary keys: by them a row that is there already is told from a new one."""


@pytest.fixture
def database(home: Home) -> Iterator[sqlite3.Connection]:
    """That of a home, as MLflow made it."""
    with closing(sqlite3.connect(home.database)) as connection:
        yield connection


def columns(database: sqlite3.Connection, table: str) -> list[tuple[str, str, bool, Any, bool]]:
    """Name, type, whether it must be given, its default, whether it is of the primary key."""
    rows = database.execute(f"PRAGMA table_info({table})")
    return [(name, kind, bool(must), default, bool(key)) for _, name, kind, must, default, key in rows]


def counts(database: sqlite3.Connection) -> dict[str, int]:
    """Rows of each table."""
    names = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    return {name: database.execute(f'SELECT count(*) FROM "{name}"').fetchone()[0] for name in names}


@pytest.mark.parametrize("table", COLUMNS)
def test_the_tables_have_the_columns_that_are_written(database: sqlite3.Connection, table: str) -> None:
    with contract("mlflow", f"columns and primary key of the table {table}", WRITER):
        there = columns(database, table)
        known = COLUMNS[table]
        assert {name: kind for name, kind, *_ in there if name in known} == known
        assert {name for name, *_ in there} - known.keys() == NOT_WRITTEN.get(table, set()), "a column is new"
        assert {name for name, *_, key in there if key} == KEYS[table]
        unknown = [one for one in there if one[0] not in known]
        assert [name for name, _, must, default, _ in unknown if must and default is None] == []


def test_a_run_is_in_these_tables_and_no_others(home: Home, database: sqlite3.Connection) -> None:
    """What the client writes for a run with everything that a study logs is what has to be written without it."""
    client = connect(home.tracking_uri)
    experiment = client.create_experiment("one")
    before = counts(database)
    run_id = a_run(client, experiment)
    with contract("mlflow", f"a run's rows are in {', '.join(COLUMNS)}", WRITER):
        after = counts(database)
        assert {name for name in after if after[name] != before.get(name)} == COLUMNS.keys()
    with contract("mlflow", "what a client gives a run that it makes", WRITER):
        from study.tracking.database import NEW_RUN

        row = dict(zip(NEW_RUN, database.execute(f"SELECT {', '.join(NEW_RUN)} FROM runs").fetchone(), strict=True))
        assert row == NEW_RUN | {"user_id": "ada"}
        where = "SELECT artifact_uri FROM runs"
        location = client.get_experiment(experiment).artifact_location
        assert database.execute(where).fetchone() == (f"{location}/{run_id}/artifacts",)


def a_run(client: MlflowClient, experiment: str) -> str:
    """A run with a tag, a parameter and a metric, ended."""
    run_id = str(client.create_run(experiment, tags={"mlflow.user": "ada"}, run_name="by the client").info.run_id)
    client.log_batch(run_id, [Metric("m", 0.5, 1, 1)], [Param("p", "1")], [RunTag("t", "1")])
    client.set_terminated(run_id)
    return run_id


def test_where_artifacts_are_is_in_these_columns_and_no_others(home: Home, database: sqlite3.Connection) -> None:
    """And what tells an experiment with a study's runs."""
    client = connect(home.tracking_uri)
    experiment = client.create_experiment("one", (home.artifacts / "one").as_uri())
    run_id = a_run(client, experiment)
    model = client.create_logged_model(experiment, "model", run_id)
    client.create_registered_model("served")
    client.create_model_version("served", model.artifact_location, run_id, model_id=model.model_id)
    with contract("mlflow", f"addresses of artifacts in {LOCATIONS}", MOVED):
        found = [
            (table, name)
            for (table,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
            for name, *_ in columns(database, table)
            if database.execute(
                f'SELECT 1 FROM "{table}" WHERE instr("{name}", ?)', (home.artifacts.as_uri(),)
            ).fetchone()
        ]
        assert sorted(found) == sorted(LOCATIONS)
        assert database.execute(EXPERIMENTS).fetchall() == []
        client.set_tag(run_id, "study.id", "1")
        assert database.execute(EXPERIMENTS).fetchall() == [("one", f"{home.artifacts.as_uri()}/one")]


def test_a_process_keeps_its_connections_to_a_database_where_they_can_be_closed(home: Home) -> None:
    with contract("mlflow", "SqlAlchemyStore._engine_map, by address", WRITER):
        from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore

        connect(home.tracking_uri)
        engine = SqlAlchemyStore._engine_map[home.tracking_uri]
        home.database.rename(home.path / "moved")
        close_connections(home.tracking_uri)
        assert engine is SqlAlchemyStore._engine_map[home.tracking_uri]
        with engine.connect() as connection:
            assert connection.exec_driver_sql("SELECT count(*) FROM sqlite_master").scalar() == 0, "a new file"


def test_what_is_marked_as_deleted_can_be_removed_for_good(home: Home, database: sqlite3.Connection) -> None:
    from study.tracking.database import Database

    client = connect(home.tracking_uri)
    before = counts(database)
    experiment = client.create_experiment("one")
    run_id = a_run(client, experiment)
    model_id = client.create_logged_model(experiment, "model", run_id, tags={"t": "1"}).model_id
    client.delete_logged_model(model_id)
    client.delete_run(run_id)
    tables = Database(client, home)
    with contract("mlflow", "SqlAlchemyStore._hard_delete_{logged_model,run,experiment}(id)", REMOVER):
        tables.purge([model_id], [run_id])
        client.delete_experiment(experiment)
        tables.purge(experiment=experiment)
        assert counts(database) == before


def test_the_password_is_the_one_that_the_client_would_send(monkeypatch: pytest.MonkeyPatch) -> None:
    with contract("mlflow", "read_mlflow_creds() with its password", "check_server: no server without a password"):
        from mlflow.utils.credentials import read_mlflow_creds

        monkeypatch.setenv("MLFLOW_TRACKING_USERNAME", "ada")
        monkeypatch.setenv("MLFLOW_TRACKING_PASSWORD", "a long enough password")
        assert read_mlflow_creds().password == "a long enough password"
        check_server("http://mlflow.example.org")


def test_no_other_module_touches_what_mlflow_does_not_promise() -> None:
    """Its tables, their models and their database in two modules; its helpers in three."""
    tables = re.compile(r"sqlalchemy|sqlite3|alembic\.|mlflow\.store|dbmodels|_hard_delete")
    helpers = re.compile(r"mlflow\.utils")
    found: dict[str, set[str]] = {"tables": set(), "helpers": set()}
    for path in (ROOT / "study").rglob("*.py"):
        text, name = path.read_text(encoding="utf-8"), path.relative_to(ROOT / "study").as_posix()
        if name in ("data/cache.py", "commands/guide.py", "training/features.py"):  # their own databases
            continue
        found["tables"] |= {name} if tables.search(text) else set()
        found["helpers"] |= {name} if helpers.search(text) else set()
    table_modules = {f"tracking/{name}.py" for name in ("connection", "database")}
    helper_modules = {f"tracking/{name}.py" for name in ("connection", "database")}
    assert found == {"tables": table_modules, "helpers": helper_modules}
