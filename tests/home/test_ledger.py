"""The ledger on disk: what was appended is read, a torn line is nobody's, one driver at a time."""

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from helpers import ROOT
from hypothesis import given
from hypothesis import strategies as st

from study.home.events import (
    ConfigurationEnqueued,
    EpochReported,
    SessionClosed,
    TrialEnded,
    TrialTested,
    TrialUntested,
    entry_to_event,
)
from study.home.ledger import Ledger, LedgerTail, read_entries
from study.home.ledger_line import LineChainState


def test_what_was_appended_is_read_in_order(path: Path) -> None:
    created, started, report = read_entries(path)
    assert created["event"] == "created"
    assert len(created["id"]) == 32
    assert (started["event"], started["trial"], started["node"]) == ("started", 0, "here")
    assert report["metrics"] == {"val/accuracy": 0.5, "val/x": None}
    assert created["time"] <= started["time"] <= report["time"]


def test_append_gives_what_is_read_back(path: Path) -> None:
    held = Ledger(path)
    given = held.append(TrialEnded(trial=0, state="complete", reason=None))
    held.close()
    assert entry_to_event(read_entries(path)[-1]) == given
    assert "reason" not in read_entries(path)[-1]


def test_an_event_is_on_disk_before_append_returns(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced, real = list[int](), os.fsync

    def sync(descriptor: int) -> None:
        real(descriptor)
        synced.append(len(read_entries(path)))

    monkeypatch.setattr(os, "fsync", sync)
    held = Ledger(path)
    held.append(EpochReported(trial=0, epoch=2, metrics={}))
    assert synced == [4]
    held.append(SessionClosed(state="complete"))
    assert synced == [4, 5]
    assert read_entries(path)[-1]["state"] == "complete"
    held.close()


def test_of_an_event_that_a_disk_does_not_take_nothing_is_left(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before, held = path.read_bytes(), Ledger(path)

    def broken(descriptor: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as disk:
        disk.setattr(os, "fsync", broken)
        with pytest.raises(OSError, match="Input/output error") as told:
            held.append(EpochReported(trial=0, epoch=2, metrics={}))
    assert told.value.filename == str(path)
    assert path.read_bytes() == before
    held.append(SessionClosed(state="interrupted"))
    held.close()
    assert [event["event"] for event in read_entries(path)] == ["created", "started", "report", "closed"]


def test_what_is_no_number_is_written_as_none(path: Path) -> None:
    held = Ledger(path)
    told = held.append(TrialTested(trial=0, metrics={"test/accuracy": float("nan"), "test/loss": float("inf")}))
    held.close()
    assert entry_to_event(read_entries(path)[-1]) == told == TrialTested(0, {"test/accuracy": None, "test/loss": None})


@pytest.mark.parametrize("torn", [b'{"event":"rep', b"{", b"\0\0\0", b'{"event":"closed","state":"complete"}'])
def test_an_unfinished_last_line_is_left_out_and_cut_by_the_next_driver(path: Path, torn: bytes) -> None:
    whole, before = path.read_bytes(), read_entries(path)
    path.write_bytes(whole + torn)
    assert read_entries(path) == before
    assert path.read_bytes() == whole + torn, "reading changes nothing"
    held = Ledger(path)
    held.append(SessionClosed(state="interrupted"))
    held.close()
    assert [event["event"] for event in read_entries(path)] == ["created", "started", "report", "closed"]


def test_a_tail_gives_each_event_once_as_they_come(path: Path) -> None:
    tail, held = LedgerTail(path), Ledger(path)
    assert len(list(tail.new_entries())) == 3
    assert list(tail.new_entries()) == []
    held.append(TrialTested(trial=0, metrics={}))
    assert [event["event"] for event in tail.new_entries()] == ["tested"]
    assert tail.offset == path.stat().st_size
    held.close()


def test_a_tail_stops_before_a_line_that_is_being_written(path: Path) -> None:
    tail = LedgerTail(path)
    list(tail.new_entries())
    with open(path, "ab") as file:
        line = LineChainState(3, path.read_bytes()[-11:-3]).complete_line(
            b'{"event":"closed","time":1,"state":"complete"}'
        )
        file.write(line[:20])
        file.flush()
        assert list(tail.new_entries()) == []
        file.write(line[20:])
    assert [event["state"] for event in tail.new_entries()] == ["complete"]


@pytest.mark.parametrize("room", [0, 1, 40])
def test_without_room_nothing_of_an_event_is_left_and_the_next_one_fits(path: Path, room: int) -> None:
    """A file system that takes so many more bytes, then none, then has room again."""
    code = (
        "import resource, sys; from pathlib import Path; from study.home.ledger import Ledger\nfrom study.home.events "
        "import SessionClosed, TrialTested\npath, held = Path(sys.argv[1]), Ledger(Path(sys.argv[1]))\nsize, hard = "
        "path.stat().st_size, resource.getrlimit(resource.RLIMIT_FSIZE)[1]\nresource.setrlimit(resource.RLIMIT_FSIZE, "
        "(size + int(sys.argv[2]), hard))\ntry: held.append(TrialTested(0, {'test/accuracy': 0.123456789}))\nexcept "
        "OSError as error: print(error.strerror)\nassert path.stat().st_size == "
        "size\nresource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))\nheld.append(SessionClosed('interrupted')); "
        "held.close()"
    )
    command = [sys.executable, "-c", code, str(path), str(room)]
    done = subprocess.run(command, env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=True)
    assert done.stdout == "File too large\n"
    assert [event["event"] for event in read_entries(path)] == ["created", "started", "report", "closed"]


WHOLE = st.integers(-(2**63), 2**63 - 1)
VALUES = st.none() | st.booleans() | WHOLE | st.floats(allow_nan=False, allow_infinity=False) | st.text()


@pytest.mark.slow
@given(st.lists(st.dictionaries(st.from_regex(r"[a-z]{1,5}_", fullmatch=True), VALUES, max_size=3), max_size=4))
def test_any_text_and_number_is_read_back(
    tmp_path_factory: pytest.TempPathFactory, entries: list[dict[str, bool | int | float | str | None]]
) -> None:
    path = tmp_path_factory.mktemp("any") / "ledger.jsonl"
    Ledger.create(path)
    held = Ledger(path)
    written = [held.append(ConfigurationEnqueued("asked", params)) for params in entries]
    held.close()
    assert list(map(entry_to_event, read_entries(path)[1:])) == written
    told = [{key: repr(value) for key, value in event["params"].items()} for event in read_entries(path)[1:]]
    assert told == [{key: repr(value) for key, value in fields.items()} for fields in entries]
    assert all(json.loads(line) for line in path.read_text().splitlines())


def test_an_event_that_could_not_be_read_back_is_not_written(path: Path) -> None:
    before, held = path.read_bytes(), Ledger(path)
    with pytest.raises(ValueError, match=r"its trial is 9223"):
        held.append(TrialUntested(trial=2**63, reason="too many"))
    held.close()
    assert path.read_bytes() == before


def test_a_name_that_is_no_utf_8_is_written_without_the_bytes_that_are_not(path: Path) -> None:
    held = Ledger(path)
    told = held.append(ConfigurationEnqueued("no file a\udcffb.png", {"data.path": "\ud800 \U0001f600"}))
    held.close()
    assert (
        entry_to_event(read_entries(path)[-1])
        == told
        == ConfigurationEnqueued("no file a?b.png", {"data.path": "? \U0001f600"})
    )
