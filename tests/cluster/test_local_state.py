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
