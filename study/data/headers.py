"""Names of the columns in a user's table as they are in the file: pandas would rename those that are there twice."""

import re
from collections.abc import Sequence
from itertools import combinations
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
    for name in used:
        places = [str(place) for place, other in enumerate(header, 1) if other == name]
        if len(places) > 1:
            problem = f"column {quoted(name)} is there {len(places)} times, as column {' and '.join(places)}"
            raise UserError(f"{path}: {problem}. Rename or remove all but one")
    for first, second in combinations(dict.fromkeys(used), 2):
        if first.strip().casefold() == second.strip().casefold():
            problem = f"columns {quoted(first)} and {quoted(second)} differ by spaces or case alone"
            raise UserError(f"{path}: {problem}. Rename or remove one, or name the inputs in data.features")


def check_named(header: Sequence[str], path: Path) -> None:
    """Raise a UserError if a column has no name: it is most likely the number of the row."""
    for place, name in enumerate(header, 1):
        if NAMELESS.fullmatch(name):
            remedy = "Give it one or remove it, or name the inputs in data.features"
            raise UserError(f"{path}: column {place} has no name. {remedy}")
