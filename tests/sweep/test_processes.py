"""The processes of a Ray of one's own: those that trials use, ready before the first trial, and nothing besides."""

import json
from pathlib import Path

import pytest
from own_process import as_driver

from study.sweep.own_ray import FOLDER, WORKER_TIMEOUT_S, Processes

STARTS = """
import json, psutil, ray, sys
from ray._private import node, services
theirs = [node.Node, services.start_ray_process, services.get_node]
from study.sweep.own_ray import Processes
from study.sweep.ray_runtime import ray_runtime

class Trial:
    def look(self):
        import os, sys
        return os.getpid(), "study.sweep.worker" in sys.modules, os.environ["OMP_NUM_THREADS"]

processes = Processes(2, threads=3)
with ray_runtime(None, None, processes):
    processes.wait(2, lambda: False)
    trials = [ray.remote(num_cpus=0.1)(Trial).remote() for _ in range(2)]
    seen = ray.get([trial.look.remote() for trial in trials])
    commands = [" ".join(process.cmdline()) for process in psutil.Process().children(recursive=True)]
    restored = theirs == [node.Node, services.start_ray_process, services.get_node]
    print(json.dumps({"seen": seen, "commands": commands, "restored": restored}))
"""


@pytest.mark.slow
def test_trials_find_processes_that_have_imported_what_they_need(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many as were asked for, and none of Ray's helpers that a study has no use for."""
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    done = as_driver(STARTS)
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    assert found["restored"]
    assert [loaded for _, loaded, _ in found["seen"]] == [True, True]
    assert {threads for *_, threads in found["seen"]} == {"3"}
    assert len({process for process, *_ in found["seen"]}) == 2
    workers = [one for one in found["commands"] if one.startswith("ray::")]
    assert len(workers) == 2, found["commands"]
    assert not [one for one in found["commands"] if "monitor.py" in one or "dashboard.py" in one]


def test_waiting_ends_when_all_are_ready_or_nobody_wants_them(tmp_path: Path) -> None:
    processes, folder = Processes(2, threads=1), tmp_path / "ready"
    assert processes.variables(folder)[FOLDER] == str(folder)
    processes.wait(2, lambda: True)
    (folder / "1").touch()
    (folder / "2").touch()
    processes.wait(2, lambda: False)


ASKS_FOR_MANY = """
import os, time, ray
from study.sweep.own_ray import Processes
from study.sweep.ray_runtime import ray_runtime

processes = Processes(4 * os.cpu_count(), threads=1)
with ray_runtime(None, None, processes):
    began = time.monotonic()
    processes.wait(ray.cluster_resources()["CPU"], lambda: False)
    print(time.monotonic() - began)
"""


@pytest.mark.slow
def test_more_processes_than_ray_starts_at_once_are_not_waited_for() -> None:
    """As where a trial takes half a CPU, or in a container that may use some of the machine's CPUs only."""
    done = as_driver(ASKS_FOR_MANY)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < WORKER_TIMEOUT_S
