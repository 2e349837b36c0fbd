"""Rows with missing values in a user's table: what `study init` asks about them, and what it notes in the file."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from study.commands.init_answers import Asker, one_of
from study.data import label_files, user_data
from study.errors import UserError


@dataclass(frozen=True)
class Gaps:
    """A `data` section that says what happens to rows with missing values, and notes about them for the file."""

    section: dict[str, Any]
    notes: tuple[str, ...] = ()


def ask(section: Mapping[str, Any], flag: str | None, asker: Asker) -> Gaps:
    """The section of the user's files with what happens to rows without a value, if it does not say yet.

    Raises:
        UserError: the flag is for another kind of data, or cannot be used.
    """
    if section["name"] != "table" or "missing" in section:
        if flag is not None:
            raise UserError(f"--missing {flag}: is for tables, and not beside --set data.missing")
        return Gaps(dict(section), _about_bias(section))
    path = label_files.locate(section["path"])
    rows = label_files.read_typed(path, **label_files.dialect(section))
    bias = user_data.columns_of(section.get("bias"), rows.columns, path)
    gaps = rows.drop(columns=bias).isna()
    incomplete = int(gaps.any(axis=1).sum())
    unlabelled = int(gaps[user_data.columns_of(section["target"], rows.columns, path)].any(axis=1).sum())
    if not incomplete and flag is None:
        return Gaps(dict(section), _about_bias(section))
    counted = f"{incomplete} of {len(rows)} rows have missing values, {unlabelled} of them no class"
    allowed = ("drop",) if unlabelled else ("fill", "drop")
    question = f"{counted}. What happens to them, {' or '.join(allowed)}"
    answer = asker("--missing", flag, question, allowed[0], one_of(*allowed))
    remedy = "the rows are left out" if answer == "drop" else "the mean of the training rows, or a value of its own"
    note = f"{counted}. missing: {answer}: {remedy}."
    return Gaps({**section, "missing": answer}, (note, *_about_bias(section)))


def _about_bias(section: Mapping[str, Any]) -> tuple[str, ...]:
    """How many samples have no bias label, where they are let in."""
    if section.get("bias_gaps") != "unknown":
        return ()
    place = label_files.locate(section["path"])
    path = place / section.get("labels", "labels.csv") if place.is_dir() else place
    rows = label_files.read_labels(path, marks=section.get("missing_marks") or ())
    without = int((rows[user_data.columns_of(section["bias"], rows.columns, path)] == "").any(axis=1).sum())
    return (f"{without} of {len(rows)} rows have no bias label. bias_gaps: unknown: they stay, their bias is guessed.",)
