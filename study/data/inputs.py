"""What cannot be an input: checks of the columns of a user's table."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from study.data import label_files, user_data
from study.data.columns import is_number, numbers
from study.errors import UserError
from study.text.quoted import quoted

if TYPE_CHECKING:
    import pandas as pd

MOST_VALUES = 200
"""Different values that a column of text may have: more are names or a number column with a stray word."""


def check(column: "pd.Series", path: Path) -> None:
    """Raise a UserError if a column cannot be an input."""
    name = str(column.name)
    if is_number(column):
        label_files.check_size(numbers(column), name, path)
    elif (values := column.nunique()) > MOST_VALUES:
        problem = f"has {values} different texts, at most {MOST_VALUES} are allowed"
        raise UserError(f"{path}: column {quoted(name)} {problem}. Leave it out of data.features, or make it numbers")


def check_copies(
    rows: "pd.DataFrame", inputs: Sequence[str], labels: user_data.Labels, target: str, path: Path
) -> None:
    """Refuse an input that nobody named and that says the class: another spelling of it, most likely."""
    for name in inputs:
        if rows[name].nunique() != labels.classes:
            continue
        pairs = set(zip(rows[name].tolist(), labels.target.tolist(), strict=True))
        if len(pairs) == labels.classes:
            problem = f"column {quoted(name)} has one value for each value of {target!r}: it would tell the class"
            raise UserError(f"{path}: {problem}. Name the inputs in data.features, with it or without")
