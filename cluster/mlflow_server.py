"""Starts a cluster's MLflow: with a password, runs in PostgreSQL, artifacts in an S3 store.

Everything comes from the environment, so that no password is in an argument, where every process of a machine may read
it, or in the database's address, which MLflow prints: libpq reads `PG*`, boto3 `AWS_*`, MLflow `MLFLOW_*`.
"""

import os
import sys
from pathlib import Path

import boto3
from botocore.exceptions import ClientError

BUCKET = "mlflow"

SECRETS = (
    "PGPASSWORD",
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "MLFLOW_AUTH_ADMIN_PASSWORD",
    "MLFLOW_FLASK_SERVER_SECRET_KEY",
)

SETTINGS = {
    "MLFLOW_BACKEND_STORE_URI": "postgresql+psycopg2://",
    "MLFLOW_ARTIFACTS_DESTINATION": f"s3://{BUCKET}",
    "MLFLOW_AUTH_CONFIG_PATH": str(Path(__file__).with_name("basic_auth.ini")),
    "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",  # helper processes that nothing here uses
    "MLFLOW_DISABLE_TELEMETRY": "true",
}


def make_bucket() -> None:
    """Make the bucket, unless it is there."""
    store = boto3.client("s3", endpoint_url=os.environ.get("MLFLOW_S3_ENDPOINT_URL"))
    try:
        store.head_bucket(Bucket=BUCKET)
    except ClientError as error:
        if error.response["Error"]["Code"] != "404":
            raise
        store.create_bucket(Bucket=BUCKET)


def main() -> None:
    missing = [name for name in SECRETS if not os.environ.get(name)]
    if missing:
        sys.exit(f"not set: {', '.join(missing)}")
    os.environ.update(SETTINGS)
    make_bucket()
    os.execvp(sys.executable, [sys.executable, "-m", "mlflow", "server", "--app-name", "basic-auth"])


if __name__ == "__main__":
    main()
