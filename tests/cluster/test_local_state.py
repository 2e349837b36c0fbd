"""What `study cluster` remembers."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from study.cluster.local import LocalCluster
from study.cluster.process import Process
from study.errors import UserError
from study.home.folder import Home
from study.tracking.connection import connect


def test_a_process_of_the_same_number_is_not_taken_for_the_one_that_was_started() -> None:
    mine = Process.of("me", os.getpid())
    assert mine.is_alive
    assert not Process("me", mine.pid, mine.born - 1).is_alive


def test_what_has_ended_is_not_alive() -> None:
    """Also before anybody has waited for it."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        found = Process.of("child", child.pid)
        assert found.is_alive
        child.kill()
        while found.is_alive:
            time.sleep(0.01)
        assert child.returncode is None
    assert not found.is_alive


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    (tmp_path / ".cluster").mkdir()
    (tmp_path / ".cluster" / "state.json").write_text("{")
    with pytest.raises(UserError, match=r"state.json: damaged"):
        LocalCluster.of(Home(tmp_path))


def test_none_is_said_to_be_none(tmp_path: Path) -> None:
    assert "study cluster up" in LocalCluster.of(Home(tmp_path)).lines()[0]


ODD = "a?b #1%20%3F'$(id)"
"""A folder's name with what means something in an address or to a shell."""


def test_a_shell_reads_the_exports_whatever_the_homes_path_holds(tmp_path: Path) -> None:
    cluster = LocalCluster.of(Home(tmp_path / ODD))
    cluster.path.mkdir(parents=True)
    cluster.password_file.write_text("secret")
    cluster.processes = [Process.of("me", os.getpid())]
    exports = "\n".join(line for line in cluster.lines() if line.strip().startswith("export"))
    given = [f'{exports}\nprintf \'%s %s\' "$RAY_AUTH_TOKEN_PATH" "$MLFLOW_TRACKING_PASSWORD"']
    done = subprocess.run(["sh", "-eu", "-c", *given], capture_output=True, text=True, check=True)
    assert done.stdout == f"{cluster.token_file} secret"


@pytest.mark.slow
def test_its_mlflow_keeps_runs_and_users_in_the_home_whatever_its_path_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Home(tmp_path / ODD)
    cluster = LocalCluster.of(home)
    cluster.path.mkdir(parents=True)
    cluster.password_file.write_text("a password for tests")
    try:
        monkeypatch.setenv("MLFLOW_TRACKING_USERNAME", "admin")
        monkeypatch.setenv("MLFLOW_TRACKING_PASSWORD", "a password for tests")
        client = connect(cluster._start_mlflow(home))
        run = client.create_run(client.create_experiment("one"))
        client.log_text(run.info.run_id, "mine", "note.txt")
    finally:
        cluster.stop()
    assert {path.name for path in home.path.iterdir()} == {".cluster", "mlflow.db", "artifacts"}
    assert (cluster.path / "mlflow-users.db").stat().st_size > 0
    assert [path.read_text() for path in home.artifacts.rglob("note.txt")] == ["mine"]
    assert list(tmp_path.iterdir()) == [home.path]
