"""Check the user's own training functions in a separate process, where what they do can do no harm."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from study.errors import UserError
from study.upstream.environment import Part, variables

APART = """
import json, os, sys
path, function, where, answer = json.loads(sys.argv[1])
sys.path[:] = path
from study.errors import UserError
from study.training.function_loading import TAKEN, load, takes
try:
    loaded = load(function, where)
    told = {"takes": [name for name in TAKEN if takes(loaded, name)]}
except UserError as error:
    told = {"error": str(error)[:5000]}  # a pipe that nobody reads meanwhile takes 64 KiB
os.write(answer, json.dumps(told).encode())
os._exit(0)
"""


def taken(function: str, where: str) -> list[str]:
    """Return which of `TAKEN` a function takes.

    It is loaded and checked in a separate process: importing its module may change anything in the process that does
    it, and log to MLflow.

    Args:
        where: as `study.training.function_loading.place` gives it.

    Raises:
        UserError: see `study.training.function_loading.load`.
    """
    answers, answer = os.pipe()
    with open(answers, "rb") as told, tempfile.TemporaryDirectory() as folder:
        try:
            given = json.dumps([sys.path, function, where, answer])
            runs = variables(Part.FUNCTION) | {"MLFLOW_TRACKING_URI": Path(folder).as_uri()}
            ended = subprocess.run([sys.executable, "-c", APART, given], pass_fds=[answer], env=os.environ | runs)
        finally:
            os.close(answer)
        found: dict[str, Any] = json.loads(told.read() or "{}")
    if "takes" not in found:
        why = f"its process ended with status {ended.returncode} while it was imported"
        raise UserError(found.get("error", f"method.function: {function!r}: {why}"))
    return [str(name) for name in found["takes"]]
