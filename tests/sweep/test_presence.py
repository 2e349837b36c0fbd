"""Which drivers are there: with real processes that are killed."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from study.sweep import share
from study.sweep.share import Presence, members

MEMBER = """
import sys
from pathlib import Path
from study.sweep.share import Presence
one = Presence(Path(sys.argv[1]), "one")
one.tell({"who": "other"})
print(one.id, flush=True)
sys.stdin.read()
"""


def test_a_member_is_there_until_its_process_ends_however_it_does(tmp_path: Path) -> None:
    command = [sys.executable, "-c", MEMBER, str(tmp_path)]
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
    past = time.time() - 2 * share.EXPIRY
    os.utime(alive, (past, past))
    assert members(tmp_path, dict[str, str]) == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("text", ["", "[]", "{", '{"id": "other"}', '{"id": 3}', "[" * 9999])
def test_what_cannot_be_read_says_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / "odd.1.json").write_text(text)
    assert members(tmp_path, dict[str, str]) == []
