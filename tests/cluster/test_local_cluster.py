"""`study cluster up` and `down`: what is told, and that nothing stays behind, whatever dies or is damaged."""

import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from command import Command

from study.cluster.driver_job import DRIVER_MODULE
from study.cluster.local import LocalCluster, find_cluster_processes, joined_node_names
from study.home.folder import Home
from study.upstream.ray_internals import RAY_SUBFOLDER

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

LONG = ["--set", "search.trials=40", "--set", "train.epochs=40", "--set", "search.early_stopping={}"]


@pytest.fixture
def command(tmp_path: Path) -> Iterator[Command]:
    command = Command(tmp_path / "home", tmp_path, patience=600)
    yield command
    LocalCluster.of_home_to_stop(Home(command.home)).stop_cluster()


def left(command: Command, scratch: str) -> list[object]:
    """What is left of a cluster but its logs."""
    folder = command.home / ".cluster"
    files = [path.name for path in folder.iterdir() if path.suffix != ".log"]
    return [
        *find_cluster_processes(str(folder), scratch),
        *files,
        *([scratch] if scratch and Path(scratch).exists() else []),
    ]


NOT_NODE_1 = """\
import os, sys
if "--node-name=node-1" in sys.orig_argv:
    print("this machine has no room for node-1", file=sys.stderr, flush=True)
    os._exit(1)
"""


def test_a_node_that_does_not_come_up_is_one_message_and_nothing_is_left(command: Command) -> None:
    (command.work / "sitecustomize.py").write_text(NOT_NODE_1)
    done = command("cluster", "up", "--nodes", "1", PYTHONPATH=str(command.work))
    log = command.home / ".cluster" / "node-1.log"
    last = "\n  this machine has no room for node-1" * 3
    after = f"nothing of the cluster is left but logs in {log.parent}"
    assert done.stderr == f"error: node-1 does not come up. The end of {log}:{last}\n{after}\n"
    assert done.returncode == 1
    told = [line.split("  ", 1)[1] for line in done.stdout.splitlines()]
    lines = [line for line in told if not line.startswith("still waiting for ")]  # on a busy machine
    assert lines[0] == "starting mlflow, head"
    assert sorted(lines[1:3]) == ["head runs", "mlflow runs"]
    why = f"node-1 has ended by itself: this machine has no room for node-1 (log: {log})"
    assert lines[3:] == ["starting node-1", *(f"{why}; attempt {n}" for n in (2, 3))]
    assert left(command, "") == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_in_the_midst_leaves_nothing(number: signal.Signals, command: Command) -> None:
    process, folder = command.start("cluster", "up"), command.home / ".cluster"
    state = folder / "state.json"
    while not (state.exists() and "head" in state.read_text(encoding="utf-8")):
        time.sleep(0.05)
        assert process.poll() is None
    scratch = LocalCluster.of_home(Home(command.home)).scratch
    while (
        len(find_cluster_processes(str(folder), scratch)) < 3
    ):  # MLflow, the head, and the first that the head has started
        time.sleep(0.05)
        assert process.poll() is None
    process.send_signal(number)
    out, err = process.communicate(timeout=120)
    assert (process.returncode, err) == (130, "stopped; nothing of the cluster is left\n")
    assert out.splitlines()[-1].endswith("stopping what was started")
    assert left(command, scratch) == []


def test_a_head_that_is_killed_ends_the_driver_and_the_followed_log_with_a_line_each(command: Command) -> None:
    """Then the state is damaged, and what still runs is found and stopped all the same."""
    up = command("cluster", "up", "--nodes", "1", "--json")
    assert (up.returncode, up.stderr) == (0, "")
    address = json.loads(up.stdout)["dashboard"]
    cluster = LocalCluster.of_home(Home(command.home))
    shell = cluster.client_environment()
    follows = command.start("submit", "quickstart", *LONG, "--address", address, "--follow", **shell)
    command.wait_for(
        "quickstart", lambda record: sum(trial.state == "complete" for trial in record.trials.values()) > 0
    )
    (driver,) = drivers(cluster)
    head = next(part for part in cluster.processes if part.name == "head")
    next(one for one in psutil.Process(head.pid).children(recursive=True) if one.name() == "gcs_server").kill()
    _, err = follows.communicate(timeout=120)
    assert follows.returncode == 1
    assert err.startswith(f"error: the connection to {address} was lost. quickstart may go on or not; no trial that")
    assert f"study status quickstart --address {address}" in err
    assert err.count("\n") == 1

    psutil.wait_procs([driver], timeout=120)
    (log,) = Path(cluster.scratch).glob(f"{RAY_SUBFOLDER}/session_2*/logs/job-driver-study-quickstart.log")
    words = log.read_text(encoding="utf-8").splitlines()[-1]
    assert words.startswith("error: Ray's head, on the driver's machine, has ended. Nothing is lost; ") or (
        words.startswith("error: Ray's head (its gcs_server, at 127.0.0.1:") and "Nothing is lost" in words
    )
    assert "study resume quickstart --address URL" in words
    assert any(trial.state == "complete" for trial in command.load("quickstart")[1].trials.values())

    (cluster.path / "state.json").write_text("{")
    for refused in (command("cluster", "status"), command("cluster", "up")):
        assert refused.returncode == 2
        assert "state.json: damaged. What it started is ended by: study cluster down" in refused.stderr
    down = command("cluster", "down")
    assert down.returncode == 0, down.stderr
    assert down.stdout.startswith("stopped ")
    assert left(command, "") == []
    shutil.rmtree(cluster.scratch)  # the state told of it
    assert (cluster.path / "head.log").stat().st_size > 0
    assert command("cluster", "down").stdout == "nothing to stop\n"


def drivers(cluster: LocalCluster) -> list[psutil.Process]:
    """The processes that run studies as jobs of a cluster."""
    ours = {one.pid for one in find_cluster_processes(cluster.cluster_mark, cluster.scratch)}
    every = [one for one in psutil.process_iter(["cmdline"]) if one.pid in ours]
    return [one for one in every if (one.info["cmdline"] or [])[1:4] == ["-m", DRIVER_MODULE, "run"]]


@pytest.mark.parametrize("change", [{"began": "1"}, {"machine": "before a reboot"}])
def test_another_process_that_has_a_number_of_the_clusters_is_left_alone(
    change: dict[str, str], command: Command
) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, start_new_session=True) as other:
        cluster = LocalCluster.of_home(Home(command.home))
        cluster.path.mkdir(parents=True)
        cluster.token_file.write_text("secret")
        process = {"name": "head", "pid": other.pid, "began": "1", "machine": "", **change}
        (cluster.path / "state.json").write_text(json.dumps({"path": "", "processes": [process]}))
        assert "all of it has ended" in command("cluster", "status").stdout
        down = command("cluster", "down")
        assert (down.returncode, down.stdout) == (0, "nothing ran; its secrets and files are removed\n")
        assert other.poll() is None
        assert left(command, "") == []
        other.kill()


@pytest.mark.long
def test_a_killed_node_is_missed_within_seconds(command: Command) -> None:
    done = command("cluster", "up", "--nodes", "2")
    assert done.returncode == 0, done.stderr
    cluster = LocalCluster.of_home(Home(command.home))
    top = next(psutil.Process(part.pid) for part in cluster.processes if part.name == "node-1")
    next(one for one in top.children(recursive=True) if one.name() == "raylet").kill()
    deadline = time.monotonic() + 60
    while "node-1" in (there := joined_node_names(cluster)):
        assert time.monotonic() < deadline, "it was 180 s"
        time.sleep(1)
    assert "node-2" in there
    assert command("cluster", "down").returncode == 0
