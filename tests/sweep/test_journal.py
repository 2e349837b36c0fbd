"""The log of a study that is under way: where it cannot be written the study ends."""

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from study.home.ledger import Ledger, read
from study.sweep.agenda import Journal
from study.sweep.failures import CannotGoOn


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    Ledger.create(tmp_path / "ledger.jsonl")
    held = Ledger(tmp_path / "ledger.jsonl")
    yield held
    held.close()


def broken(descriptor: int) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_events_of_a_block_are_on_disk_at_its_end(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    journal, real, syncs = Journal(ledger), os.fsync, list[int]()
    monkeypatch.setattr(os, "fsync", lambda descriptor: (real(descriptor), syncs.append(len(read(ledger.path)))))
    with journal.together():
        journal.append("started", trial=0, node="here")
        journal.append("report", trial=0, epoch=1, metrics={})
        assert syncs == []
    assert syncs == [3]


def test_they_are_also_where_the_block_breaks_off(ledger: Ledger) -> None:
    journal = Journal(ledger)
    with pytest.raises(ValueError, match="of the block"), journal.together():  # noqa: PT012
        journal.append("started", trial=0, node="here")
        raise ValueError("of the block")
    assert not ledger._holds
    assert [event["event"] for event in read(ledger.path)] == ["created", "started"]


def test_a_study_ends_where_its_events_cannot_be_kept(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = Journal(ledger)
    monkeypatch.setattr(os, "fsync", broken)
    with pytest.raises(CannotGoOn, match=r"ledger\.jsonl: No space left on device\. Make room there"):
        journal.append("started", trial=0, node="here")
    with pytest.raises(CannotGoOn, match="Make room there"), journal.together():
        journal.append("started", trial=0, node="here")
    assert [event["event"] for event in read(ledger.path)] == ["created"]


def test_trouble_within_a_block_that_is_not_the_logs_stays_what_it_is(ledger: Ledger) -> None:
    with pytest.raises(FileNotFoundError), Journal(ledger).together():
        Path("none").read_text()
