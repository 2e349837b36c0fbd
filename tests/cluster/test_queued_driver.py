"""Jobs that wait for their turn, as processes; this one stands for the drivers that run."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace

import pytest

import study
from study.cluster import queued_driver as room
from study.cluster.job import Job
from study.cluster.jobs import with_places
from study.cluster.queued_driver import has_room
from study.home.driver_queue import Standing, Turn, state_file
from study.home.lease import machine
from study.home.presence import Presence, members
from study.home.sharing import Sharing

CLUSTER = "127.0.0.1:6379"


class Waiting:
    """A home of one driver at a time, and jobs that wait there."""

    def __init__(self, home: Path) -> None:
        self.home, self.queue, self.jobs = home, home / ".queue", dict[str, subprocess.Popen[bytes]]()
        home.mkdir()
        (home / "sharing.yaml").write_text("drivers: 1\n")

    def running(self, job: str) -> Presence:
        """A driver that runs, until it is closed."""
        there = Presence(self.queue / "turns", job)
        there.tell(asdict(Turn(there.id, job, "ann", CLUSTER, machine(), 0, 0.0, time.time())))
        return there

    def submit(self, job: str, owner: str = "ann", **standing: int) -> "subprocess.Popen[bytes]":
        """A job whose driver says the version, once it is its turn."""
        metadata = {"job_submission_id": job, **Standing(**standing).tags()}
        variables = {"STUDY_HOME": str(self.home), "RAY_ADDRESS": CLUSTER, "STUDY_OWNER": owner}
        variables["RAY_JOB_CONFIG_JSON_ENV_VAR"] = json.dumps({"metadata": metadata})
        with self._output(job).open("w") as output:
            self.jobs[job] = subprocess.Popen(
                [sys.executable, "-m", "study.cluster.queued_driver", "--version"],
                env={**os.environ, **variables},
                stdout=output,
            )
        return self.jobs[job]

    def said(self, job: str) -> str:
        """What a job has printed so far."""
        return self._output(job).read_text()

    def _output(self, job: str) -> Path:
        return self.home.with_name(f"{job}.out")

    def waiting(self) -> list[str]:
        file = state_file(self.queue, CLUSTER)
        return list(json.loads(file.read_text())["waiting"]) if file.exists() else []

    def until(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 60
        while not condition():
            assert time.monotonic() < deadline
            time.sleep(0.02)


@pytest.fixture
def there(tmp_path: Path) -> Iterator[Waiting]:
    found = Waiting(tmp_path / "home")
    yield found
    for job in found.jobs.values():
        job.kill()
        job.wait(60)


@pytest.mark.slow
def test_jobs_wait_in_order_and_become_their_drivers(there: Waiting) -> None:
    """One is killed while it waits, one is stopped, the owner who runs nothing goes before the one who does."""
    runs = there.running("runs")
    there.submit("later")
    there.until(lambda: there.waiting() == ["later"])
    there.submit("killed", priority=1)
    other = there.submit("other", owner="bob")
    stopped, first = there.submit("stopped", priority=3), there.submit("first", priority=2)
    there.until(lambda: len(there.waiting()) == 5)
    assert there.waiting() == ["stopped", "first", "killed", "other", "later"]
    there.jobs["killed"].send_signal(signal.SIGKILL)
    stopped.send_signal(signal.SIGTERM)
    assert (stopped.wait(60), there.jobs["killed"].wait(60)) == (130, -signal.SIGKILL)
    there.until(lambda: there.waiting() == ["first", "other", "later"])
    left = {"first": first, "other": other, "later": there.jobs["later"]}
    # a job is in the queue before it has looked at it, and says that it waits only where it then has to
    there.until(lambda: all("waits for its turn: place" in there.said(job) for job in left))
    runs.close()
    for name, job in left.items():
        assert job.wait(60) == 0
        assert study.__version__ in there.said(name)
    assert "nothing was begun" in there.said("stopped")
    assert there.waiting() == []
    assert members(there.queue / "turns", Turn) == []


@pytest.mark.slow
def test_settings_that_cannot_be_used_are_told_and_leave_the_last_ones(there: Waiting) -> None:
    (there.home / "sharing.yaml").write_text("drivers: none of yours\n")
    there.submit("one").wait(60)
    out = there.said("one")
    assert "sharing.yaml: drivers: 'none of yours' given, allowed is a valid integer. It is not used" in out
    assert study.__version__ in out


def turn(began: float | None) -> Turn:
    return Turn("a", "a", "ann", CLUSTER, "here", 0, 0.0, began)


def test_room_is_what_the_memory_carries(monkeypatch: pytest.MonkeyPatch) -> None:
    """One driver always has; a young one will have its memory yet."""
    monkeypatch.setattr(room, "free_memory", lambda: int(1.5 * room.DRIVER))
    old, young = turn(0.0), turn(1000.0)
    assert has_room([], Sharing(drivers=1), 1000.0)
    assert has_room([old], Sharing(drivers=2), 1000.0)
    assert not has_room([young], Sharing(drivers=2), 1000.0)
    assert not has_room([old, old], Sharing(drivers=2), 1000.0)


@pytest.mark.parametrize(("gib", "cores", "most"), [(1, 8, 1), (8, 8, 6), (8, 1, 4), (64, 4, 16)])
def test_the_most_drivers_follow_from_memory_and_cores(
    monkeypatch: pytest.MonkeyPatch, gib: int, cores: int, most: int
) -> None:
    monkeypatch.setattr(room, "memory_limit", lambda: gib * 2**30)
    monkeypatch.setattr("psutil.virtual_memory", lambda: SimpleNamespace(total=2**40))
    monkeypatch.setattr("os.cpu_count", lambda: cores)
    assert room.most(Sharing()) == most
    assert room.most(Sharing(drivers=9)) == 9


def job(name: str, state: str = "running", node: str | None = "n1") -> Job:
    return Job(f"study-{name}", name, "hash", 1, state, "", 0.0, None, "python", {"STUDY_OWNER": "ann"}, node)


def test_jobs_have_their_places() -> None:
    told = json.dumps({"waiting": ["study-b", "study-a", "study-over"], "running": ["study-c"]})
    jobs = [job("a"), job("b"), job("c"), job("over", "stopped")]
    found = with_places(lambda node, name: [told[:9].encode(), told[9:].encode()], jobs)
    assert [(one.state, one.place) for one in found] == [
        ("waiting", 2),
        ("waiting", 1),
        ("running", None),
        ("stopped", None),
    ]
    assert found[0].owner == "ann"


@pytest.mark.parametrize("told", ["", "[]", "{}", '{"waiting": 3}', "no such file"])
def test_where_no_queue_is_told_jobs_are_what_ray_says(told: str) -> None:
    jobs = [job("a"), job("b", "pending", None)]
    assert with_places(lambda node, name: [told.encode()], jobs) == jobs
