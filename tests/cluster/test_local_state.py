"""What `study cluster` remembers."""

import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from study.cluster import local
from study.cluster.local import ClusterPart, LocalCluster, StartedProcess, find_free_ports
from study.commands.local_cluster import cluster_status_lines
from study.errors import UserError
from study.home.folder import Home
from study.tracking.connection import connect_to_mlflow
from study.upstream.ray_internals import RAY_JOB_VARIABLE


def test_a_process_of_the_same_number_is_not_taken_for_the_one_that_was_started() -> None:
    mine = StartedProcess.from_pid("me", os.getpid())
    assert mine.is_alive
    assert not replace(mine, began="1").is_alive
    assert not replace(mine, machine="before a reboot").is_alive


def test_what_has_ended_is_not_alive() -> None:
    """Also before anybody has waited for it."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        found = StartedProcess.from_pid("child", child.pid)
        assert found.is_alive
        child.kill()
        while found.is_alive:
            time.sleep(0.01)
        assert child.returncode is None
    assert not found.is_alive


def test_no_two_free_ports_are_one_and_none_is_anothers() -> None:
    taken = find_free_ports(300)
    more = find_free_ports(300, taken)
    assert len({*taken, *more}) == 600


def test_nodes_share_out_the_cards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    brought: list[ClusterPart] = []
    monkeypatch.setattr(LocalCluster, "_start_and_wait", lambda self, parts, tell: brought.extend(parts))
    cluster = LocalCluster.of_home(Home(tmp_path))
    cluster.start_cluster(Home(tmp_path), 2, 1, ["3", "0", "5"])
    cluster.stop_cluster()
    assert {part.name: part.environment["CUDA_VISIBLE_DEVICES"] for part in brought if part.name != "mlflow"} == {
        "head": "",
        "node-1": "3,5",
        "node-2": "0",
    }
    first, second = (part.make_command() for part in brought[2:])
    assert "--num-gpus=2" in first
    assert "--num-gpus=1" in second


ODD = "a?b #1%20%3F'$(id)"
"""A folder's name with what means something in an address or to a shell."""


def test_a_shell_reads_the_exports_whatever_the_homes_path_holds(tmp_path: Path) -> None:
    cluster = LocalCluster.of_home(Home(tmp_path / ODD))
    cluster.path.mkdir(parents=True)
    cluster.password_file.write_text("secret")
    cluster.processes = [StartedProcess.from_pid("me", os.getpid())]
    exports = "\n".join(line for line in cluster_status_lines(cluster) if line.strip().startswith("export"))
    given = [f'{exports}\nprintf \'%s %s\' "$RAY_AUTH_TOKEN_PATH" "$MLFLOW_TRACKING_PASSWORD"']
    done = subprocess.run(["sh", "-eu", "-c", *given], capture_output=True, text=True, check=True)
    assert done.stdout == f"{cluster.token_file} secret"


@pytest.mark.slow
def test_its_mlflow_keeps_runs_and_users_in_the_home_whatever_its_path_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Home(tmp_path / ODD)
    cluster = LocalCluster.of_home(home)
    cluster.path.mkdir(parents=True)
    cluster.password_file.write_text("a password for tests")
    try:
        monkeypatch.setenv("MLFLOW_TRACKING_USERNAME", "admin")
        monkeypatch.setenv("MLFLOW_TRACKING_PASSWORD", "a password for tests")
        cluster.mlflow = f"http://127.0.0.1:{find_free_ports(1)[0]}"
        cluster._start_and_wait([local.mlflow_part(cluster, home)], print)
        client = connect_to_mlflow(cluster.mlflow)
        run = client.create_run(client.create_experiment("one"))
        client.log_text(run.info.run_id, "mine", "note.txt")
        assert (cluster.path / "mlflow-users.db").stat().st_size > 0
    finally:
        cluster.stop_cluster()
    assert {path.name for path in home.path.iterdir()} == {".cluster", "mlflow.db", "artifacts"}
    assert [path.read_text() for path in home.artifacts_folder.rglob("note.txt")] == ["mine"]
    assert list(tmp_path.iterdir()) == [home.path]


