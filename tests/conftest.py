"""What holds for all tests: the same examples in every run, one thread each, and the longest first."""

import os
import shutil
from functools import cache
from pathlib import Path

import pytest
from hypothesis import settings

os.environ.setdefault("OMP_NUM_THREADS", "1")
"""Set before torch is imported, and for the processes that tests start. On a busy machine threads wait for each other:
with two a gradient check costs fifteen times the processor time."""

MEMORY, ROOM = Path("/dev/shm"), 4 << 30
"""A folder in memory and the bytes that tests may need: there a ledger's syncs cost nothing, and thousands are made."""
if MEMORY.is_dir() and os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > ROOM:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))

settings.register_profile("study", derandomize=True, deadline=None, max_examples=50, database=None)
settings.load_profile("study")

LONGEST = ["guide/test_walk_through.py", "e2e/test_killed.py", "e2e/test_laptop.py", "cluster/test_queue.py", "e2e"]
LONGEST += ["cluster", "gpu", "guide", "home/test_mutated.py", "sweep/test_starting.py", "sweep/test_ray_session.py"]
LONGEST += ["test_entry_points.py", "analysis/report"]
"""Files and folders whose tests take seconds, or minutes."""


@pytest.fixture(scope="session")
def empty_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database as MLflow makes it, which takes seconds."""
    from study.tracking.connection import connect  # brings MLflow

    path = tmp_path_factory.mktemp("mlflow") / "mlflow.db"
    connect(f"sqlite:///{path}")
    return path


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let the longest come first: what is last has only one worker busy while it runs."""
    items.sort(key=lambda item: _place(item.path))


@cache
def _place(file: Path) -> int:
    path = file.relative_to(Path(__file__).parent)
    return next((place for place, long in enumerate(LONGEST) if path.is_relative_to(long)), len(LONGEST))
