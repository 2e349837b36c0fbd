"""What holds for all tests: the same examples in every run, one thread each, and the longest first."""

import os
import shutil
import signal
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from hypothesis import settings

from study.upstream.environment import KEEP_LOOPBACK_VARIABLES, UV_HOOK_VARIABLE

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a script that runs the tests in the background hands that on
    signal.signal(signal.SIGINT, signal.default_int_handler)

os.environ |= {UV_HOOK_VARIABLE: "0", **KEEP_LOOPBACK_VARIABLES}
"""Ray reads them where it is imported, which a test may do before the driver sets them; commands get neither."""

os.environ.setdefault("OMP_NUM_THREADS", "1")
"""Set before torch is imported, and for the processes that tests start. On a busy machine threads wait for each other:
with two a gradient check costs fifteen times the processor time."""

MEMORY, ROOM = Path("/dev/shm"), 4 << 30
"""A folder in memory and the bytes that tests may need: there a ledger's syncs cost nothing, and thousands are made."""
if MEMORY.is_dir() and os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > ROOM:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))

settings.register_profile("study", derandomize=True, deadline=None, max_examples=50, database=None)
settings.load_profile("study")

LONGEST = ["guide/test_walk_through.py", "e2e/test_killed.py", "e2e/test_laptop.py", "cluster/test_shared_cluster.py"]
LONGEST += [
    "e2e",
    "cluster",
    "gpu",
    "guide",
    "home/test_mutated.py",
    "sweep/test_starting.py",
    "sweep/test_ray_runtime.py",
]
LONGEST += ["test_entry_points.py", "analysis/report"]
"""Files and folders whose tests take seconds, or minutes."""


@pytest.fixture(autouse=True)
def environment() -> Iterator[None]:
    """Undo what a test's calls set in the environment: `RAY_AUTH_MODE=token` kept the next test's Ray from starting."""
    before = dict(os.environ)
    yield
    for name in os.environ.keys() - before.keys():
        del os.environ[name]
    os.environ.update({name: value for name, value in before.items() if os.environ.get(name) != value})


@pytest.fixture(scope="module")
def small_ray() -> Iterator[None]:
    """A Ray of one CPU without a token, for what would start one by itself that stays as long as the process."""
    import ray
    from ray._private.authentication_test_utils import reset_auth_token_state

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_AUTH_MODE", "disabled")  # else Ray writes a token into the home of whoever tests
        reset_auth_token_state()  # Ray keeps the mode that another test of this process gave it
        ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False, _node_ip_address="127.0.0.1")
    yield
    ray.shutdown()
    reset_auth_token_state()


@pytest.fixture(scope="session")
def empty_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database as MLflow makes it, which takes seconds."""
    from study.tracking.connection import connect_to_mlflow  # brings MLflow

    path = tmp_path_factory.mktemp("mlflow") / "mlflow.db"
    connect_to_mlflow(f"sqlite:///{path}")
    return path


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty data folder; the user's own cache is beside it, and the studies."""
    folder = tmp_path / "data"
    folder.mkdir()
    monkeypatch.setenv("STUDY_DATA", str(folder))
    if "STUDY_HOME" not in os.environ:
        monkeypatch.setenv("STUDY_HOME", str(tmp_path / "home" / "studies"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return folder


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a test, which is where a user with files of their own is; the data folder is in it."""
    monkeypatch.setenv("STUDY_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("HOME", str(tmp_path / "nobody"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let the longest come first: what is last has only one worker busy while it runs."""
    items.sort(key=lambda item: _place(item.path))


@cache
def _place(file: Path) -> int:
    path = file.relative_to(Path(__file__).parent)
    return next((place for place, long in enumerate(LONGEST) if path.is_relative_to(long)), len(LONGEST))
