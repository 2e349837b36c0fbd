"""What a study's commands say where they cannot go on."""

import resource
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import pytest
from helpers import Told, quickstart, write_ledger

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


@contextmanager
def full_disk(largest: int) -> Iterator[None]:
    """No file can become larger; what it is to hold beyond is refused, as by a full disk.

    Python would keep the compiled modules that it could write a part of, and not load them again.
    """
    compiles, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (largest, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        sys.dont_write_bytecode = compiles


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
