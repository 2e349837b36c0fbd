"""Connections to MLflow, with its output hidden and no request repeated unseen."""

import fcntl
import logging
import os
import re
import secrets
import sqlite3
from collections.abc import Callable, Iterator
from configparser import ConfigParser
from contextlib import closing, contextmanager, suppress
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar
from urllib.parse import urlsplit

from study.cluster_addresses import is_loopback
from study.errors import UserError, disk_remedy, find_disk_error
from study.home.folder import Home, sqlite_path, sqlite_uri
from study.text import redact_credentials
from study.upstream.environment import FILE_STORE_VARIABLE, ProcessKind, set_variables_here
from study.upstream.logging import hide_library_messages

if TYPE_CHECKING:
    from mlflow import MlflowClient

FoundItemType = TypeVar("FoundItemType", covariant=True)


class MlflowSearchPage(Protocol[FoundItemType]):
    """A page of what a search of MLflow's client finds; `token` asks for the next one, empty: there is none."""

    @property
    def token(self) -> str | None: ...

    def __iter__(self) -> Iterator[FoundItemType]: ...


MIN_PASSWORD_CHARACTERS, DEFAULT_PASSWORD = 12, "password1234"
"""Fewest characters of a password that MLflow accepts; and its password where nobody sets one."""

OTHER_CREDENTIAL_VARIABLES = (
    "MLFLOW_TRACKING_TOKEN",
    "MLFLOW_TRACKING_AUTH",
    "MLFLOW_TRACKING_AWS_SIGV4",
    "MLFLOW_TRACKING_CLIENT_CERT_PATH",
)
"""Variables that let MLflow authenticate by something else than a password."""


def connect_to_mlflow(uri: str, timeout: int = 30) -> "MlflowClient":
    """Return a client of an MLflow that has answered; make or migrate its database.

    Args:
        timeout: seconds that a request of this process may take, where the environment does not set it.

    Raises:
        Exception: whatever MLflow, its database or the network raise; see `format_mlflow_error`.
    """
    set_variables_here(ProcessKind.MLFLOW_CLIENT)
    os.environ.setdefault("MLFLOW_HTTP_REQUEST_TIMEOUT", str(timeout))
    os.environ["MLFLOW_HTTP_REQUEST_MAX_RETRIES"] = "0"  # a request that is repeated unseen may make two runs
    from mlflow import MlflowClient

    hide_library_messages("alembic", "mlflow", "urllib3")
    hide_library_messages("mlflow.store.db.utils", level=logging.CRITICAL)  # it shows the traceback of what it raises
    if path := sqlite_path(uri):
        _create_sqlite_database(path)
    client = MlflowClient(uri)
    client.search_experiments(max_results=1)
    return client


def _create_sqlite_database(path: Path) -> None:
    """Make an SQLite database that is not there, whole or not at all.

    One that a killed process began would be of no use: MLflow says for ever that its tables exist already.
    """
    from mlflow import MlflowClient

    if path.exists():
        return
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        with sync_sqlite_once(part):
            MlflowClient(sqlite_uri(part)).search_experiments(max_results=1)
        with suppress(OSError):  # another process has made it; or the file system has no links, and MLflow makes it
            os.link(part, path)
    finally:
        part.unlink(missing_ok=True)


SERVER_SCHEMES = ("http", "https", "databricks", "databricks-uc", "uc")
DATABASE_SCHEMES = ("postgresql", "mysql", "sqlite", "mssql")
"""Schemes of the addresses that MLflow knows; that of a database may name a driver after a `+`."""


def check_uri_is_supported(uri: str) -> None:
    """Refuse an address at which MLflow would keep nothing, before a study runs for it.

    Raises:
        UserError: says which addresses are allowed.
    """
    scheme = urlsplit(uri).scheme or uri * (uri == "databricks")
    if scheme in SERVER_SCHEMES or scheme.partition("+")[0] in DATABASE_SCHEMES:
        return
    if scheme in ("", "file"):
        if os.environ.get(FILE_STORE_VARIABLE, "").lower() in ("true", "1"):
            return
        why = "is a folder, in which MLflow keeps runs no more"
    elif any(plugin.name == scheme for plugin in entry_points(group="mlflow.tracking_store")):
        return
    else:
        why = "is no address that MLflow knows"
    raise UserError(
        f"MLFLOW_TRACKING_URI: {redact_credentials(uri)}: {why}. Allowed: http://HOST:PORT, sqlite:////FOLDER/FILE.db, "
        "or another database; unset, it is a database in the home of studies"
    )


