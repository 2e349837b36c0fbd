"""Answers to the questions of `study init`: asking for them, and checking them."""

import os
from collections.abc import Callable
from pathlib import Path

from study import data, methods
from study.commands.draft_parts import ADDED
from study.data import label_files
from study.data.label_files import is_hidden
from study.data.sets import image_folder
from study.errors import UserError, nearest
from study.knobs import Knob
from study.spec.checks import fault
from study.text import some

Check = Callable[[str], None]
"""Raises a UserError if an answer cannot be used."""

Question = Callable[[str, str | None], str]
"""Asks a question with a default answer."""

OWN = ("image_folder", "table")


class Asker:
    """Answers to questions: from flags, asked for until they can be used, or defaults.

    Args:
        ask: asks the user; None if nobody can be asked.
        tell: shows why an answer cannot be used, and what `say` is given.
    """

    def __init__(self, ask: Question | None, tell: Callable[[str], None]) -> None:
        self._ask, self._tell = ask, tell

    def __call__(self, flag: str, flag_value: str | None, question: str, default: str | None, check: Check) -> str:
        """One answer.

        Raises:
            UserError: the flag's value cannot be used; or there is none, no default, and nobody can be asked.
        """
        if flag_value is None and self._ask is not None:
            return self._repeat(question, default, check)
        answer = default if flag_value is None else flag_value
        if answer is None:
            raise UserError(f"{flag}: is missing: {question}")
        check(answer)
        return answer

    def say(self, sentence: str) -> None:
        """Show a sentence to the user."""
        self._tell(sentence)

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
    """The default answer for a folder's table: `labels.csv`, the only table in it, or `folders` where it has folders
    alone."""
    in_folder = _tables_in(folder)
    if not in_folder and any(path.is_dir() and not is_hidden(path.name) for path in folder.iterdir()):
        return image_folder.FOLDERS
    return "labels.csv" if "labels.csv" in in_folder or len(in_folder) != 1 else in_folder[0]


def _tables_in(folder: Path) -> list[str]:
    """The names of the tables in a folder that are not hidden."""
    return sorted(
        path.name for path in folder.iterdir() if path.suffix.lower() in label_files.TABLES and not is_hidden(path.name)
    )


def is_table(folder: Path) -> Check:
    """Checks that the folder has a file of this name."""

    def check(name: str) -> None:
        if name == image_folder.FOLDERS:
            image_folder.in_folders(folder)
        elif not os.path.isfile(place := image_folder.table_in(folder, name)):
            tables_there = _tables_in(folder)
            raise UserError(f"{place}: not found. Tables there: {', '.join(tables_there) or 'none'}")

    return check


def check_data(answer: str) -> None:
    """Checks that this is a data set, a folder, or a table."""
    data_sets = data.names()
    if answer in data_sets:
        data.module(answer)
        if answer in OWN:
            raise UserError(f"{answer!r} is for files of your own: give the path of the folder or of the table")
        return
    place = label_files.existing_path(answer) if answer else None
    if place is None:
        sets = f"{nearest(answer, data_sets)}Data sets: {', '.join(data_sets)}"
        raise UserError(f"{answer!r}: neither a data set nor the path of a folder or table. {sets}")
    if place.is_file() and place.suffix.lower() not in label_files.TABLES:
        spreadsheet = place.suffix.lower() in label_files.SPREADSHEETS
        remedy = ". Save its sheet as CSV in UTF-8" if spreadsheet else ""
        raise UserError(f"{answer}: is not a table; allowed are {some(label_files.TABLES)}{remedy}")


def allowed_by(knob: Knob) -> Check:
    """Checks that a key of a data set can have this value."""

    def check(value: str) -> None:
        if why := fault(knob, value):
            raise UserError(f"data.{knob.key}: {why}")

    return check


def names(text: str) -> list[str]:
    """The names of a comma-separated list, each once."""
    return list(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))


def check_methods(answer: str) -> None:
    """Checks that these methods exist, one or several."""
    allowed = methods.names()
    if not names(answer):
        raise UserError(f"no method given. Allowed: {', '.join(allowed)}")
    for named in names(answer):
        name = named.removesuffix(ADDED)
        if name not in allowed:
            raise UserError(f"{name!r}: no such method. {nearest(name, allowed)}Allowed: {', '.join(allowed)}")
        if name != named and "regulariser" not in methods.method_knobs({"name": name}):
            raise UserError(f"{named}: {name} has no regulariser: give {name}")
        if why := methods.CATALOGUE.problem(name):
            raise UserError(why)


def one_of(*allowed: str) -> Check:
    """Checks that this is one of a few words."""

    def check(answer: str) -> None:
        if answer not in allowed:
            raise UserError(f"{answer!r} given. {nearest(answer, allowed)}Allowed: {', '.join(allowed)}")

    return check


def check_trials(answer: str) -> None:
    """Checks that this is a number of trials."""
    if not answer.isdecimal() or int(answer) < 1:
        raise UserError(f"{answer!r} given, allowed is a whole number from 1 on")
