"""How MLflow is spoken to: quietly, and with nothing tried again behind the caller's back."""

import logging
import os
import secrets
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit, urlunsplit

from study.address import is_loopback
from study.errors import UserError, disk_remedy, of_disk
from study.home.sqlite_address import address_of, path_of
from study.logging import hush
from study.tracking.bounded import bound_answers
from study.tracking.database_file import synced_once
from study.upstream.environment import Part, set_here

if TYPE_CHECKING:
    from mlflow import MlflowClient

LEAST_PASSWORD, DEFAULT_PASSWORD = 12, "password1234"
"""Characters of a password, as MLflow wants them; and the one that it has where nobody sets one."""

OTHER_WAYS = (
    "MLFLOW_TRACKING_TOKEN",
    "MLFLOW_TRACKING_AUTH",
    "MLFLOW_TRACKING_AWS_SIGV4",
    "MLFLOW_TRACKING_CLIENT_CERT_PATH",
)
"""Variables that tell MLflow to show who it is by something else than a password."""


def connect(uri: str, timeout: int = 30) -> "MlflowClient":
    """A client of an MLflow that has answered; a database is made or migrated.

    Args:
        timeout: seconds that a request of this process may take, where the environment does not say it.

    Raises:
        Exception: whatever MLflow, its database or the network raise; see `error_line`.
    """
    set_here(Part.MLFLOW_CLIENT)
    os.environ.setdefault("MLFLOW_HTTP_REQUEST_TIMEOUT", str(timeout))
    os.environ["MLFLOW_HTTP_REQUEST_MAX_RETRIES"] = "0"  # a request that is repeated unseen may make two runs
    from mlflow import MlflowClient

    hush("alembic", "mlflow", "urllib3")
    hush("mlflow.store.db.utils", level=logging.CRITICAL)  # it shows the traceback of what it raises
    bound_answers()
    if path := path_of(uri):
        _make_database(path)
    client = MlflowClient(uri)
    client.search_experiments(max_results=1)
    return client


def _make_database(path: Path) -> None:
    """Make an SQLite database that is not there, whole or not at all: of one that a killed process began, MLflow says
    for ever that its tables exist already."""
    from mlflow import MlflowClient

    if path.exists():
        return
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        with synced_once(part):
            MlflowClient(address_of(part)).search_experiments(max_results=1)
        with suppress(OSError):  # another process has made it meanwhile; or there are no links here, and MLflow does it
            os.link(part, path)
    finally:
        part.unlink(missing_ok=True)


def check_server(uri: str) -> None:
    """Refuse an MLflow server elsewhere that no password guards: whoever reaches it changes its runs.

    Raises:
        UserError: says how to give the password.
    """
    parts = urlsplit(uri)
    if parts.scheme not in ("http", "https") or is_loopback(parts.hostname or ""):
        return
    if any(os.environ.get(name) for name in OTHER_WAYS):
        return
    from mlflow.utils.credentials import read_mlflow_creds

    password = parts.password or read_mlflow_creds().password or ""
    if len(password) >= LEAST_PASSWORD and password != DEFAULT_PASSWORD:
        return
    weak = "MLflow's default" if password == DEFAULT_PASSWORD else f"one of {len(password)} characters"
    raise UserError(
        f"MLFLOW_TRACKING_URI: {public(uri)}: {weak if password else 'no password'} is given, and without a strong "
        f"one whoever reaches the server can change its runs. Allowed: {LEAST_PASSWORD} characters or more, by "
        "MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD"
    )


def server_version(uri: str, client: "MlflowClient", timeout: int) -> str | None:
    """The version of MLflow's server; None where a client is of a database, or the server does not say.

    Args:
        timeout: seconds that the request may take.
    """
    if not uri.startswith(("http://", "https://")):
        return None
    from mlflow.utils.rest_utils import http_request

    with suppress(Exception):  # it answers; what it says of itself is not needed
        answer = http_request(client._tracking_client.store.get_host_creds(), "/version", "GET", timeout=timeout)
        return str(answer.text).strip() if answer.ok else None
    return None


SECRET = ("password", "passwd", "user", "username", "sslpassword", "token")
"""Options of an address that are not shown."""


def public(uri: str) -> str:
    """The address without a user name and password that may be in it, before its host or among its options."""
    parts = urlsplit(uri)
    shown = [option for option in parts.query.split("&") if option.partition("=")[0].lower() not in SECRET]
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2], query="&".join(shown)))


def error_line(error: Exception, uri: str) -> str:
    """An error of MLflow in one line."""
    if problem := of_disk(error):
        return f"{problem.filename or path_of(uri) or public(uri)}: {problem.strerror}. {disk_remedy(problem)}"
    text = " ".join(f"{type(error).__name__}: {error}".split()).replace(uri, public(uri))
    asks = "MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD"
    status = getattr(error, "get_http_status_code", lambda: None)()
    if status == 401:
        return f"{public(uri)} does not accept the user name and password (401); it takes {asks}"
    if status == 403:
        return f"{public(uri)} does not let this user write (403); who that is, is in {asks}"
    return text[:300]
