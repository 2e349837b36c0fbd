"""The file of a home's own database, without MLflow, whose import takes seconds: whether it is damaged, and where it
says that artifacts lie. With `study/tracking/database.py` all that touches MLflow's tables.

`tests/tracking/test_mlflow_internals.py` says what MLflow must keep for this, and tries it.
"""

import fcntl
import os
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

BUSY = 20.0
"""Seconds to wait for others that write, as MLflow itself does."""

LOCATIONS = (
    ("experiments", "artifact_location"),
    ("runs", "artifact_uri"),
    ("logged_models", "artifact_location"),
    ("model_versions", "source"),
    ("model_versions", "storage_location"),
)
"""Tables and columns in which MLflow keeps where artifacts lie: absolute addresses, all of them."""

VALUE = re.compile(r"(NULL|NUMERIC|TEXT|non-\w+) value in |CHECK constraint failed")
"""What SQLite's check says of a value against a table's rules: the file is sound."""

TRACKED = """
    SELECT 1 FROM runs JOIN tags ON tags.run_uuid = runs.run_uuid
    WHERE runs.experiment_id = ? AND tags.key = 'study.id' LIMIT 1
"""
"""Whether an experiment has a run of a study."""


@contextmanager
def synced_once(path: Path) -> Iterator[None]:
    """Have what this process writes in the block to an SQLite database that is being made reach the disk at its end,
    not after each of the fifty steps in which MLflow makes its tables, which take seconds of waiting."""
    from sqlalchemy import event
    from sqlalchemy.engine import Engine

    def set_up(connection: Any, _record: Any) -> None:
        if isinstance(connection, sqlite3.Connection):
            files = [file for _, _, file in connection.execute("PRAGMA database_list")]
            if str(path.resolve()) in files:
                connection.execute("PRAGMA synchronous = OFF")
                connection.execute("PRAGMA journal_mode = MEMORY")

    event.listen(Engine, "connect", set_up)
    try:
        yield
    finally:
        event.remove(Engine, "connect", set_up)
    with path.open("rb+") as file:
        os.fsync(file.fileno())


def relocate(database: Path, artifacts: Path) -> None:
    """Have a database say where its artifacts are, if its home was somewhere else when they were logged: else they were
    lost with a home that was moved, and a copy would write among those of the original.

    Raises:
        sqlite3.Error: the database is damaged or cannot be written.
    """
    here = artifacts.as_uri()
    with closing(_opened(database)) as connection:
        for there in _other_places(connection, artifacts):
            with connection:  # all or nothing
                for table, column in LOCATIONS:
                    connection.execute(
                        f"UPDATE {table} SET {column} = ? || substr({column}, ?) WHERE substr({column}, 1, ?) = ?",
                        (here, len(there) + 1, len(there) + 1, f"{there}/"),
                    )


def _other_places(connection: sqlite3.Connection, artifacts: Path) -> set[str]:
    """Addresses at which the folder of artifacts was, by the experiments that studies made in it."""
    rows = connection.execute("SELECT experiment_id, name, artifact_location FROM experiments").fetchall()
    places = set()
    for experiment, name, location in rows:
        there = (location or "").removesuffix(f"/{name}")
        if there == location or not there.startswith("file:///") or not there.endswith(f"/{artifacts.name}"):
            continue
        folder = Path(unquote(urlsplit(there).path))
        if there == artifacts.as_uri() or (folder.exists() and artifacts.exists() and folder.samefile(artifacts)):
            continue
        is_somebody_elses = (folder / name).exists() and not connection.execute(TRACKED, (experiment,)).fetchone()
        if not is_somebody_elses:
            places.add(there)
    return places


def damage(database: Path) -> str | None:
    """Return what is wrong with a database's file, None if nothing is, or if it is not there or cannot be read just
    now."""
    if not database.exists():
        return None
    if not database.stat().st_size:
        return "it is empty"
    try:
        with closing(_opened(database)) as connection:
            answers = [answer for (answer,) in connection.execute("PRAGMA quick_check")]
    except sqlite3.OperationalError:  # locked by another process, or the disk does not answer
        return None
    except sqlite3.DatabaseError as error:
        return str(error)
    return next((" ".join(answer.split()) for answer in answers if answer != "ok" and not VALUE.match(answer)), None)


def set_aside(database: Path) -> tuple[str, Path] | None:
    """Move a damaged database out of the way, beside where it was.

    Returns:
        What was wrong with it, and where it is kept; None if nothing was.
    """
    if damage(database) is None:
        return None
    with _alone(database):
        why = damage(database)  # another process may have moved it meanwhile
        if why is None:
            return None
        names = (database.with_name(f"{database.name}.damaged-{number}") for number in range(1, 10_000))
        aside = next(path for path in names if not os.path.lexists(path))
        for suffix in ("-journal", "-wal", "-shm"):  # what SQLite keeps beside a file belongs to that file alone
            if (left := database.with_name(database.name + suffix)).exists():
                left.rename(aside.with_name(aside.name + suffix))
        database.rename(aside)
        return why, aside


def _opened(database: Path) -> sqlite3.Connection:
    """A connection to a database that is there."""
    return sqlite3.connect(f"{database.as_uri()}?mode=rw", timeout=BUSY, uri=True)


@contextmanager
def _alone(database: Path) -> Iterator[None]:
    """While no other process is here."""
    with database.with_name(f".{database.name}-lock").open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