DRIVER = """\
import signal, sys, time


def stop(*_):
    open(sys.argv[1], "w").write("in good order")
    sys.exit()


signal.signal(signal.SIGTERM, stop)
print("runs", flush=True)
time.sleep(100)
"""

NODE = """\
import subprocess, sys
given = {"stdin": subprocess.PIPE, "env": {}, "start_new_session": True}
worker = subprocess.Popen([sys.executable, "-S", "-c", "input()"], **given)
print(worker.pid, flush=True)
worker.wait()
"""


@pytest.mark.slow
def test_what_runs_is_found_without_the_file_and_drivers_stop_first(tmp_path: Path) -> None:
    """Of a node its workers too, that have no mark; and nothing of another cluster."""
    cluster, word = LocalCluster(tmp_path / ".cluster"), tmp_path / "word"
    cluster.path.mkdir()
    for name in ("state.json", "token", "mlflow-password", "mlflow-auth.ini", "mlflow-users.db-wal", "head.log"):
        (cluster.path / name).write_text("{")
    marked = {"STUDY_CLUSTER": cluster.cluster_mark}
    given = ((DRIVER, {**marked, RAY_JOB_VARIABLE: "{}"}), (NODE, marked), (NODE, {"STUDY_CLUSTER": "another"}))
    started = [
        subprocess.Popen([sys.executable, "-S", "-c", script, str(word)], env=env, stdout=subprocess.PIPE, text=True)
        for script, env in given
    ]
    said = [process.stdout.readline() if process.stdout else "" for process in started]
    ended = [started[0].pid, started[1].pid, int(said[1])]
    stays = [started[2].pid, int(said[2])]
    try:
        assert LocalCluster.of_home_to_stop(Home(tmp_path)).stop_cluster() == 3
        assert word.read_text() == "in good order"
        assert not any(StartedProcess.from_pid("one", pid).is_alive for pid in ended)
        assert all(StartedProcess.from_pid("one", pid).is_alive for pid in stays)
        assert [path.name for path in cluster.path.iterdir()] == ["head.log"]
    finally:
        for pid in stays:
            os.kill(pid, signal.SIGKILL)
        for process in started:
            process.communicate()


def test_a_cluster_of_another_machine_is_left_alone(tmp_path: Path) -> None:
    cluster = LocalCluster(
        tmp_path / ".cluster", host="elsewhere", processes=[StartedProcess("head", 1, "1", "its kernel")]
    )
    cluster.path.mkdir()
    cluster.save_cluster_state()
    with pytest.raises(UserError, match="its cluster was started on elsewhere; there: study cluster down"):
        LocalCluster.of_home_to_stop(Home(tmp_path))
    with pytest.raises(UserError, match="elsewhere"):
        LocalCluster.of_home(Home(tmp_path)).start_cluster(Home(tmp_path), 1, 1)
    assert (cluster.path / "state.json").exists()


def test_of_two_that_start_a_cluster_at_once_one_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It starts nothing, and leaves what the other has made."""
    home = Home(tmp_path)
    begun, go_on, started = threading.Event(), threading.Event(), []

    def start_all(self: LocalCluster, *given: object) -> None:
        started.append(self)
        begun.set()
        assert go_on.wait(20)

    monkeypatch.setattr(LocalCluster, "_start_all_parts", start_all)
    first = threading.Thread(target=lambda: LocalCluster.of_home(home).start_cluster(home, 1, 1))
    first.start()
    assert begun.wait(20)
    with pytest.raises(UserError, match="is being started"):
        LocalCluster.of_home(home).start_cluster(home, 1, 1)
    go_on.set()
    first.join()
    LocalCluster.of_home(home).start_cluster(home, 1, 1)
    assert len(started) == 2
