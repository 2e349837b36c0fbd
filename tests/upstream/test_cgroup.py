"""What is read of a control group's memory, of both versions."""

import os
from pathlib import Path

import pytest
from groups import V1, V2, grouped, killed

from study.upstream import cgroup


@pytest.mark.parametrize("version", [V1, V2])
def test_a_groups_limit_room_and_kills_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    monkeypatch.setattr(cgroup, "FILE_SYSTEM_ROOT", grouped(tmp_path, version, limit=1000, used=700, idle=50))
    assert (cgroup.memory_limit_bytes(), cgroup.free_memory_bytes()) == (1000, 350)
    counter = cgroup.oom_kill_counter_file()
    assert counter is not None
    assert cgroup.read_oom_kill_count(counter) == 0
    killed(counter, 3)
    assert cgroup.read_oom_kill_count(counter) == 3
    counter.unlink()
    assert cgroup.read_oom_kill_count(counter) is None


def test_a_group_around_it_may_be_the_narrower_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the job of a batch system is around its steps."""
    monkeypatch.setattr(cgroup, "FILE_SYSTEM_ROOT", grouped(tmp_path, limit=1000, used=100))
    top = tmp_path / "sys/fs/cgroup"
    for name, text in {"memory.max": "600", "memory.current": "500"}.items():
        (top / name).write_text(text)
    assert (cgroup.memory_limit_bytes(), cgroup.free_memory_bytes()) == (600, 100)


def test_a_container_whose_group_is_the_topmost_reads_another_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cgroup, "FILE_SYSTEM_ROOT", grouped(tmp_path, V1, limit=1000))
    top = tmp_path / "sys/fs/cgroup/memory"
    for file in (top / "pod").iterdir():
        file.rename(top / file.name)
    assert cgroup.memory_limit_bytes() == 1000
    assert cgroup.oom_kill_counter_file() == top / "memory.oom_control"


def test_without_groups_the_machines_count_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cgroup, "FILE_SYSTEM_ROOT", tmp_path)
    assert (cgroup.memory_limit_bytes(), cgroup.free_memory_bytes(), cgroup.oom_kill_counter_file()) == (
        None,
        None,
        None,
    )
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/vmstat").write_text("nr_free_pages 5\noom_kill 2\n")
    assert cgroup.oom_kill_counter_file() == tmp_path / "proc/vmstat"


@pytest.mark.parametrize(("quota", "count"), [("150000 100000", 1), ("50000 100000", 1), ("max 100000", None)])
def test_processors_are_those_that_a_groups_quota_allows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, quota: str, count: int | None
) -> None:
    monkeypatch.setattr(cgroup, "FILE_SYSTEM_ROOT", tmp_path)
    allowed = cgroup.count_usable_processors()
    assert 1 <= allowed <= (os.cpu_count() or 1)
    (file := tmp_path / "proc/self/cgroup").parent.mkdir(parents=True)
    file.write_text("0::/pod\n")
    (group := tmp_path / "sys/fs/cgroup/pod").mkdir(parents=True)
    (group / "cpu.max").write_text(f"{quota}\n")
    assert cgroup.count_usable_processors() == (allowed if count is None else count)


def test_an_older_groups_quota_counts_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cgroup, "FILE_SYSTEM_ROOT", tmp_path)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(8), raising=False)
    (file := tmp_path / "proc/self/cgroup").parent.mkdir(parents=True)
    file.write_text("4:cpuacct,cpu:/pod\n")
    (group := tmp_path / "sys/fs/cgroup/cpu/pod").mkdir(parents=True)
    (group / "cpu.cfs_quota_us").write_text("300000")
    (group / "cpu.cfs_period_us").write_text("100000")
    assert cgroup.count_usable_processors() == 3
    (group / "cpu.cfs_quota_us").write_text("-1")
    assert cgroup.count_usable_processors() == 8
