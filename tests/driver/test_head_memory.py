"""A driver's job ends at once where the head has no memory for one more: beside processes that look like drivers."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from groups import grouped

import study
from study.cluster.driver_job import DRIVER_MODULE
from study.driver import head_memory
from study.driver.head_memory import (
    DRIVER_MEMORY_BYTES,
    check_memory_for_driver,
    free_machine_memory,
    start_times_of_older_drivers,
)
from study.errors import UserError
from study.upstream import cgroup

WAITS = "import os, sys; os.fork() if 'fork' in sys.argv else None; print(flush=True); sys.stdin.read()"

Begin = Callable[..., psutil.Process]


@pytest.fixture
def begin() -> Iterator[Begin]:
    """Starts a process with a driver's command line, and gives it once it is there."""
    begun: list[subprocess.Popen[str]] = []

    def start(*words: str) -> psutil.Process:
        command = [sys.executable, "-c", WAITS, "-m", DRIVER_MODULE, *words]
        begun.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
        out = begun[-1].stdout
        assert out is not None
        out.readline()
        return psutil.Process(begun[-1].pid)

    yield start
    for process in begun:
        process.communicate()


@pytest.fixture(autouse=True)
def _nobody_elses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other sessions on this machine may have drivers."""
    every = psutil.process_iter
    mine = psutil.Process()
    monkeypatch.setattr("psutil.process_iter", lambda names: [one for one in every(names) if mine in one.parents()])


def test_drivers_that_began_before_are_counted_once_each(begin: Begin) -> None:
    first = begin()
    second, third = begin("fork"), begin()
    assert start_times_of_older_drivers(first) == []
    assert start_times_of_older_drivers(third) == [first.create_time(), second.create_time()]


def test_a_driver_alone_begins_whatever_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(head_memory, "free_machine_memory", lambda: 0)
    check_memory_for_driver()


@pytest.mark.parametrize(("age", "needed"), [(0.0, 3), (600.0, 1)])
def test_a_driver_leaves_room_for_those_that_have_just_begun(
    begin: Begin, monkeypatch: pytest.MonkeyPatch, age: float, needed: int
) -> None:
    began = [begin().create_time() - age for _ in range(2)]
    monkeypatch.setattr(head_memory, "start_times_of_older_drivers", lambda driver: began)
    monkeypatch.setattr(head_memory, "free_machine_memory", lambda: needed * DRIVER_MEMORY_BYTES)
    check_memory_for_driver()
    monkeypatch.setattr(head_memory, "free_machine_memory", lambda: needed * DRIVER_MEMORY_BYTES - 1)
    with pytest.raises(
        UserError, match=rf"GiB of memory are free on {os.uname().nodename}, .* takes 1 GiB, and 2 drivers"
    ):
        check_memory_for_driver()


def test_the_job_of_a_driver_is_the_command_itself() -> None:
    done = subprocess.run(
        [sys.executable, "-m", DRIVER_MODULE, "--version"], capture_output=True, text=True, check=True
    )
    assert study.__version__ in done.stdout


def test_what_a_container_has_of_files_is_free(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It gives them up when it needs the memory; a head that has read its data would else refuse further studies."""
    monkeypatch.setattr(cgroup, "FILE_SYSTEM_ROOT", grouped(tmp_path, limit=1000, used=995, idle=600))
    assert free_machine_memory() == 605
    (tmp_path / "sys/fs/cgroup/pod/memory.stat").unlink()
    assert free_machine_memory() == 5
