"""A Ray of a driver's own that does not start, starts slowly, or is not wanted any more: nothing of it stays."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from own_process import as_driver

from study.files import RUN
from study.places import for_sockets
from study.sweep.own_ray import MAX_FOLDER_CHARACTERS, STEP_TIMEOUT_S, OwnRay, RayStartError, StartWaiter, no_room
from study.upstream.environment import ProcessKind, variables
from study.upstream.ray_internals import SESSION

FAILS = """
import json, os, signal, sys, time
import psutil
from ray._private import services
from study.sweep import own_ray
from study.sweep.ray_runtime import ray_runtime

failures, told, alive = int(sys.argv[1]), [], []
start = services.start_ray_process

def start_process(command, process_type, **options):
    alive.append([process.name() for process in psutil.Process().children(recursive=True)])
    information = start(command, process_type, **options)
    if process_type == "raylet" and len(alive) <= 2 * failures:
        information.process.kill()
    return information

services.start_ray_process = start_process
outcome = "runs"
try:
    with ray_runtime(None, None, tell=told.append):
        import ray
        assert ray.is_initialized()
except own_ray.RayStartError as error:
    outcome = str(error)
left = [process.name() for process in psutil.Process().children(recursive=True)]
print(json.dumps({"outcome": outcome, "told": told, "alive": alive, "left": left}))
"""


def fails(times: int) -> Any:
    """What becomes of a start whose raylet is killed as soon as it is there, so many times."""
    done = as_driver(FAILS, str(times))
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


@pytest.mark.slow
def test_a_start_that_fails_is_ended_whole_before_the_next() -> None:
    found = fails(1)
    assert found["outcome"] == "runs"
    assert found["told"] == ["starting Ray, attempt 2", "Ray runs"]
    assert found["alive"] == [[], ["gcs_server"], [], ["gcs_server"]]
    assert found["left"] == []


@pytest.mark.slow
def test_after_three_starts_it_is_told_why_and_nothing_is_left() -> None:
    found = fails(3)
    assert found["outcome"].startswith("Ray's raylet was ended by SIGKILL")
    assert found["told"] == ["starting Ray, attempt 2", "starting Ray, attempt 3"]
    assert found["alive"][::2] == [[], [], []]
    assert found["left"] == []


@pytest.fixture
def ray(tmp_path: Path) -> Any:
    """One whose only process sleeps."""
    own = OwnRay(tmp_path)
    own.add("gcs_server", subprocess.Popen([sys.executable, "-c", "import time; time.sleep(100)"]))
    yield own
    own.kill(own.all())
    assert own.ended() == "Ray's gcs_server was ended by SIGKILL"


def never() -> bool:
    return False


def test_patience_ends_with_the_process_or_the_wish(ray: OwnRay) -> None:
    with pytest.raises(KeyboardInterrupt):
        StartWaiter(ray, print, lambda: True).wait(never)
    StartWaiter(ray, print, never).wait(lambda: True)
    threading.Timer(0.2, ray.started["gcs_server"].terminate).start()
    with pytest.raises(RayStartError, match="Ray's gcs_server was ended by SIGTERM"):
        StartWaiter(ray, print, never).wait(never)
    ray.started["gcs_server"].wait()
    ray.started["gcs_server"] = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(100)"])


@pytest.mark.slow
def test_patience_counts_no_time_in_which_the_processes_wait_for_a_processor(
    ray: OwnRay, monkeypatch: pytest.MonkeyPatch
) -> None:
    began, told = time.monotonic(), list[str]()
    monkeypatch.setattr("study.sweep.own_ray.STEP_TIMEOUT_S", 0.3)
    monkeypatch.setattr("study.sweep.own_ray.SLOW_START_S", 0.5)
    monkeypatch.setattr(ray, "starved", lambda: min(time.monotonic() - began, 1.0))
    with pytest.raises(RayStartError, match=r"nothing happened in 0\.3 s"):
        StartWaiter(ray, told.append, never).wait(never)
    assert time.monotonic() - began > 1.2
    assert len(told) == 1
    assert told[0].startswith("starting Ray; this machine is busy (load ")
    assert STEP_TIMEOUT_S >= 60


@pytest.mark.skipif(not Path("/proc/self/schedstat").exists(), reason="this system does not say")
def test_a_process_that_waits_for_a_processor_is_seen_to(tmp_path: Path) -> None:
    """Three that compute on one processor: each waits most of the time."""
    own, spin = OwnRay(tmp_path), "import os\nos.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\nwhile True: pass"
    for name in ("one", "two", "three"):
        own.add(name, subprocess.Popen([sys.executable, "-c", spin]))
    try:
        deadline = time.monotonic() + 100
        while own.starved() <= 0.5:  # until all three compute
            assert time.monotonic() < deadline
            time.sleep(0.2)
    finally:
        own.kill(own.all())


@pytest.mark.slow
def test_a_driver_that_is_killed_leaves_no_process() -> None:
    script = (
        "import time\nfrom study.sweep.ray_runtime import ray_runtime\n"
        "with ray_runtime(None, None):\n    print('runs', flush=True)\n    time.sleep(100)"
    )
    place = tempfile.mkdtemp(dir="/tmp")
    settings = {**os.environ, **variables(ProcessKind.DRIVER, ProcessKind.OWN_RAY), "TMPDIR": place}
    with subprocess.Popen([sys.executable, "-c", script], env=settings, stdout=subprocess.PIPE, text=True) as driver:
        import psutil

        try:
            assert driver.stdout is not None
            assert driver.stdout.readline() == "runs\n"
            started = psutil.Process(driver.pid).children(recursive=True)
            assert {process.name() for process in started} >= {"gcs_server", "raylet"}
            (folder,) = Path(place).glob(f"{RUN}*")
            assert folder.stat().st_mode & 0o077 == 0
        finally:
            driver.kill()
    _, alive = psutil.wait_procs(started, timeout=100)
    assert alive == []


SIGTERM = """
import os, signal, sys, time
from study.sweep.ray_runtime import ray_runtime
came = []
signal.signal(signal.SIGTERM, lambda *_: came.append(1))
with ray_runtime(None, None):
    os.kill(os.getpid(), signal.SIGTERM)
    end = time.monotonic() + 4
    while time.monotonic() < end:
        time.sleep(0.1)
    print(came)
