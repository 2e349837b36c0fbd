"""A Ray of a driver's own that does not start, starts slowly, or is not wanted any more: nothing of it stays."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest
from own_process import as_driver

from study.sweep import own_ray
from study.sweep.own_ray import MAX_RAY_FOLDER_CHARACTERS, RayProcesses, RayStartWaiter, no_disk_room_text
from study.upstream.cgroup import count_usable_processors
from study.upstream.environment import ProcessKind, variables_of_processes
from study.upstream.ray_internals import MAX_SESSION_PATH_CHARACTERS, RAY_FOLDER_VARIABLE, RAY_JOB_VARIABLE
from study.upstream.scratch import RUN_FOLDER_PREFIX, SCRATCH_FOLDER_VARIABLE, processes_of_scratch_folder
from study.writable_folders import ray_socket_folder

FAILS = """
import json, sys
import psutil
from ray._private import services
from study.sweep import own_ray
from study.sweep.ray_runtime import start_or_join_ray

failures, told, alive, raylets = int(sys.argv[1]), [], [], 0
start = services.start_ray_process

def of_ray():
    names = [process.name() for process in psutil.Process().children(recursive=True) if process.is_running()]
    return [name for name in names if name in own_ray.NEEDED_RAY_PROCESSES]

def start_process(command, process_type, **options):
    global raylets
    if process_type == "gcs_server":
        alive.append(of_ray())
    information = start(command, process_type, **options)
    if process_type == "raylet":
        raylets += 1
        if raylets <= failures:
            information.process.kill()
    return information

services.start_ray_process = start_process
outcome = "runs"
try:
    with start_or_join_ray(None, None, tell=told.append):
        import ray
        assert ray.is_initialized()
except own_ray.RayStartError as error:
    outcome = str(error)
told = [line for line in told if "busy" not in line]
print(json.dumps({"outcome": outcome, "told": told, "alive": alive, "left": of_ray()}))
"""


def fails(times: int) -> Any:
    """What becomes of a start whose raylet is killed as soon as it is there, so many times."""
    with tempfile.TemporaryDirectory(dir="/tmp") as apart:  # others would wait for each of these starts
        done = as_driver(FAILS, str(times), TMPDIR=apart, RAY_raylet_start_wait_time_s="1")  # Ray waits 30 s for one
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


@pytest.mark.slow
def test_a_start_that_fails_is_ended_whole_before_the_next() -> None:
    found = fails(1)
    assert found["outcome"] == "runs"
    assert found["told"] == ["starting Ray, attempt 2", "Ray runs"]
    assert found["alive"] == [[], []]
    assert found["left"] == []


@pytest.mark.long
def test_after_three_starts_it_is_told_why_and_nothing_is_left() -> None:
    found = fails(3)
    assert found["outcome"].startswith("Ray's raylet was ended by SIGKILL")
    assert found["told"] == ["starting Ray, attempt 2", "starting Ray, attempt 3"]
    assert found["alive"] == [[], [], []]
    assert found["left"] == []


def test_how_a_needed_process_has_ended_is_told(tmp_path: Path) -> None:
    own, sleeps = RayProcesses(tmp_path), shutil.copy("/bin/sleep", tmp_path / "gcs_server")
    with subprocess.Popen([sleeps, "100"], env={SCRATCH_FOLDER_VARIABLE: str(tmp_path)}) as process:
        while not processes_of_scratch_folder(tmp_path):
            pass
        own.find_started_processes()
        assert own.describe_ended_process() is None
        process.kill()
        while own.describe_ended_process() is None:
            pass
        assert own.describe_ended_process() == "Ray's gcs_server was ended by SIGKILL"
        own.kill_processes()
        assert processes_of_scratch_folder(tmp_path) == []
        assert own.describe_ended_process() == "Ray's gcs_server has ended"


def test_ray_gets_its_variables_and_none_of_a_job(monkeypatch: pytest.MonkeyPatch) -> None:
    """They stay where the start is given up, which goes on in its thread."""
    monkeypatch.setenv(RAY_JOB_VARIABLE, "{}")
    monkeypatch.setenv(RAY_FOLDER_VARIABLE, "before")
    before = dict(os.environ)
    with own_ray._set_ray_process_variables({RAY_FOLDER_VARIABLE: "/there"}):
        assert (os.environ[RAY_FOLDER_VARIABLE], RAY_JOB_VARIABLE in os.environ) == ("/there", False)
    assert dict(os.environ) == before
    try:
        raise KeyboardInterrupt
    except KeyboardInterrupt:
        with own_ray._set_ray_process_variables({RAY_FOLDER_VARIABLE: "/there"}):
            pass
    assert dict(os.environ) == before, "another interrupt than its own is no matter"
    with pytest.raises(KeyboardInterrupt), own_ray._set_ray_process_variables({RAY_FOLDER_VARIABLE: "/there"}):
        raise KeyboardInterrupt
    assert os.environ[RAY_FOLDER_VARIABLE] == "/there"


def test_a_start_is_given_up_where_nobody_wants_it_and_a_long_one_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    told = list[str]()
    with pytest.raises(KeyboardInterrupt):
        RayStartWaiter(told.append, lambda: True).tell_if_slow()
    monkeypatch.setattr("study.sweep.own_ray.SLOW_START_NOTICE_S", 0.0)
    waiter = RayStartWaiter(told.append, lambda: False)
    waiter.tell_if_slow()
    waiter.tell_if_slow()
    assert len(told) == 1
    assert re.fullmatch(r"starting Ray; this machine (is busy, with|has) a load of \d+\.\d on \d+ CPUs?", told[0])


def test_one_ray_starts_at_a_time_below_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def waiter(wanted: bool = True) -> RayStartWaiter:
        return RayStartWaiter(told.append, lambda: not wanted)

    told = list[str]()
    monkeypatch.setattr("study.sweep.own_ray.SLOW_START_NOTICE_S", 0.0)
    with waiter().wait_for_turn(tmp_path):
        with pytest.raises(KeyboardInterrupt), waiter(wanted=False).wait_for_turn(tmp_path):
            pytest.fail("it was not its turn")
        (other := tmp_path / "other").mkdir()
        with waiter(wanted=False).wait_for_turn(other):
            pass  # no wait
        monkeypatch.setattr("study.sweep.own_ray.START_TURN_TIMEOUT_CPU_S", 0.1 * count_usable_processors())
        began = time.monotonic()
        with waiter().wait_for_turn(tmp_path):
            assert time.monotonic() - began >= 0.1
        assert told == ["starting Ray; other studies of this machine start theirs first"]
    for place in (tmp_path, tmp_path / "none"):
        with waiter(wanted=False).wait_for_turn(place):
            pass  # a turn ends with its block, and where no folder can be locked there are none


DRIVER = """
import time
from study.sweep.ray_runtime import start_or_join_ray
with start_or_join_ray(None, None):
    print("runs", flush=True)
    time.sleep(100)
