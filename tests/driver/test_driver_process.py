"""What goes between a driver's process and the one that started it; with Ray: `tests/e2e/test_driver_process.py`."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import driver_tasks
import pytest

from study.driver.driver_process import run_in_driver_process
from study.errors import StudyNotFoundError, StudyStoppedError
from study.home.folder import Home
from study.home.record import StudyRecord
from study.spec import StudySpec


class Seen:
    """A view that keeps what it is told."""

    def __init__(self) -> None:
        self.told: list[str] = []

    @contextmanager
    def __call__(self, spec: StudySpec, record: StudyRecord) -> Iterator[Callable[[str], None]]:
        self.told.append(f"begins {spec.name} {record.state}")
        yield self.told.append
        self.told.append("ends")


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def test_a_driver_shows_its_study_and_gives_what_its_task_does(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path, Path("no text"), "of this process"])
    seen = Seen()
    given = run_in_driver_process(seen, home, driver_tasks.shows, "one", "two", "three", more={"key": 1})
    assert seen.told == ["begins quickstart new", "one", "two", "three", "ends"]
    assert (given["home"], given["is_odd"], given["more"]) == (home.path, True, {"key": 1})
    assert given["parent"] == os.getpid()
    assert given["session"] not in (os.getsid(0), os.getpid())
    assert given["folder"] == Path.cwd()


def test_what_its_task_raises_is_raised_here(home: Home) -> None:
    with pytest.raises(StudyNotFoundError, match="no such study") as told:
        run_in_driver_process(Seen(), home, driver_tasks.refuses)
    assert not getattr(told.value, "__notes__", [])
    with pytest.raises(ZeroDivisionError, match="by zero") as failed:
        run_in_driver_process(Seen(), home, driver_tasks.fails, known=True)
    assert "driver_tasks.py" in failed.value.__notes__[0], "where it came from"


def test_an_error_that_cannot_be_sent_is_told_by_its_name(home: Home) -> None:
    with pytest.raises(StudyStoppedError, match="Odd: very odd") as failed:
        run_in_driver_process(Seen(), home, driver_tasks.fails, known=False)
    assert "driver_tasks.py" in failed.value.__notes__[0]


@pytest.mark.parametrize(
    ("task", "how"), [(driver_tasks.dies, "was ended by SIGKILL"), (driver_tasks.exits, "ended with status 7")]
)
def test_one_that_ends_without_an_answer_is_told(home: Home, task: Callable[..., None], how: str) -> None:
    with pytest.raises(StudyStoppedError, match=rf"^the driver, process \d+, {how}, before its study began$"):
        run_in_driver_process(Seen(), home, task)
