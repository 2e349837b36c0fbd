"""What `study report` asks before it works, and what it says besides the page."""

from pathlib import Path

import pytest
from helpers import Told, quickstart, write_ledger

from study.commands import report as reporting
from study.commands.report import rule_pick_rows, write_study_report
from study.errors import UserError
from study.home.folder import Home
from study.home.ledger import Ledger


@pytest.mark.parametrize("given", [True, False], ids=["a folder given", "the study's"])
def test_a_folder_that_cannot_be_written_is_told_before_the_study_is_read(tmp_path: Path, given: bool) -> None:
    home = Home(tmp_path / "home")
    folder = home.create_study(quickstart())
    folder.ledger_file.write_text("no ledger\n")
    file = tmp_path / "file" if given else folder.report_folder
    file.touch()
    with pytest.raises(UserError, match=r"file is no folder|report is no folder") as refused:
        write_study_report(home, "quickstart", file / "out" if given else None)
    assert str(refused.value).endswith("Another folder: study report quickstart -o DIR")


def test_what_each_rule_would_have_picked_as_plain_values(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    folder = home.create_study(quickstart("name=mine"))
    params = {"method.alpha": 0.5, "method.lambda": 1.0, "method.epsilon": 0.25}
    values = ((0.6, 0.2), (0.5, 0.4))
    trials = (Told("search", [one], params=params, further={"val/balanced_accuracy": other}) for one, other in values)
    write_ledger(folder.ledger_file, *trials)
    assert [
        (row["rule"], row["own"], row["trial"], row["rank"], row["regret"]) for row in rule_pick_rows(home, "mine")
    ] == [("accuracy", True, 0, 1, None), ("balanced_accuracy", False, 1, 2, None)]


def test_a_watched_page_loads_itself_again_until_its_study_is_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reporting, "MAX_WATCH_CPU_SHARE", 1.0)
    monkeypatch.setattr(reporting, "WATCH_POLL_INTERVAL_S", 0.05)
    home = Home(tmp_path / "home")
    folder = home.create_study(quickstart("name=mine", "train.epochs=3", "search.early_stopping={}"))
    write_ledger(folder.ledger_file, Told("baseline", [0.2, 0.3], "running"))
    driver, seen = Ledger(folder.ledger_file), []

    def see(page: Path) -> None:
        seen.append('http-equiv="refresh"' in page.read_text())
        driver.close()

    reporting.watch_report(home, "mine", tmp_path / "watched", see)
    assert seen == [True]
    assert 'http-equiv="refresh"' not in (tmp_path / "watched" / "report.html").read_text()
