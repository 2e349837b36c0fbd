"""An MLflow server for measurements."""

import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path


def start() -> tuple[str, subprocess.Popen[bytes]]:
    """An MLflow server on loopback with SQLite, as Tune's users have it."""
    folder, port = tempfile.mkdtemp(), 5511
    command = ["mlflow", "server", "--port", str(port), "--workers", "1", "--backend-store-uri", "sqlite:///s.db"]
    environment = os.environ | {"MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false", "MLFLOW_DISABLE_TELEMETRY": "true"}
    path = Path(sys.executable).parent / command[0]
    process = subprocess.Popen(
        [str(path), *command[1:]], cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    for _ in range(120):
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=1)
            return f"http://127.0.0.1:{port}", process
        except OSError:
            time.sleep(1)
    raise SystemExit("the MLflow server did not start")
