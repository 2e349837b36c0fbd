"""What can become of a database's file, and what SQLite says of it then."""

import random
import time
from collections.abc import Callable
from pathlib import Path

from study.upstream.environment import ProcessKind, variables_of_processes


def outlast_connections() -> None:
    """Wait until MLflow uses none of the connections that this process has open: they read what was there before."""
    time.sleep(float(variables_of_processes(ProcessKind.MLFLOW_CLIENT)["MLFLOW_SQLALCHEMYSTORE_POOL_RECYCLE"]) + 0.1)


def halve(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def overwrite(path: Path) -> None:
    path.write_bytes(random.Random(0).randbytes(200_000))


def cut_within_a_page(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:100])


def text(path: Path) -> None:
    path.write_text("no database at all\n")


DAMAGE: dict[str, tuple[Callable[[Path], object], str]] = {
    "emptied": (lambda path: path.write_bytes(b""), "it is empty"),
    "halved": (halve, "malformed|Tree|page"),
    "random": (overwrite, "not a database"),
    "a hundred bytes": (cut_within_a_page, "not a database|malformed|page"),
    "text": (text, "not a database"),
}
"""By name: how a file is damaged, and what is said of it, one of these words."""
