"""The form that a home is in, told by its file `format`: which form, and which version of this package made it.

A form is what older versions could not read or write: it counts up when the files of a home change so. A home without
the file, from before there was one, is in the first form.
"""

import json
from pathlib import Path

from study import __version__
from study.errors import UserError
from study.files.whole import write_whole

FORMAT = 1
"""The form that this version writes; it reads all up to it."""


def file(home: Path) -> Path:
    """Where a home tells its form."""
    return home / "format"


def write(home: Path) -> None:
    """Tell the form of a home that is made, in one step; a home that tells it already keeps it.

    Raises:
        OSError: the home cannot be written; nothing is left behind.
    """
    path = file(home)
    if path.exists():
        return
    write_whole(path, json.dumps({"format": FORMAT, "study": __version__}) + "\n")


def check(home: Path) -> int:
    """The form of a home, which need not exist.

    Raises:
        UserError: a newer version of this package made it, which is named, or the file is damaged.
    """
    path = file(home)
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        form, maker = int(values["format"]), str(values["study"])
    except (FileNotFoundError, NotADirectoryError):
        return 1
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from None
    except (ValueError, TypeError, KeyError):
        raise UserError(
            f'{path}: damaged. One that this version writes is {{"format": {FORMAT}, "study": "{__version__}"}}'
        ) from None
    if form > FORMAT:
        raise UserError(
            f"{home}: is in form {form}, which study {maker} made; this is study {__version__}, which reads form "
            f"{FORMAT}. Install study {maker} or later, or take another home: STUDY_HOME=..."
        )
    return form
