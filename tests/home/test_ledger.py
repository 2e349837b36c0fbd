"""The ledger on disk: what was appended is read, a torn line is nobody's, one driver at a time."""

import json
import os
import platform
import subprocess
import sys
import threading
import time
from dataclasses import asdict
from pathlib import Path

import pytest
from helpers import ROOT
from hypothesis import given
from hypothesis import strategies as st

from study.errors import UserError
from study.home import lease, ledger
from study.home.lease import Holder
from study.home.ledger import Ledger, Tail, TakenOver, read
from study.home.line import Chain
from study.home.record import StudyRecord


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
        line = Chain(3, path.read_bytes()[-11:-3]).close(b'{"event":"closed","time":1,"state":"complete"}')
        file.write(line[:20])
        file.flush()
        assert list(tail.new()) == []
        file.write(line[20:])
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
        "import sys; from pathlib import Path; from study.errors import UserError; from study.home import ledger\n"
        "print(ledger.is_open(Path(sys.argv[1])))\n"
        "try: ledger.Ledger(Path(sys.argv[1])).close(); print('taken')\n"
        "except UserError as error: print(error)"
    )

    def other() -> list[str]:
        command = [sys.executable, "-c", code, str(path)]
        done = subprocess.run(command, env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=True)
        return done.stdout.splitlines()

    held = Ledger(path)
    is_open, refusal = other()
    assert is_open == "True"
    assert refusal.startswith(
        f"mine: another process is running this study, process {os.getpid()} on {platform.node()}"
    )
    assert refusal.endswith("UTC; its state: study status mine")
    held.close()
    assert other() == ["False", "taken"]


