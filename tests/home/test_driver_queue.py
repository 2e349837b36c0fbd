"""The queue's order, and who is there: with real processes that are killed."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path

import pytest

from study.files import from_json
from study.home import driver_queue, presence
from study.home.driver_queue import Turn, in_order, moment_of
from study.home.presence import Presence, locked, members


def turn(job: str, owner: str = "ann", priority: int = 0, came: float = 0.0, began: float | None = None) -> Turn:
    return Turn(job, job, owner, "here:1", "machine", priority, came, began)


def jobs(there: list[Turn], served: dict[str, int] | None = None) -> list[str]:
    return [one.job for one in in_order(there, served or {})]


def test_a_higher_priority_comes_before_all_else() -> None:
    there = [turn("a", came=1), turn("b", came=2, priority=5), turn("c", "bob", came=3, priority=-1)]
    assert jobs(there) == ["b", "a", "c"]


def test_owners_alternate() -> None:
    ann = [turn(f"a{number}", "ann", came=number) for number in range(3)]
    bob = [turn(f"b{number}", "bob", came=10 + number) for number in range(2)]
    assert jobs([*ann, *bob]) == ["a0", "b0", "a1", "b1", "a2"]


def test_who_has_drivers_running_comes_later() -> None:
    there = [turn("a0", "ann", began=1.0), turn("a1", "ann", came=1), turn("b", "bob", came=2)]
    assert jobs(there) == ["b", "a1"]


def test_who_was_served_last_comes_later() -> None:
    there = [turn("a1", "ann", came=1), turn("b", "bob", came=2), turn("c", "cy", came=3)]
    assert jobs(there, {"ann": 2, "bob": 1}) == ["c", "b", "a1"]


def test_an_owner_who_is_served_is_remembered(tmp_path: Path) -> None:
    for owner in ("ann", "bob", "ann"):
        driver_queue.serve(tmp_path, owner)
    assert driver_queue.served(tmp_path) == {"ann": 3, "bob": 2}


@pytest.mark.parametrize(("told", "expected"), [("-5", 0.0), ("1e99", 1.0), (None, 1.0), ("soon", 1.0), ("nan", 1.0)])
def test_a_clock_that_is_wrong_gains_little(told: str | None, expected: float) -> None:
    """0: as if it had come as long ago as clocks may differ; 1: just now."""
    before = time.time()
    came = moment_of(told)
    assert before - driver_queue.CLOCKS * (1 - expected) <= came <= time.time() - driver_queue.CLOCKS * (1 - expected)


@pytest.mark.parametrize("damage", [{"priority": "high"}, {"came": None}, {"began": "x"}, {"owner": 3}, {"job": None}])
def test_what_is_no_turn_is_none(damage: dict[str, object]) -> None:
    assert from_json(json.dumps(asdict(turn("a")) | damage), Turn) is None


MEMBER = """
import os, sys
from pathlib import Path
from study.home.presence import Presence
one = Presence(Path(sys.argv[1]), "one")
one.tell({"who": "other"})
print(one.id, flush=True)
if sys.argv[2] == "exec":
    os.execv(sys.executable, [sys.executable, "-c", "import time; time.sleep(600)"])
sys.stdin.read()
"""


@pytest.mark.parametrize("way", ["stay", "exec"])
def test_a_member_is_there_until_its_process_ends_however_it_does(tmp_path: Path, way: str) -> None:
    """It may become another program on the way."""
    command = [sys.executable, "-c", MEMBER, str(tmp_path), way]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    name = process.stdout.readline().strip()
    try:
        mine = Presence(tmp_path, "two")
        mine.tell({"who": "this"})
        assert {told["who"] for told in members(tmp_path, dict[str, str])} == {"other", "this"}
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
    assert [told["who"] for told in members(tmp_path, dict[str, str])] == ["this"]
    assert not (tmp_path / f"{name}.alive").exists()
    mine.close()
    assert list(tmp_path.iterdir()) == []


def test_a_member_on_another_machine_is_dead_once_it_gives_no_sign_for_long(tmp_path: Path) -> None:
    alive, told = tmp_path / "far.1.alive", {"id": "far.1", "machine": "another"}
    alive.touch()
    (tmp_path / "far.1.json").write_text(json.dumps(told))
    assert members(tmp_path, dict[str, str]) == [told]
    past = time.time() - 2 * presence.EXPIRY
    os.utime(alive, (past, past))
    assert members(tmp_path, dict[str, str]) == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("text", ["", "[]", "{", '{"id": "other"}', '{"id": 3}', "[" * 9999])
def test_what_cannot_be_read_says_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / "odd.1.json").write_text(text)
    assert members(tmp_path, dict[str, str]) == []


def test_one_lock_is_had_by_one_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(presence, "PATIENCE", 0.05)
    with locked(tmp_path / "lock") as first, locked(tmp_path / "lock") as second:
        assert (first, second) == (True, False)
    with locked(tmp_path / "lock") as again:
        assert again


def test_what_waits_is_published_in_order(tmp_path: Path) -> None:
    there = []
    for job, began, came in (("second", None, 2.0), ("first", None, 1.0), ("runs", 1.0, 0.0)):
        there.append(Presence(tmp_path / "turns", job))
        document = asdict(turn(job, came=came, began=began))
        there[-1].tell(document)
    file = driver_queue.publish(tmp_path, "here:1")
    assert json.loads(file.read_text()) == {"waiting": ["first", "second"], "running": ["runs"]}
    other = driver_queue.publish(tmp_path, "here:2")
    assert json.loads(other.read_text()) == {"waiting": [], "running": []}
    for one in there:
        one.close()
