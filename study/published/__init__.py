"""The papers' tables as data: one file `NAME.yaml` per table in this folder, transcribed as printed.

`names()` lists the tables, `load(name)` gives one. `study/published/table.py` says what a file holds.
"""

from functools import cache
from pathlib import Path

from ruamel.yaml import YAML

from study.errors import UserError, nearest
from study.published.table import Claim, Line, Paper, PrintedCell, PublishedTable

__all__ = ["Claim", "Line", "Paper", "PrintedCell", "PublishedTable", "load", "names"]

FOLDER = Path(__file__).parent


def names() -> list[str]:
    """The names of all tables, as `fairkl-table12`."""
    return sorted(path.stem for path in FOLDER.glob("*.yaml"))


@cache
def load(name: str) -> PublishedTable:
    """The table of this name.

    Raises:
        UserError: there is no such table; says which there are.
    """
    tables = names()
    if name not in tables:
        raise UserError(f"{name!r} is not a published table. {nearest(name, tables)}There are: {', '.join(tables)}")
    text = (FOLDER / f"{name}.yaml").read_text(encoding="utf-8")
    return PublishedTable.model_validate(YAML(typ="safe", pure=True).load(text))
