"""Starts a cluster's MLflow: with a password, its runs in PostgreSQL, artifacts in a folder or an S3 store.

Everything comes from the environment, so that no password is in an argument, where every process of a machine may read
it, or in the database's address, which MLflow prints: libpq reads `PG*`, boto3 `AWS_*`, MLflow `MLFLOW_*`. Whom
`MLFLOW_TRACKING_USERNAME` and `MLFLOW_TRACKING_PASSWORD` name is made a user without administrator's rights.
"""

import os
import sys
from pathlib import Path

DATABASE = "MLFLOW_BACKEND_STORE_URI"

SETTINGS = {
    DATABASE: "postgresql+psycopg2://",
    "MLFLOW_ARTIFACTS_DESTINATION": "/artifacts",  # or s3://BUCKET
    "MLFLOW_AUTH_CONFIG_PATH": str(Path(__file__).with_name("basic_auth.ini")),
    "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",  # helper processes that nothing here uses
    "MLFLOW_DISABLE_TELEMETRY": "true",
}
"""What holds where the environment does not say otherwise."""


def main() -> None:
    secrets = ["MLFLOW_AUTH_ADMIN_PASSWORD", "MLFLOW_FLASK_SERVER_SECRET_KEY"]
    secrets += [] if os.environ.get(DATABASE) else ["PGPASSWORD"]
    if missing := [name for name in secrets if not os.environ.get(name)]:
        sys.exit(f"not set: {', '.join(missing)}")
    for name, value in SETTINGS.items():
        os.environ.setdefault(name, value)
    user = os.environ.pop("MLFLOW_TRACKING_USERNAME", ""), os.environ.pop("MLFLOW_TRACKING_PASSWORD", "")
    if all(user) and user[0] != os.environ.get("MLFLOW_AUTH_ADMIN_USERNAME"):
        have_user(*user)
    os.execvp(sys.executable, [sys.executable, "-m", "mlflow", "server", "--app-name", "basic-auth"])


def have_user(name: str, password: str) -> None:
    """Make a user who has rights on what he creates alone; one who is there gets the password."""
    from mlflow.server.auth.config import read_auth_config
    from mlflow.server.auth.sqlalchemy_store import SqlAlchemyStore

    store = SqlAlchemyStore()
    store.init_db(read_auth_config().database_uri)
    if not store.has_user(name):
        store.create_user(name, password)
    elif not store.authenticate_user(name, password):
        store.update_user(name, password=password)


if __name__ == "__main__":
    main()