"""


@contextmanager
def driver() -> Iterator[tuple["subprocess.Popen[str]", list[psutil.Process], Path]]:
    """A driver whose Ray runs, the processes that it has started, and their folder."""
    place = Path(tempfile.mkdtemp(dir="/tmp"))
    settings = {**os.environ, **variables_of_processes(ProcessKind.DRIVER, ProcessKind.OWN_RAY), "TMPDIR": str(place)}
    with subprocess.Popen([sys.executable, "-c", DRIVER], env=settings, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "runs\n"
            (folder,) = place.glob(f"{RUN_FOLDER_PREFIX}*")
            yield process, psutil.Process(process.pid).children(recursive=True), folder
        finally:
            process.kill()
            shutil.rmtree(place, ignore_errors=True)


def guard_of(processes: list[psutil.Process]) -> psutil.Process:
    (found,) = [one for one in processes if "remove_after_death" in " ".join(one.cmdline())]
    return found


@pytest.mark.slow
def test_a_driver_that_is_killed_leaves_nothing_and_others_go_on() -> None:
    """Ray's agents would live for as long as Ray looks for its head, ten minutes here (Ray's issue 52385)."""
    with driver() as (killed, started, folder), driver() as (_, others, _):
        names = {process.name() for process in started}
        assert names >= {"gcs_server", "raylet", "ray::DashboardAgent"}, "what would stay is there"
        assert folder.stat().st_mode & 0o077 == 0
        killed.kill()
        assert psutil.wait_procs(started, timeout=40)[1] == []
        assert not folder.exists()
        assert psutil.wait_procs(others, timeout=1)[0] == []


@pytest.mark.slow
def test_what_a_driver_leaves_without_its_guard_the_next_removes() -> None:
    with driver() as (killed, started, folder):
        guard_of(started).kill()
        killed.kill()
        killed.wait()
        clear = "from study.upstream import scratch; print(*scratch.remove_abandoned_scratch_folders())"
        settings = {**os.environ, "TMPDIR": str(folder.parent)}
        done = subprocess.run([sys.executable, "-c", clear], env=settings, capture_output=True, text=True, timeout=100)
        assert done.stdout.split() == [str(folder)], done.stderr
        assert psutil.wait_procs(started, timeout=10)[1] == []
        assert not folder.exists()


SIGTERM = """
import os, signal, sys, time
from study.sweep.ray_runtime import start_or_join_ray
came = []
signal.signal(signal.SIGTERM, lambda *_: came.append(1))
with start_or_join_ray(None, None):
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
from study.sweep.ray_runtime import start_or_join_ray
with start_or_join_ray(None, None):
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
            chosen = ray_socket_folder(MAX_RAY_FOLDER_CHARACTERS)
            assert len(f"{chosen}/{RUN_FOLDER_PREFIX}12345678") + MAX_SESSION_PATH_CHARACTERS <= 103
            assert chosen in ("/tmp", str(place))
    assert chosen == "/tmp"


def test_a_folder_without_room_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert no_disk_room_text(tmp_path) == ""
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: SimpleNamespace(free=8192))
    assert no_disk_room_text(tmp_path).startswith(f"\n{tmp_path.parent}: No space left on device. Make room there, or ")


AFTER_ANOTHER_TOKEN = """
import os
from study.sweep.ray_runtime import start_or_join_ray

os.environ |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "a" * 64}
from ray._raylet import AuthenticationTokenLoader

assert AuthenticationTokenLoader.instance().has_token()
del os.environ["RAY_AUTH_TOKEN"], os.environ["RAY_AUTH_MODE"]
with start_or_join_ray(None, None, tell=str):
    import ray

    assert ray.is_initialized()
"""


@pytest.mark.slow
@pytest.mark.timeout(90)
def test_a_process_that_has_read_a_clusters_token_starts_a_ray_of_its_own() -> None:
    """Ray keeps the first token that it reads, and a GCS with another would refuse it for ten minutes."""
    done = as_driver(AFTER_ANOTHER_TOKEN)
    assert done.returncode == 0, done.stderr
