"""The form that a home is in, told by its file `format`: which form, and which version of this package made it.

A form is what older versions could not read or write: it counts up when the files of a home change so.
"""

import json
from pathlib import Path

from study import __version__
from study.errors import UserError
from study.files import write_whole

FORMAT = 2
"""The form that this version writes, and the one that it reads. Form 1 had ledgers without numbers and check values."""


def file(home: Path) -> Path:
    """The file with the form of a home."""
    return home / "format"


def write(home: Path) -> None:
    """Tell the form of a home that is made, in one step; a home that tells it already keeps it.

    Raises:
        OSError: the home cannot be written; nothing is left behind.
    """
    path = file(home)
    if path.exists():
        return
    write_whole(path, _content() + "\n")


def check(home: Path) -> int:
    """The form of a home, which need not exist.

    Raises:
        UserError: a version of this package made it that has another form, which is named; or the file is damaged, or
            missing although there are studies.
    """
    path = file(home)
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        form, maker = int(values["format"]), str(values["study"])
    except (FileNotFoundError, NotADirectoryError):
        if any(home.glob("[!.]*/ledger.jsonl")):
            raise UserError(
                f"{home}: holds studies, and no file {path.name} that tells their form. Either a version from before "
                f"the first release made it, which study {__version__} does not read: take another home, "
                f"STUDY_HOME=...; or the file was lost: what study {__version__} writes there is {_content()}"
            ) from None
        return FORMAT
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from None
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
        raise UserError(f"{path}: damaged. One that this version writes is {_content()}") from None
    if form > FORMAT:
        raise UserError(
            f"{home}: is in form {form}, which study {maker} made; this is study {__version__}, which reads form "
            f"{FORMAT}. Install study {maker} or later, or take another home: STUDY_HOME=..."
        )
    if form < FORMAT:
        raise UserError(
            f"{home}: is in form {form}, which a version from before the first release made (study {maker}); this is "
            f"study {__version__}, which reads form {FORMAT}. Read that home with the version that made it, and take "
            "another one for new studies: STUDY_HOME=..."
        )
    return form


def _content() -> str:
    return json.dumps({"format": FORMAT, "study": __version__})
