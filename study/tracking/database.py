"""Runs in the SQLite database of a home of its own. With `connection.py` all that touches MLflow's tables.

MLflow's client takes a transaction and dozens of objects for each thing it writes, tens of milliseconds per trial, all
of it in the driver's process. Here everything that is new goes into MLflow's tables in one transaction: a fiftieth.
Nor can the client delete anything for good.

`tests/tracking/test_mlflow_internals.py` says what MLflow must keep for this, and tries it.
"""

import math
import sys
import uuid
from collections import defaultdict
from collections.abc import Iterable, Mapping
from operator import itemgetter
from pathlib import Path
from typing import Any

from mlflow import MlflowClient
from mlflow.store.tracking.dbmodels.models import (
    SqlLatestMetric,
    SqlMetric,
    SqlParam,
    SqlRun,
    SqlTag,
)
from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore
from mlflow.utils.uri import append_to_uri_path
from sqlalchemy import ColumnElement, Connection, delete, select

from study.home.folder import Home
from study.tracking.connection import relocate
from study.tracking.store import RunUpdate, Store

Rows = dict[type, list[dict[str, Any]]]
"""Rows by the table that they go into."""

LARGEST = sys.float_info.max
"""The number that MLflow puts in the place of infinity."""

NEW_RUN = {
    "source_type": "UNKNOWN",
    "source_name": "",
    "entry_point_name": "",
    "source_version": "",
    "user_id": "unknown",
    "lifecycle_stage": "active",
}
"""The columns that MLflow's client gives a run that it makes."""


class Database(Store):
    """Reads through MLflow's client, writes its tables.

    Args:
        home: whose database it is.
    """

    def __init__(self, client: MlflowClient, home: Home) -> None:
        super().__init__(client)
        self._home, self._tables = home, SqlAlchemyStore(home.tracking_uri, home.artifacts.as_uri())
        self._locations: dict[str, str] = {}

    def lacks(self, runs: Mapping[str, str]) -> bool:
        """Return whether any of these runs is not there; see `Store.lacks`."""
        return not set(runs.values()) <= self._there(SqlRun.lifecycle_stage == "active")

    def attach(self, run_id: str, path: Path, folder: str | None) -> None:
        """Log a file as an artifact of a run, in this home: a machine that sees the home by another path may have
        looked at it meanwhile, and MLflow's tables say where that was."""
        relocate(self._home.database, self._home.artifacts)
        super().attach(run_id, path, folder)

    def write(
        self, experiment: str, changes: list[RunUpdate], runs: dict[str, str], former: Mapping[str, str] | None = None
    ) -> None:
        """Apply changes, all or none; see `Store.write`."""
        taken = self._there() if former else set()
        free = {key: run_id for key, run_id in (former or {}).items() if run_id not in taken}
        made = {change.key: free.get(change.key) or uuid.uuid4().hex for change in changes if change.key not in runs}
        rows: Rows = defaultdict(list)
        with self._tables.engine.begin() as connection:
            _reopen_or_end(connection, [(runs[one.key], one) for one in changes if one.key not in made])
            for change in changes:
                if change.key in made:
                    rows[SqlRun].append(self._run(experiment, change, made[change.key]))
                    parent = (
                        {"mlflow.parentRunId": made.get(change.parent) or runs[change.parent]} if change.parent else {}
                    )
                    _tag(rows, made[change.key], {"mlflow.runName": change.name, **parent})
                _fill(rows, change, made.get(change.key) or runs[change.key])
            for table in (SqlRun, SqlTag, SqlParam, SqlMetric, SqlLatestMetric):  # runs before what refers to them
                # what is there already, from before a crash, is the same; of tags and last values the newer one counts
                how = "OR REPLACE" if table in (SqlTag, SqlLatestMetric) else "OR IGNORE"
                if rows[table]:
                    _insert(connection, table, rows[table], how)
        runs |= made

    def purge(self, models: Iterable[str] = (), runs: Iterable[str] = (), experiment: str | None = None) -> None:
        """Remove for good, with all rows that are theirs, what is marked as deleted; the files are the caller's.

        Args:
            models: ids of logged models.
            runs: ids.
            experiment: id of one in which there is no run any more.
        """
        for model_id in models:
            self._tables._hard_delete_logged_model(model_id)
        for run_id in runs:
            self._tables._hard_delete_run(run_id)
        if experiment is not None:
            self._tables._hard_delete_experiment(experiment)

    def _there(self, *conditions: ColumnElement[bool]) -> set[str]:
        """Ids of the runs for which these hold."""
        with self._tables.engine.connect() as connection:
            return set(connection.scalars(select(SqlRun.run_uuid).where(*conditions)))

    def _run(self, experiment: str, change: RunUpdate, run_id: str) -> dict[str, Any]:
        if experiment not in self._locations:
            self._locations[experiment] = self.client.get_experiment(experiment).artifact_location
        return NEW_RUN | {
            "run_uuid": run_id,
            "name": change.name if change.rename is None else change.rename,
            "experiment_id": int(experiment),
            "artifact_uri": append_to_uri_path(self._locations[experiment], run_id, "artifacts"),
            "start_time": change.start,
            "end_time": change.end,
            "status": change.status or "RUNNING",
            "user_id": change.tags.get("mlflow.user", NEW_RUN["user_id"]),
        }


