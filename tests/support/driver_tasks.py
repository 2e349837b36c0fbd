"""What a driver's process is given to do in tests: functions of a module, as its work has to be."""

import os
import signal
from pathlib import Path
from typing import Any

from helpers import quickstart

from study.driver.session import StudyView
from study.errors import StudyNotFoundError
from study.home.folder import Home
from study.home.record import StudyRecord


def shows(home: Home, *words: str, view: StudyView, **more: Any) -> dict[str, Any]:
    """Show two lines, and give what it was given and what it sees of its process."""
    with view(quickstart(), StudyRecord()) as tell:
        for word in words:
            tell(word)
    about = {"session": os.getsid(0), "parent": os.getppid(), "folder": Path.cwd()}
    return {"home": home.path, "is_odd": len(words) % 2 == 1, **more, **about}


def refuses(home: Home, view: StudyView) -> None:
    raise StudyNotFoundError(f"{home.path}: no such study")


class Odd(Exception):
    """One that cannot be made anew from what it says of itself."""

    def __init__(self, first: str, second: str) -> None:
        super().__init__(f"{first} {second}")


def fails(home: Home, view: StudyView, known: bool) -> None:
    raise ZeroDivisionError("by zero") if known else Odd("very", "odd")


def dies(home: Home, view: StudyView) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def exits(home: Home, view: StudyView) -> None:
    raise SystemExit(7)
