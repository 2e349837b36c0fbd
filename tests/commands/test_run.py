"""What a study's commands say where they cannot go on."""

from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import pytest
from helpers import Told, quickstart, write_ledger
from limits import full_disk

from study import data
from study.commands import run
from study.errors import Stopped
from study.home.folder import Home

SPEC = quickstart()


def no_word(text: str) -> None:
    """Shows nothing."""


COMMANDS: dict[str, Callable[[Home], object]] = {
    "resume": lambda home: run.resume(home, SPEC.name, lambda *_: nullcontext(no_word)),
    "more trials": lambda home: run.resume(home, SPEC.name, lambda *_: nullcontext(no_word), "+5"),
}


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("lease", [False, True], ids=["at once", "after the lease"])
def test_a_full_disk_is_told_with_its_place_and_the_way_on(tmp_path: Path, command: str, lease: bool) -> None:
    data.load_all(SPEC.data_sections)  # whose libraries want to write, too, when they are loaded
    home = Home(tmp_path / "home")
    folder = home.create(SPEC)
    write_ledger(folder.ledger_file, *(Told("search", [0.5], state="complete") for _ in range(10)))
    before = folder.ledger_file.read_bytes()
    with full_disk(len(before) if lease else 0), pytest.raises(Stopped) as stopped:
        COMMANDS[command](home)
    place = folder.ledger_file if lease else folder.path
    assert str(stopped.value).startswith(str(place))
    assert "File too large. Nothing is lost; once there is room: study resume quickstart" in str(stopped.value)
    assert folder.ledger_file.read_bytes() == before
