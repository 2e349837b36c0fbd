"""The MLflow of a home, opened."""

from typing import TYPE_CHECKING

from study.errors import UserError
from study.home.folder import Home
from study.tracking.connection import connect, error_line
from study.tracking.database_file import damage, relocate

if TYPE_CHECKING:
    from mlflow import MlflowClient


def open_mlflow(home: Home, timeout: int = 30) -> "MlflowClient":
    """A client of the MLflow that a home's runs go to, which has answered. A database of its own is made or migrated,
    and says where its artifacts are, also if the home was moved.

    Args:
        timeout: seconds that a request of this process may take, where the environment does not say it.

    Raises:
        Exception: whatever MLflow, its database or the network raise; see `study.tracking.connection.error_line`.
    """
    client = connect(home.tracking_uri, timeout)
    if home.owns_tracking:
        relocate(home.database, home.artifacts)
    return client


def check_database(home: Home) -> None:
    """Have the database of a home of its own ready for an MLflow server; see `open_mlflow`.

    Raises:
        UserError: it is damaged, and says how it is made again; or it cannot be written.
    """
    if not home.database.exists():
        return
    if why := damage(home.database):
        names = [folder.name for folder in home.studies()]
        remedy = f". Its runs come back with: study resume {' and: study resume '.join(names)}" if names else ""
        raise UserError(f"{home.database}: damaged: {why}{remedy}")
    try:
        relocate(home.database, home.artifacts)
    except Exception as error:  # whatever SQLite raises
        raise UserError(f"{home.database}: {error_line(error, home.tracking_uri)}") from None