def require_server_password(uri: str) -> None:
    """Refuse an MLflow server elsewhere without a strong password: whoever reaches it could change its runs.

    Raises:
        UserError: says how to give the password; or it is no such address, see `check_uri_is_supported`.
    """
    check_uri_is_supported(uri)
    parts = urlsplit(uri)
    if parts.scheme not in ("http", "https") or is_loopback(parts.hostname or ""):
        return
    if any(os.environ.get(name) for name in OTHER_CREDENTIAL_VARIABLES):
        return
    password = parts.password or _client_password() or ""
    if len(password) >= MIN_PASSWORD_CHARACTERS and password != DEFAULT_PASSWORD:
        return
    weak = "MLflow's default" if password == DEFAULT_PASSWORD else f"one of {len(password)} characters"
    given = weak if password else "no password"
    raise UserError(
        f"MLFLOW_TRACKING_URI: {redact_credentials(uri)}: {given} is given, and without a strong one whoever reaches "
        f"the server can change its runs. Allowed: {MIN_PASSWORD_CHARACTERS} characters or more, by "
        "MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD"
    )


def _client_password() -> str | None:
    """Return the password that MLflow's client sends: from the environment, or else from its credentials file."""
    if password := os.environ.get("MLFLOW_TRACKING_PASSWORD"):
        return password
    file = ConfigParser()
    file.read(Path("~/.mlflow/credentials").expanduser())
    return file.get("mlflow", "mlflow_tracking_password", fallback=None)


UNREACHABLE_REASON_BY_PATTERN = {
    "Connection refused": "nothing listens at {}",
    "Name or service not known|[Nn]ame resolution|NameResolutionError": "there is no such host as that of {}",
    "[Tt]imed out": "{} does not answer in time",
}
"""Messages about a server that cannot be reached, by what the libraries say."""


def iterate_search_pages(search: Callable[[str | None], MlflowSearchPage[FoundItemType]]) -> Iterator[FoundItemType]:
    """Yield all that a search of MLflow's client finds.

    Args:
        search: returns the page of a token, the first one of None.
    """
    token: str | None = None
    while token != "":
        page = search(token)
        yield from page
        token = page.token or ""


def is_unknown_route(error: Exception) -> bool:
    """Return whether a server does not know the route, as one of MLflow 2 knows no logged models."""
    return getattr(error, "error_code", None) == "ENDPOINT_NOT_FOUND"


def format_mlflow_error(error: Exception, uri: str) -> str:
    """Return an error of MLflow in one line."""
    if problem := find_disk_error(error):
        place = problem.filename or sqlite_path(uri) or redact_credentials(uri)
        return f"{place}: {problem.strerror}. {disk_remedy(problem)}"
    text = " ".join(f"{type(error).__name__}: {error}".split()).replace(uri, redact_credentials(uri))
    asks = "MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD"
    status = getattr(error, "get_http_status_code", lambda: None)()
    if status == 401:
        return f"{redact_credentials(uri)} does not accept the user name and password (401); it takes {asks}"
    if status == 403:
        return f"{redact_credentials(uri)} does not let this user write (403); who that is, is in {asks}"
    if is_unknown_route(error):
        return f"{redact_credentials(uri)} answers, but not as an MLflow server does (404)"
    if uri.startswith(("http://", "https://")):
        for pattern, told in UNREACHABLE_REASON_BY_PATTERN.items():
            if re.search(pattern, text):
                return told.format(redact_credentials(uri))
    return text[:300]


def open_mlflow_of_home(home: Home, timeout: int = 30) -> "MlflowClient":
    """Return a client of the MLflow that a home's runs go to, which has answered.

    A database of its own is made or migrated, and says where its artifacts are, also if the home was moved.

    Args:
        timeout: seconds that a request of this process may take, where the environment does not set it.

    Raises:
        Exception: whatever MLflow, its database or the network raise; see
            `study.tracking.connection.format_mlflow_error`.
    """
    client = connect_to_mlflow(home.tracking_uri, timeout)
    if home.uses_own_mlflow:
        correct_artifact_locations(home.database_file, home.artifacts_folder)
    return client


def prepare_mlflow_database(home: Home) -> None:
    """Prepare the database of a home of its own for an MLflow server; see `open_mlflow_of_home`.

    Raises:
        UserError: it is damaged (says how it is made again), or it cannot be written.
    """
    if not home.database_file.exists():
        return
    if why := find_database_damage(home.database_file):
        names = [folder.name for folder in home.list_studies()]
        remedy = f". Its runs come back with: study resume {' and: study resume '.join(names)}" if names else ""
        raise UserError(f"{home.database_file}: damaged: {why}{remedy}")
    try:
        correct_artifact_locations(home.database_file, home.artifacts_folder)
    except Exception as error:  # whatever SQLite raises
        raise UserError(f"{home.database_file}: {format_mlflow_error(error, home.tracking_uri)}") from None


