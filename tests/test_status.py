"""The studies of a home at a glance."""

import re
from pathlib import Path

import pytest
from helpers import Told, quickstart, write_ledger

from study import status, summary
from study.errors import UserError
from study.home import Home
from study.ledger import Ledger
from study.record import StudyRecord


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """A home with a study from before there were owners, and one of ada's that grace went on with."""
    home = Home(tmp_path / "home")
    write_ledger(home.create(quickstart("name=old")).ledger_file, Told("baseline", [0.5]))
    ledger = Ledger(home.create(quickstart("name=hers")).ledger_file)
    for owner in ("ada", "grace"):
        ledger.append("opened", version="1", owner=owner)
    ledger.append("closed", state="interrupted")
    ledger.close()
    return home


def test_whose_study_it_is_is_shown(home: Home) -> None:
    assert {row["name"]: row["owner"] for row in status.overview(home)} == {"old": None, "hers": "ada"}
    table = status.table(home, status.overview(home)).splitlines()
    assert table[0].split()[:3] == ["study", "state", "owner"]
    assert {line.split()[0]: line.split()[2] for line in table[1:]} == {"old": "-", "hers": "ada"}
    hers = home.find("hers")
    assert status.document(hers)["owner"] == "ada"
    told = summary.lines(hers.spec(), StudyRecord.load(hers.ledger_file))
    assert told[0] == "study hers, of ada: interrupted (no trial yet)"


def test_a_study_of_a_newer_version_is_told_of_and_the_others_are_listed(home: Home) -> None:
    ledger = Ledger(home.find("hers").ledger_file)
    ledger.append("weather", sky="blue")
    ledger.close()
    rows = {row["name"]: row for row in status.overview(home)}
    assert {name: row["state"] for name, row in rows.items()} == {"old": "interrupted", "hers": "unreadable"}
    told = r"ledger\.jsonl: has an event 'weather', which study .* does not know\. Use what wrote it: study 1"
    assert re.search(told, rows["hers"]["reason"])
    with pytest.raises(UserError, match=told):
        status.document(home.find("hers"))


def test_a_study_that_cannot_be_read_is_named(home: Home) -> None:
    home.find("old").ledger_file.write_text("no event\n")
    row = next(row for row in status.overview(home) if row["name"] == "old")
    assert row["state"] == "unreadable"
    assert "damaged at byte 0" in row["reason"]
    assert "old" in status.table(home, status.overview(home))