def close_connections(uri: str) -> None:
    """Close what this process keeps open of a database: its file may have been moved or removed since."""
    if engine := SqlAlchemyStore._engine_map.get(uri):
        engine.dispose()


def _insert(connection: Connection, table: Any, rows: list[dict[str, Any]], how: str) -> None:
    """Rows, all of the same columns, by SQLite itself: SQLAlchemy would take most of the time to look at each value."""
    names = list(rows[0])
    columns, places = ", ".join(f'"{name}"' for name in names), ", ".join("?" for _ in names)
    statement = f'INSERT {how} INTO "{table.__tablename__}" ({columns}) VALUES ({places})'
    connection.exec_driver_sql(statement, list(map(itemgetter(*names), rows)))


def _reopen_or_end(connection: Connection, changes: list[tuple[str, RunUpdate]]) -> None:
    """Status, end, name and tags that go, of runs that are there."""
    states = [(change.status, change.end, run_id) for run_id, change in changes if change.status is not None]
    if states:
        statement = f'UPDATE "{SqlRun.__tablename__}" SET status = ?, end_time = ? WHERE run_uuid = ?'
        connection.exec_driver_sql(statement, states)
    names = [(change.rename, run_id) for run_id, change in changes if change.rename is not None]
    if names:
        connection.exec_driver_sql(f'UPDATE "{SqlRun.__tablename__}" SET name = ? WHERE run_uuid = ?', names)
    for run_id, change in changes:
        if change.untag:
            connection.execute(delete(SqlTag).where(SqlTag.run_uuid == run_id, SqlTag.key.in_(change.untag)))


def _fill(rows: Rows, change: RunUpdate, run_id: str) -> None:
    _tag(rows, run_id, change.tags if change.rename is None else change.tags | {"mlflow.runName": change.rename})
    rows[SqlParam] += ({"run_uuid": run_id, "key": key, "value": value} for key, value in change.params.items())
    points = [
        {
            "run_uuid": run_id,
            "key": point.name,
            "value": 0.0 if math.isnan(point.value) else min(max(point.value, -LARGEST), LARGEST),
            "timestamp": point.time,
            "step": point.step,
            "is_nan": math.isnan(point.value),
        }
        for point in change.points
    ]
    rows[SqlMetric] += points
    rows[SqlLatestMetric] += {point["key"]: point for point in points}.values()


def _tag(rows: Rows, run_id: str, tags: Mapping[str, str]) -> None:
    rows[SqlTag] += ({"run_uuid": run_id, "key": key, "value": value} for key, value in tags.items())
