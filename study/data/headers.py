"""Names of the columns in a user's table as they are in the file: pandas would rename those that are there twice."""

import re
from collections.abc import Sequence
from pathlib import Path

from study.errors import UserError
from study.text.quoted import quoted

NAMELESS = re.compile(r"\s*|Unnamed: \d+")
"""A column without a name, in the file or as pandas has written it."""


def check(header: Sequence[str], used: Sequence[str], path: Path) -> None:
    """Refuse names that do not say which column is meant, or which may be one column twice.

    A second column of a label would be an input, and the class would be known from it.

    Args:
        header: names of all columns, in the order of the file.
        used: those that are labels or inputs.

    Raises:
        UserError: one of them is there twice, or two of them differ by spaces or case alone.
    """
    places: dict[str, list[str]] = {}
    for place, name in enumerate(header, 1):
        places.setdefault(name, []).append(str(place))
    alike: dict[str, str] = {}
    for name in dict.fromkeys(used):
        if len(twice := places.get(name, [])) > 1:
            problem = f"column {quoted(name)} is there {len(twice)} times, as column {' and '.join(twice)}"
            raise UserError(f"{path}: {problem}. Rename or remove all but one")
        if (other := alike.setdefault(name.strip().casefold(), name)) != name:
            problem = f"columns {quoted(other)} and {quoted(name)} differ by spaces or case alone"
            raise UserError(f"{path}: {problem}. Rename or remove one, or name the inputs in data.features")


def check_named(header: Sequence[str], path: Path) -> None:
    """Raise a UserError if a column has no name: it is most likely the number of the row."""
    for place, name in enumerate(header, 1):
        if NAMELESS.fullmatch(name):
            remedy = "Give it one or remove it, or name the inputs in data.features"
            raise UserError(f"{path}: column {place} has no name. {remedy}")
