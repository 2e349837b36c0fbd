"""Rows with missing values in a user's table: what `study init` asks about them, and what it notes in the file."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from study.commands.init_answers import Asker, one_of
from study.data import label_files, user_data


@dataclass(frozen=True)
class Gaps:
    """A `data` section that says what happens to rows with missing values, and notes about them for the file."""

    section: dict[str, Any]
    notes: tuple[str, ...] = ()


def ask(section: Mapping[str, Any], flag: str | None, asker: Asker) -> Gaps:
    """The section of a table with `missing`, if values are missing in it and the section does not say yet.

    Raises:
        UserError: the flag is for another kind of data, or cannot be used.
    """
    if section["name"] != "table" or "missing" in section:
        if flag is not None:
            asker("--missing", flag, "", None, one_of())
        return Gaps(dict(section))
    path = label_files.locate(section["path"])
    rows = label_files.read_typed(path)
    labels = [name for key in ("target", "bias") for name in user_data.columns_of(section.get(key), rows.columns, path)]
    gaps = rows.isna()
    incomplete, unlabelled = int(gaps.any(axis=1).sum()), int(gaps[labels].any(axis=1).sum())
    if not incomplete and flag is None:
        return Gaps(dict(section))
    counted = f"{incomplete} of {len(rows)} rows have missing values, {unlabelled} of them in the labels"
    allowed = ("drop",) if unlabelled else ("fill", "drop")
    question = f"{counted}. What happens to them, {' or '.join(allowed)}"
    answer = asker("--missing", flag, question, allowed[0], one_of(*allowed))
    remedy = "the rows are left out" if answer == "drop" else "the mean of the training rows, or a value of its own"
    return Gaps({**section, "missing": answer}, (f"{counted}. missing: {answer}: {remedy}.",))