"""


@pytest.mark.slow
def test_sigterm_is_the_drivers_alone() -> None:
    """Ray's C++ printed, and ended the process by SIGABRT three seconds later: `study stop` was a crash."""
    done = as_driver(SIGTERM)
    assert (done.returncode, done.stdout, done.stderr) == (0, "[1]\n", "")


DIES = """
import os, signal, time
from study.sweep.ray_runtime import ray_runtime
with ray_runtime(None, None):
    import ray

    @ray.remote(max_retries=0)
    def dies():
        os.kill(os.getpid(), signal.SIGKILL)

    try:
        ray.get(dies.remote())
    except ray.exceptions.WorkerCrashedError:
        print("died")
    time.sleep(1)
"""


@pytest.mark.slow
def test_ray_prints_nothing_of_a_process_that_dies() -> None:
    """It did, in colours, in the midst of a study that was to be quiet."""
    done = as_driver(DIES)
    assert (done.returncode, done.stdout, done.stderr) == (0, "died\n", "")


def test_a_long_temporary_folder_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray refuses a socket whose path has more than 107 characters, 103 elsewhere than on Linux."""
    with tempfile.TemporaryDirectory(dir="/tmp") as above:
        for length in range(len(above) + 2, 120):
            (place := Path(f"{above}/{'x' * (length - len(above) - 1)}")).mkdir()
            monkeypatch.setattr(tempfile, "tempdir", str(place))
            chosen = for_sockets(MAX_FOLDER_CHARACTERS)
            assert len(f"{chosen}/{RUN}12345678") + SESSION <= 103
            assert chosen in ("/tmp", str(place))
    assert chosen == "/tmp"


def test_a_folder_without_room_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert no_room(tmp_path) == ""
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: SimpleNamespace(free=8192))
    assert no_room(tmp_path).startswith(f"\n{tmp_path.parent}: No space left on device. Make room there, or ")