# What follows is all that touches MLflow's tables, without MLflow, whose import takes seconds.
# `tests/tracking/test_mlflow_internals.py` says what of MLflow it depends on, and tries it.

SQLITE_BUSY_TIMEOUT_S = 20.0
"""Seconds to wait for others that write, as MLflow itself does."""

ARTIFACT_LOCATION_COLUMNS = (
    ("experiments", "artifact_location"),
    ("runs", "artifact_uri"),
    ("logged_models", "artifact_location"),
    ("model_versions", "source"),
    ("model_versions", "storage_location"),
)
"""Tables and columns in which MLflow keeps the absolute addresses of artifacts."""

CONSTRAINT_VIOLATION_PATTERN = re.compile(r"(NULL|NUMERIC|TEXT|non-\w+) value in |CHECK constraint failed")
"""Messages of SQLite about a value that breaks a table's rules: the file itself is sound."""

STUDY_EXPERIMENTS_QUERY = """
    SELECT name, artifact_location FROM experiments WHERE experiment_id IN
    (SELECT experiment_id FROM runs JOIN tags ON tags.run_uuid = runs.run_uuid WHERE tags.key = 'study.id')
"""
"""Query for the experiments that have a run of a study, and where their artifacts are."""


@contextmanager
def sync_sqlite_once(path: Path) -> Iterator[None]:
    """Wait for the disk only once, at the end of the block, while an SQLite database is being made.

    Otherwise each of the fifty steps in which MLflow makes its tables waits for it, which takes seconds.
    """
    from sqlalchemy import event
    from sqlalchemy.engine import Engine

    def set_up(connection: object, _record: object) -> None:
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


def correct_artifact_locations(database: Path, artifacts: Path) -> None:
    """Correct where a database says that its artifacts are, if its home was elsewhere when they were logged.

    Otherwise they would be lost with a home that was moved, and a copy would write among those of the original.

    Raises:
        sqlite3.Error: the database is damaged or cannot be written.
    """
    here = artifacts.as_uri()
    with closing(_open_existing_database(database)) as connection, connection:  # all or nothing
        places = {location.removesuffix(f"/{name}") for name, location in connection.execute(STUDY_EXPERIMENTS_QUERY)}
        for there in places - {here}:
            if not there.startswith("file:///") or not there.endswith(f"/{artifacts.name}"):
                continue  # not in a home
            for table, column in ARTIFACT_LOCATION_COLUMNS:
                connection.execute(
                    f"UPDATE {table} SET {column} = ? || substr({column}, ?) WHERE substr({column}, 1, ?) = ?",
                    (here, len(there) + 1, len(there) + 1, f"{there}/"),
                )


def find_database_damage(database: Path) -> str | None:
    """Return what is wrong with a database's file; None if nothing is, or if it cannot be read just now."""
    if not database.exists():
        return None
    if not database.stat().st_size:
        return "it is empty"
    try:
        with closing(_open_existing_database(database)) as connection:
            answers = [answer for (answer,) in connection.execute("PRAGMA quick_check")]
    except sqlite3.OperationalError:  # locked by another process, or the disk does not answer
        return None
    except sqlite3.DatabaseError as error:
        return str(error)
    damage = (answer for answer in answers if answer != "ok" and not CONSTRAINT_VIOLATION_PATTERN.match(answer))
    return next((" ".join(answer.split()) for answer in damage), None)


def move_damaged_database_aside(database: Path) -> tuple[str, Path] | None:
    """Move a damaged database out of the way, to a name beside it.

    Returns:
        What was wrong with it, and where it is kept; None if nothing was.
    """
    if find_database_damage(database) is None:
        return None
    with _hold_move_aside_lock(database):
        why = find_database_damage(database)  # another process may have moved it meanwhile
        if why is None:
            return None
        names = (database.with_name(f"{database.name}.damaged-{number}") for number in range(1, 10_000))
        aside = next(path for path in names if not os.path.lexists(path))
        for suffix in ("-journal", "-wal", "-shm"):  # what SQLite keeps beside a file belongs to that file alone
            if (left := database.with_name(database.name + suffix)).exists():
                left.rename(aside.with_name(aside.name + suffix))
        database.rename(aside)
        return why, aside


def _open_existing_database(database: Path) -> sqlite3.Connection:
    """Connect to a database that exists."""
    return sqlite3.connect(f"{database.as_uri()}?mode=rw", timeout=SQLITE_BUSY_TIMEOUT_S, uri=True)


@contextmanager
def _hold_move_aside_lock(database: Path) -> Iterator[None]:
    """Hold the lock under which one process at a time sets a database aside."""
    with database.with_name(f".{database.name}-lock").open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