def test_the_lock_of_a_killed_driver_is_gone(path: Path) -> None:
    code = (
        "import os, sys; from pathlib import Path; from study.home.ledger import Ledger\n"
        "held = Ledger(Path(sys.argv[1])); held.append('opened'); os.kill(os.getpid(), 9)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(path)], env={"PYTHONPATH": str(ROOT)}, check=False)
    assert done.returncode == -9
    assert not ledger.is_open(path)
    Ledger(path).close()
    assert read(path)[-1]["event"] == "opened"


@pytest.mark.parametrize("room", [0, 1, 40])
def test_without_room_nothing_of_an_event_is_left_and_the_next_one_fits(path: Path, room: int) -> None:
    """A file system that takes so many more bytes, then none, then has room again."""
    code = (
        "import resource, sys; from pathlib import Path; from study.home.ledger import Ledger\n"
        "path, held = Path(sys.argv[1]), Ledger(Path(sys.argv[1]))\n"
        "size, hard = path.stat().st_size, resource.getrlimit(resource.RLIMIT_FSIZE)[1]\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (size + int(sys.argv[2]), hard))\n"
        "try: held.append('tested', trial=0, metrics={'test/accuracy': 0.123456789})\n"
        "except OSError as error: print(error.strerror)\n"
        "assert path.stat().st_size == size\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))\n"
        "held.append('closed', state='interrupted'); held.close()"
    )
    command = [sys.executable, "-c", code, str(path), str(room)]
    done = subprocess.run(command, env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=True)
    assert done.stdout == "File too large\n"
    assert [event["event"] for event in read(path)] == ["created", "started", "report", "closed"]


def another_machine(path: Path, silent: float = 0.0) -> Path:
    """The lease of a driver on another machine, whose last sign of life was so many seconds ago."""
    found = path.with_name("lease.json")
    found.write_text(json.dumps(asdict(Holder("other", "another kernel", "far", 7, 0.0))))
    now = time.time()
    os.utime(found, (now - silent, now - silent))
    return found


def test_a_driver_on_another_machine_keeps_others_out_as_long_as_it_lives(path: Path) -> None:
    """Where the folder is shared and the lock on the ledger reaches only one machine."""
    theirs = another_machine(path, silent=lease.EXPIRY - 10)
    assert ledger.is_open(path)
    with pytest.raises(UserError, match=r"process 7 on far, since 1970-01-01 00:00:00 UTC.*60 s after its last sign"):
        Ledger(path)
    assert "another kernel" in theirs.read_text()


def test_a_dead_machines_lease_expires(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease, "SETTLING", 0.0)
    another_machine(path, silent=lease.EXPIRY + 1)
    assert not ledger.is_open(path)
    held = Ledger(path)
    held.append("closed", state="interrupted")
    held.close()
    assert not path.with_name("lease.json").exists()


def test_of_two_that_take_a_dead_machines_lease_one_has_it(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    another_machine(path, silent=lease.EXPIRY + 1)
    monkeypatch.setattr(lease.time, "sleep", lambda seconds: another_machine(path))
    before = path.read_bytes()
    with pytest.raises(UserError, match="process 7 on far"):
        Ledger(path)
    assert path.read_bytes() == before


def test_a_driver_that_was_taken_over_writes_no_more(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It hears of it within seconds, and at once when it was stopped for a while itself."""
    monkeypatch.setattr(lease, "RENEWAL", 0.01)
    of_others = threading.enumerate()
    held = Ledger(path)
    theirs, before = another_machine(path), path.read_bytes()
    for thread in threading.enumerate():
        if thread.name == "lease" and thread not in of_others:
            thread.join(20)
    with pytest.raises(TakenOver, match="process 7 on far"):
        held.append("closed", state="complete")
    held.close()
    assert path.read_bytes() == before
    assert "another kernel" in theirs.read_text()


def test_a_driver_that_slept_looks_before_it_writes(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    held = Ledger(path)
    another_machine(path)
    slept = time.monotonic() + lease.EXPIRY
    monkeypatch.setattr(lease.time, "monotonic", lambda: slept)
    with pytest.raises(TakenOver):
        held.append("closed", state="complete")
    held.close()


def test_a_holder_renews_its_lease_and_one_that_vanished(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease, "RENEWAL", 0.01)
    mine, held = path.with_name("lease.json"), Ledger(path)
    os.utime(mine, (0, 0))
    deadline = time.monotonic() + 20
    while mine.stat().st_mtime == 0:
        assert time.monotonic() < deadline
    mine.unlink()
    while not mine.exists():
        assert time.monotonic() < deadline
    held.append("closed", state="complete")
    held.close()


def test_whether_a_driver_holds_it(path: Path) -> None:
    assert not ledger.is_open(path)
    held = Ledger(path)
    assert ledger.is_open(path)
    held.close()
    assert not ledger.is_open(path)


BEYOND = st.sampled_from([2**63, 2**64 - 1, 2**64, -(2**63) - 1, 10**30, -(10**400)])
VALUES = (
    st.none() | st.booleans() | st.integers() | BEYOND | st.floats(allow_nan=False, allow_infinity=False) | st.text()
)


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
    told = [
        {key: repr(value) for key, value in event.items() if key in fields}
        for event, fields in zip(written, entries, strict=True)
    ]
    assert told == [{key: repr(value) for key, value in fields.items() if value is not None} for fields in entries]
    assert all(json.loads(line) for line in path.read_text().splitlines())


def test_a_name_that_is_no_utf_8_is_written_without_the_bytes_that_are_not(path: Path) -> None:
    held = Ledger(path)
    told = held.append("untested", trial=0, reason="no file a\udcffb.png", further=["\ud800", "\U0001f600"])
    held.close()
    assert (told["reason"], told["further"]) == ("no file a?b.png", ["?", "\U0001f600"])
    assert read(path)[-1] == told


def lines_of(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines(keepends=True)


def damaged(path: Path, *lines: bytes) -> str:
    """What is told of a ledger that has become these lines; who reads it on and who appends to it hears it too."""
    path.write_bytes(b"".join(lines))
    with pytest.raises(UserError) as refused:
        read(path)
    held = Ledger(path)
    with pytest.raises(UserError) as not_written:
        held.append("closed", state="complete")
    held.close()
    assert str(not_written.value) == str(refused.value)
    assert path.read_bytes() == b"".join(lines)
    return str(refused.value)


@pytest.fixture
def five(path: Path) -> list[bytes]:
    """The lines of a ledger of five events."""
    held = Ledger(path)
    held.append("report", trial=0, epoch=2, metrics={"val/accuracy": 0.75})
    held.append("ended", trial=0, state="complete")
    held.close()
    return lines_of(path)


def at(lines: list[bytes], number: int) -> int:
    """The byte at which a line begins."""
    return sum(map(len, lines[:number]))


@pytest.mark.parametrize(
    ("first", "last", "told"), [(1, 1, "event 1 of it is lost"), (0, 2, "events 0 to 2 of it are lost")]
)
def test_lost_lines_are_told(path: Path, five: list[bytes], first: int, last: int, told: str) -> None:
    left = [line for number, line in enumerate(five) if not first <= number <= last]
    assert damaged(path, *left) == f"{path}: damaged at byte {at(five, first)}: {told}"


def test_a_line_that_is_there_twice_is_told(path: Path, five: list[bytes]) -> None:
    told = f"{path}: damaged at byte {at(five, 4)}: event 3 is there twice, first at byte {at(five, 3)}"
    assert damaged(path, *five[:4], *five[3:]) == told


def test_a_ledger_that_is_there_twice_is_told(path: Path, five: list[bytes]) -> None:
    assert (
        damaged(path, *five, *five) == f"{path}: damaged at byte {at(five, 5)}: event 0 is there twice, first at byte 0"
    )


def test_lines_in_another_order_are_told(path: Path, five: list[bytes]) -> None:
    told = f"{path}: damaged at byte {at(five, 2)}: event 3 stands where event 2 belongs, which comes later"
    assert damaged(path, *five[:2], five[3], five[2], five[4]) == told


@pytest.mark.parametrize("number", range(5))
@pytest.mark.parametrize(
    ("before", "after"), [(b'"time":1', b'"time":2'), (b" ", b"  "), (b"\n", b"\r\n"), (b'"event":"', b'"event":"x')]
)
def test_an_edited_line_is_told_be_it_the_last(
    path: Path, five: list[bytes], number: int, before: bytes, after: bytes
) -> None:
    edited = five[number].replace(before, after, 1)
    assert edited != five[number]
    told = f"{path}: damaged at byte {at(five, number)}: the line of event {number} was changed after it was written"
    assert damaged(path, *five[:number], edited, *five[number + 1 :]) == told


def test_an_edited_check_value_is_told(path: Path, five: list[bytes]) -> None:
    edited = five[3][:-11] + b'00000000"}\n'
    assert "the line of event 3 was changed" in damaged(path, *five[:3], edited, five[4])


OTHER_COPY = "it comes from another driver or another copy of this study, which went on by itself"


def test_two_drivers_that_raced_are_told(path: Path, five: list[bytes]) -> None:
    """Where neither locks nor the lease reached: both wrote what follows event 2."""
    theirs = Chain(3, five[2][-11:-3]).close(b'{"event":"closed","time":2,"state":"interrupted"}')
    told = f"damaged at byte {at(five, 4)}: event 3 does not follow the events before it: {OTHER_COPY}"
    assert told in damaged(path, *five[:4], theirs)


def test_a_copy_that_went_on_elsewhere_is_told(path: Path, five: list[bytes], tmp_path: Path) -> None:
    (tmp_path / "copy").mkdir()
    copy = tmp_path / "copy" / "ledger.jsonl"
    copy.write_bytes(b"".join(five[:3]))
    held = Ledger(copy)
    held.append("report", trial=0, epoch=2, metrics={"val/accuracy": 0.7})
    held.append("ended", trial=0, state="complete")
    held.close()
    theirs = lines_of(copy)
    told = f"damaged at byte {at(five, 4)}: event 4 does not follow the events before it: {OTHER_COPY}"
    assert told in damaged(path, *five[:4], theirs[4])


def test_a_driver_sees_that_another_has_written(path: Path) -> None:
    """On a file system on which locks do not reach it: it writes no more itself."""
    held = Ledger(path)
    held.append("closed", state="interrupted")
    with open(path, "ab") as file:
        file.write(Chain(4, path.read_bytes()[-11:-3]).close(b'{"event":"extended","time":1,"trials":9}'))
    before = path.read_bytes()
    with pytest.raises(TakenOver, match="another driver has written to its ledger"):
        held.append("closed", state="complete")
    held.close()
    assert path.read_bytes() == before


def test_an_empty_ledger_has_lost_its_events(path: Path) -> None:
    for content in (b"", b'{"event":"crea'):
        path.write_bytes(content)
        with pytest.raises(UserError, match=r"ledger\.jsonl: damaged at byte 0: it is empty, its events are lost"):
            read(path)
        with pytest.raises(UserError, match=r"ledger\.jsonl: damaged at byte 0: it is empty, its events are lost"):
            StudyRecord.load(path)


def test_a_ledger_without_numbers_is_of_a_version_before(path: Path) -> None:
    path.write_text('{"event":"created","time":1.0,"id":"0"}\n')
    told = "damaged at byte 0: an event without number and check values, which was added by hand, or by a version from "
    with pytest.raises(UserError, match=told):
        read(path)


def test_a_tail_from_an_offset_on_tells_of_damage_behind_it(path: Path, five: list[bytes]) -> None:
    path.write_bytes(b"".join([*five[:3], five[4]]))
    tail = Tail(path, at(five, 2))
    with pytest.raises(UserError, match=rf"damaged at byte {at(five, 3)}: event 3 of it is lost"):
        list(tail.new())
