"""Courses that run in other processes are those that run in this one."""

import multiprocessing
from pathlib import Path

import pytest
from recorded_curves import write

from study.errors import Stopped
from study.simulation import Cluster, Table, courses
from study.simulation.courses import Courses


def test_a_course_is_the_same_wherever_it_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "curves.npz")
    table = Table.load(tmp_path / "curves.npz")
    given = table.spec(), table.course, Cluster.of(2), range(3)
    here = list(Courses().of(*given))
    monkeypatch.setattr(courses, "ALONE", 0.0)
    with Courses() as processes:
        elsewhere = list(processes.of(*given))
    assert [course.to_document() for course in elsewhere] == [course.to_document() for course in here]
    assert [course.record.trials for course in elsewhere] == [course.record.trials for course in here]
    assert len({course.found() and course.found().seconds for course in here}) > 1


def test_processes_that_are_killed_are_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(courses, "ALONE", 0.0)
    table = Table.load(write(tmp_path / "curves.npz"))
    others = set(multiprocessing.active_children())
    with Courses() as processes:
        coming = processes.of(table.spec(), table.course, Cluster.of(2), range(500))
        next(coming)
        for process in set(multiprocessing.active_children()) - others:
            process.kill()
        with pytest.raises(Stopped, match="a process that simulated was ended"):
            list(coming)
    assert set(multiprocessing.active_children()) == others
