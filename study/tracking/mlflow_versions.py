"""Whether an MLflow answers, and which version it is."""

from study.errors import UserError
from study.home.folder import Home
from study.tracking.connection import connect, error_line, public, server_version
from study.upstream.environment import Part, set_here

TIMEOUT = 5
"""Seconds that a request may take."""


def load_mlflow() -> None:
    """Load what a client needs, of a server or a database."""
    set_here(Part.MLFLOW_CLIENT)
    import mlflow.store.tracking.sqlalchemy_store  # noqa: F401


def mlflow_versions(home: Home) -> tuple[str, str | None, str]:
    """Whether an MLflow answers.

    Returns:
        Its address without a password (of a home's own the file); the version of a server, None where it is a database
        or does not say; and the version here.

    Raises:
        UserError: it does not answer, or refuses the user name and password.
    """
    uri = str(home.database) if home.owns_tracking else public(home.tracking_uri)
    try:
        client = connect(home.tracking_uri, TIMEOUT)
    except Exception as error:  # whatever MLflow, its database or the network raise
        message = error_line(error, home.tracking_uri)
        raise UserError(message if uri in message else f"{uri}: {message}") from None
    from mlflow import __version__

    return uri, server_version(home.tracking_uri, client, TIMEOUT), __version__
