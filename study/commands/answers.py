"""Answers to the questions of `study init`: where they come from, and whether they can be used."""

import os
from collections.abc import Callable
from pathlib import Path

from study import data, methods
from study.data import label_files
from study.data.sets import image_folder
from study.errors import UserError, nearest
from study.knobs import Knob
from study.spec.checks import fault

Check = Callable[[str], None]
"""Raises a UserError if an answer cannot be used."""

Question = Callable[[str, str | None], str]
"""Asks, with what is taken where nothing is said."""

OWN = ("image_folder", "table")
TABLES = (".csv", ".parquet")


class Asker:
    """Answers to questions: from flags, or asked for until they can be used, or by default.

    Args:
        ask: None: nobody is there who could answer.
        tell: shows why an answer cannot be used.
    """

    def __init__(self, ask: Question | None, tell: Callable[[str], None]) -> None:
        self._ask, self._tell = ask, tell

    def __call__(self, flag: str, given: str | None, question: str, default: str | None, check: Check) -> str:
        """One answer.

        Raises:
            UserError: it is given and cannot be used, or neither given nor has a default where nobody can be asked.
        """
        if given is None and self._ask is not None:
            return self._repeat(question, default, check)
        answer = default if given is None else given
        if answer is None:
            raise UserError(f"{flag}: is missing: {question}")
        check(answer)
        return answer

    def _repeat(self, question: str, default: str | None, check: Check) -> str:
        assert self._ask is not None
        while True:
            answer = self._ask(question, default).strip()
            try:
                check(answer)
            except UserError as error:
                self._tell(str(error))
            else:
                return answer


def tables(folder: Path) -> str | None:
    """The table of a folder where it can be only one."""
    found = sorted(path.name for path in folder.iterdir() if path.suffix in TABLES)
    return "labels.csv" if "labels.csv" in found or len(found) != 1 else found[0]


def is_table(folder: Path) -> Check:
    """A file of this name is in the folder."""

    def check(name: str) -> None:
        if not os.path.isfile(place := image_folder.table_in(folder, name)):
            found = sorted(path.name for path in folder.iterdir() if path.suffix in TABLES)
            raise UserError(f"{place}: not found. Tables there: {', '.join(found) or 'none'}")

    return check


def check_data(given: str) -> None:
    """A data set, a folder, or a table."""
    known = data.names()
    if given in known:
        data.module(given)
        if given in OWN:
            raise UserError(f"{given!r} is for files of your own: give the path of the folder or of the table")
        return
    place = label_files.existing_path(given) if given else None
    if place is None:
        sets = f"{nearest(given, known)}Data sets: {', '.join(known)}"
        raise UserError(f"{given!r}: neither a data set nor the path of a folder or table. {sets}")
    if place.is_file() and place.suffix not in TABLES:
        raise UserError(f"{given}: no table; allowed are {' and '.join(TABLES)}")


def allowed_by(knob: Knob) -> Check:
    """A value that a key of a data set can have."""

    def check(value: str) -> None:
        if why := fault(knob, value):
            raise UserError(f"data.{knob.key}: {why}")

    return check


def names(given: str) -> list[str]:
    """The names of a list with commas, each once."""
    return list(dict.fromkeys(name.strip() for name in given.split(",") if name.strip()))


def check_methods(given: str) -> None:
    """One method or several, all of which are there."""
    known = methods.names()
    if not names(given):
        raise UserError(f"no method given. Allowed: {', '.join(known)}")
    for name in names(given):
        if name not in known:
            raise UserError(f"{name!r}: no such method. {nearest(name, known)}Allowed: {', '.join(known)}")
        if why := methods.CATALOGUE.problem(name):
            raise UserError(why)


def check_compute(given: str) -> None:
    """One of two words."""
    if given not in ("cpu", "gpu"):
        raise UserError(f"{given!r} given, allowed: cpu, gpu")


def check_trials(given: str) -> None:
    """A number of trials."""
    if not given.isdecimal() or int(given) < 1:
        raise UserError(f"{given!r} given, allowed is a whole number from 1 on")
