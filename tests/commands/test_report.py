"""What `study report` asks before it works."""

from pathlib import Path

import pytest
from helpers import quickstart

from study.commands.report import report
from study.errors import UserError
from study.home.folder import Home


@pytest.mark.parametrize("given", [True, False], ids=["a folder given", "the study's"])
def test_a_folder_that_cannot_be_written_is_told_before_the_study_is_read(tmp_path: Path, given: bool) -> None:
    home = Home(tmp_path / "home")
    folder = home.create(quickstart())
    folder.ledger_file.write_text("no ledger\n")
    file = tmp_path / "file" if given else folder.report
    file.touch()
    with pytest.raises(UserError, match=r"file is no folder|report is no folder") as refused:
        report(home, "quickstart", file / "out" if given else None)
    assert str(refused.value).endswith("Another folder: study report quickstart -o DIR")
