"""The ledger on disk: what was appended is read, a torn line is nobody's, one driver at a time."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from helpers import ROOT
from hypothesis import given
from hypothesis import strategies as st

from study import ledger
from study.errors import UserError
from study.ledger import Ledger, Tail, read


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The ledger of a new study called `mine`, two events after its beginning."""
    (tmp_path / "mine").mkdir()
    path = tmp_path / "mine" / "ledger.jsonl"
    Ledger.create(path)
    held = Ledger(path)
    held.append("started", trial=0, node="here")
    held.append("report", trial=0, epoch=1, metrics={"val/accuracy": 0.5, "val/x": None})
    held.close()
    return path


def test_what_was_appended_is_read_in_order(path: Path) -> None:
    created, started, report = read(path)
    assert created["event"] == "created"
    assert len(created["id"]) == 32
    assert (started["event"], started["trial"], started["node"]) == ("started", 0, "here")
    assert report["metrics"] == {"val/accuracy": 0.5, "val/x": None}
    assert created["time"] <= started["time"] <= report["time"]


def test_two_studies_have_two_ids(path: Path, tmp_path: Path) -> None:
    Ledger.create(tmp_path / "other.jsonl")
    assert read(path)[0]["id"] != read(tmp_path / "other.jsonl")[0]["id"]


def test_append_gives_what_is_read_back(path: Path) -> None:
    held = Ledger(path)
    given = held.append("ended", trial=0, state="complete", reason=None)
    held.close()
    assert read(path)[-1] == given
    assert "reason" not in given


def test_an_event_is_on_disk_before_append_returns(path: Path) -> None:
    held = Ledger(path)
    held.append("closed", state="complete")
    assert read(path)[-1]["state"] == "complete"
    held.close()


def test_what_json_cannot_hold_is_not_written_in_part(path: Path) -> None:
    before = path.read_bytes()
    held = Ledger(path)
    with pytest.raises(ValueError, match="JSON compliant"):
        held.append("report", metrics={"val/accuracy": float("nan")})
    held.close()
    assert path.read_bytes() == before


@pytest.mark.parametrize("torn", [b'{"event":"rep', b"{", b"\0\0\0", b'{"event":"closed","state":"complete"}'])
def test_an_unfinished_last_line_is_left_out_and_cut_by_the_next_driver(path: Path, torn: bytes) -> None:
    whole, before = path.read_bytes(), read(path)
    path.write_bytes(whole + torn)
    assert read(path) == before
    assert path.read_bytes() == whole + torn, "reading changes nothing"
    held = Ledger(path)
    held.append("closed", state="interrupted")
    held.close()
    assert [event["event"] for event in read(path)] == ["created", "started", "report", "closed"]


@pytest.mark.parametrize(
    "damage", [b"{nonsense}\n", b"\0\0\0\0\n", b"\xff\xfe\n", b"\n", b"[1]\n", b'{"no": 1}\n', b"3\n"]
)
def test_damage_in_the_middle_is_told_with_its_byte(path: Path, damage: bytes) -> None:
    first, *others = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(first + damage + b"".join(others))
    with pytest.raises(UserError, match=rf"ledger\.jsonl: damaged at byte {len(first)}\b"):
        read(path)


def test_a_tail_gives_each_event_once_as_they_come(path: Path) -> None:
    tail, held = Tail(path), Ledger(path)
    assert len(list(tail.new())) == 3
    assert list(tail.new()) == []
    held.append("tested", trial=0, metrics={})
    assert [event["event"] for event in tail.new()] == ["tested"]
    assert tail.offset == path.stat().st_size
    held.close()


def test_a_tail_stops_before_a_line_that_is_being_written(path: Path) -> None:
    tail = Tail(path)
    list(tail.new())
    with open(path, "ab") as file:
        file.write(b'{"event":"closed","ti')
        file.flush()
        assert list(tail.new()) == []
        file.write(b'me":1,"state":"complete"}\n')
    assert [event["state"] for event in tail.new()] == ["complete"]


def test_a_tail_goes_on_from_any_offset_that_it_gave(path: Path) -> None:
    tail, offsets = Tail(path), [0]
    whole = [offsets.append(tail.offset) or event for event in tail.new()]
    for place, offset in enumerate(offsets):
        assert list(Tail(path, offset).new()) == whole[place:]


def test_a_second_driver_is_refused_and_the_first_goes_on(path: Path) -> None:
    held = Ledger(path)
    with pytest.raises(UserError, match="mine: another process is running this study"):
        Ledger(path)
    held.append("closed", state="complete")
    held.close()
    Ledger(path).close()


def test_a_second_driver_in_another_process_is_refused(path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from study.errors import UserError; from study import ledger\n"
        "print(ledger.is_open(Path(sys.argv[1])))\n"
        "try: ledger.Ledger(Path(sys.argv[1])).close(); print('taken')\n"
        "except UserError as error: print(error)"
    )

    def other() -> list[str]:
        command = [sys.executable, "-c", code, str(path)]
        done = subprocess.run(command, env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=True)
        return done.stdout.splitlines()

    held = Ledger(path)
    assert other() == ["True", "mine: another process is running this study; its state: study status"]
    held.close()
    assert other() == ["False", "taken"]


def test_the_lock_of_a_killed_driver_is_gone(path: Path) -> None:
    code = (
        "import os, sys; from pathlib import Path; from study.ledger import Ledger\n"
        "held = Ledger(Path(sys.argv[1])); held.append('opened'); os.kill(os.getpid(), 9)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(path)], env={"PYTHONPATH": str(ROOT)}, check=False)
    assert done.returncode == -9
    assert not ledger.is_open(path)
    Ledger(path).close()
    assert read(path)[-1]["event"] == "opened"


def test_whether_a_driver_holds_it(path: Path) -> None:
    assert not ledger.is_open(path)
    held = Ledger(path)
    assert ledger.is_open(path)
    held.close()
    assert not ledger.is_open(path)


VALUES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()


@given(st.lists(st.dictionaries(st.from_regex(r"[a-z]{1,5}_", fullmatch=True), VALUES, max_size=3), max_size=4))
def test_any_text_and_number_is_read_back(
    tmp_path_factory: pytest.TempPathFactory, entries: list[dict[str, object]]
) -> None:
    path = tmp_path_factory.mktemp("any") / "ledger.jsonl"
    Ledger.create(path)
    held = Ledger(path)
    written = [held.append("tested", **fields) for fields in entries]
    held.close()
    assert read(path)[1:] == written
    assert all(json.loads(line) for line in path.read_text().splitlines())
