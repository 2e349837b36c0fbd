"""Starts a cluster's MLflow: with a password, its runs in PostgreSQL, artifacts in a folder or an S3 store.

Everything comes from the environment, so that no password is in an argument, where every process of a machine may read
it, or in the database's address, which MLflow prints: libpq reads `PG*`, boto3 `AWS_*`, MLflow `MLFLOW_*`.
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
    os.execvp(sys.executable, [sys.executable, "-m", "mlflow", "server", "--app-name", "basic-auth"])


if __name__ == "__main__":
    main()
