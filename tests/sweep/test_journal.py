"""The log of a study that is under way: where it cannot be written the study ends."""

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from study.home.events import TrialStarted
from study.home.ledger import Ledger, read_entries
from study.sweep.agenda import end_study_on_ledger_error
from study.sweep.failures import StudyCannotContinueError


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    Ledger.create(tmp_path / "ledger.jsonl")
    held = Ledger(tmp_path / "ledger.jsonl")
    yield held
    held.close()


def broken(descriptor: int) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_study_ends_where_its_events_cannot_be_kept(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", broken)
    why = r"ledger\.jsonl: No space left on device\. Make room there"
    with pytest.raises(StudyCannotContinueError, match=why), end_study_on_ledger_error(ledger):
        ledger.append(TrialStarted(trial=0, node="here"))
    assert [event["event"] for event in read_entries(ledger.path)] == ["created"]
