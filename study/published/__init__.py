"""What the papers print, as data: one file `NAME.yaml` per table in this folder, transcribed as printed.

`names()` lists the tables, `load(name)` gives one. `study/published/table.py` says what a file holds.
"""

from pathlib import Path

from ruamel.yaml import YAML

from study.errors import UserError, nearest
from study.published.table import Cell, Claim, Line, Paper, PublishedTable

__all__ = ["Cell", "Claim", "Line", "Paper", "PublishedTable", "load", "names"]

FOLDER = Path(__file__).parent


def names() -> list[str]:
    """Every table there is, as `fairkl-table12`."""
    return sorted(path.stem for path in FOLDER.glob("*.yaml"))


def load(name: str) -> PublishedTable:
    """The table of this name.

    Raises:
        UserError: there is none; says which there are.
    """
    known = names()
    if name not in known:
        raise UserError(f"{name!r} is no published table. {nearest(name, known)}There are: {', '.join(known)}")
    text = (FOLDER / f"{name}.yaml").read_text(encoding="utf-8")
    return PublishedTable.model_validate(YAML(typ="safe", pure=True).load(text))
