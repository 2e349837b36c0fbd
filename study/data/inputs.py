"""What cannot be an input: checks of the columns of a user's table."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from study.data import label_files, user_data
from study.data.columns import is_number, numbers
from study.errors import UserError
from study.text import quoted, some

DISTINCT, LARGEST_GROUP = 50, 0.05
"""Different rows at least, and the share of all rows that equal ones have at most, for equal rows to be one sample."""

FEWEST = 20
"""Rows from which on whole numbers in even steps are no accident."""

GAPS = frozenset(("?", "??", "-", "--", "---", ".", "..", "n.a.", "N.A.", "na", "n/k", "*", "#NULL!", "#VALUE!"))
"""Words of people and programs for a missing value that are none of `label_files.MISSING_MARKS`."""

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


def reading(rows: "pd.DataFrame", features: Sequence[str]) -> list[str]:
    """How each input is read, a line for each kind, and how many numbers a row becomes."""
    words = {name: sorted(rows[name].unique()) for name in features if not is_number(rows[name])}
    truths = [name for name, values in words.items() if user_data.likely_positive(values)]
    kinds = {
        "numbers": [name for name in features if name not in words],
        "yes or no": truths,
        "words": [
            f"{name} ({len(values)} words)"
            for name, values in sorted(words.items(), key=lambda item: -len(item[1]))
            if name not in truths
        ],
    }
    width = len(kinds["numbers"]) + sum(map(len, words.values()))
    return [
        f"inputs: {len(features)} column{'s' * (len(features) > 1)}, {width} numbers for the network",
        *(f"  {kind} ({len(names)}): {some(names)}" for kind, names in kinds.items() if names),
    ]


def likely_gaps(rows: "pd.DataFrame", features: Sequence[str]) -> list[str]:
    """A sentence for each input of words with one that looks like a missing value."""
    found = []
    for name in features:
        there = [] if is_number(rows[name]) else sorted({*rows[name].unique()} & GAPS)
        if there:
            counts = [f"{quoted(word)} ({int((rows[name] == word).sum())} rows)" for word in there]
            marks = ", ".join(f'"{word}"' for word in there)
            found.append(
                f"column {quoted(name)} has the words {some(counts)}. If they mean a missing value: "
                f"data.missing_marks: [{marks}]"
            )
    return found


def likely_dates(rows: "pd.DataFrame", features: Sequence[str]) -> list[str]:
    """A sentence for each input of whole numbers that are days, as 20260131."""
    found = []
    for name in features:
        column = rows[name]
        if not is_number(column) or (days := numbers(column)[column.notna().to_numpy(bool)]).size == 0:
            continue
        if not np.isfinite(days).all():
            continue
        month, day = days // 100 % 100, days % 100
        if np.all((days % 1 == 0) & (days // 10000 >= 1800) & (days < 22000000) & (month >= 1) & (month <= 12)) and (
            np.all((day >= 1) & (day <= 31))
        ):
            found.append(f"column {quoted(name)} looks like dates, as {days[0]:.0f}, and is read as a number")
    return found


def spellings(rows: "pd.DataFrame", features: Sequence[str]) -> list[str]:
    """A sentence for each input whose words differ by capitals or by how Unicode writes an accent alone."""
    found = []
    for name in features:
        if is_number(rows[name]):
            continue
        alike: dict[str, list[str]] = {}
        for word in sorted(rows[name].unique()):
            alike.setdefault(user_data.folded(word), []).append(word)
        if several := [some([quoted(word) for word in words]) for words in alike.values() if len(words) > 1]:
            found.append(
                f"column {quoted(name)} has words that may be one: {'; '.join(several[:3])}. Each is a kind of its own"
            )
    return found


def check_no_split(rows: "pd.DataFrame", features: Sequence[str], split: str | None, path: Path) -> None:
    """Raise a UserError if one of the inputs, which nobody named, says the split of each row."""
    for name in features if split is None else ():
        if label_files.is_split(name, rows[name].dropna().unique().tolist()):
            raise UserError(
                f"{path}: column {quoted(name)} says which split a row belongs to, and would be an input. Give "
                f"data.split: {name} to use it, or name the inputs in data.features"
            )


def running_numbers(rows: "pd.DataFrame", features: Sequence[str]) -> tuple[str, ...]:
    """The columns that count the rows, in any order: whole numbers, another one in each row, in even steps.

    Where a file is sorted by class, such a number tells the class of every row.
    """
    found = []
    for name in features:
        column = rows[name]
        if column.dtype.kind not in "iuf" or len(column) < FEWEST:
            continue
        values = np.sort(column.to_numpy())
        if not np.isfinite(values).all():
            continue
        steps = np.diff(values)
        if (values % 1 == 0).all() and steps[0] > 0 and (steps == steps[0]).all():
            found.append(name)
    return tuple(found)


def to_keep_together(rows: "pd.DataFrame", features: Sequence[str]) -> NDArray[np.int64] | None:
    """The group of equal rows that each row is in, (N,), where such rows are most likely one sample that is there
    several times; None where no row is, or where rows are equal since there are few that a table of so few values can
    have."""
    group = equal_rows(rows, features)
    counts = np.bincount(group)
    is_repeated = len(counts) < len(group)
    return group if is_repeated and len(counts) >= DISTINCT and counts.max() <= LARGEST_GROUP * len(group) else None


def equal_rows(rows: "pd.DataFrame", features: Sequence[str]) -> NDArray[np.int64]:
    """The number of each row's inputs among all that there are, (N,)."""
    return rows.groupby(list(features), sort=False, dropna=False).ngroup().to_numpy().astype(np.int64)


def one_to_one(
    rows: "pd.DataFrame", features: Sequence[str], codes: NDArray[np.int64] | None, key: str, named: Sequence[str]
) -> list[str]:
    """A sentence for each input that has one value for each class or bias class.

    Args:
        codes: of each row, (N,), -1 where it is not known; None: there are none.
        key: of the study file that names the `named` columns, which do not count.
    """
    if codes is None:
        return []
    known = codes >= 0
    there = rows[known].assign(**{"": codes[known]})
    kinds = there[""].nunique()
    return [
        f"column {quoted(name)} is an input, and has one value for each value of {key} ({'+'.join(named)}): it tells it"
        for name in features
        if name not in named and kinds == there[name].nunique() == there.groupby([name, ""], dropna=False).ngroups
    ]


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
