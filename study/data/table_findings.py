"""Findings about the columns of a user's table: what refuses it, what is doubtful, and the key that helps."""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from study.errors import UserError
from study.text import quoted

FindingKind = Literal["refused", "no input", "telling", "left out", "constant", "odd"]
"""`refused`: cannot be an input as it is; `no input`: refused, and best left out, as dates and names; `telling`:
predicts the class alone, which the user decides on; `left out`: is not an input, which is said; `constant`: equal in
every row; `odd`: an input that may not be what it seems.
"""

LEFT_OUT_KEY = "data.without"
MISSING_MARKS_KEY = "data.missing_marks"
TARGET_BINS_KEY = "data.target_bins"
WORD_COLUMNS_KEY = "data.words"


@dataclass(frozen=True)
class ColumnFinding:
    """A finding about a column.

    Attributes:
        column: its name; empty: it is about the table, and `problem` is a sentence.
        problem: what was found, to follow "column NAME".
        remedy: what to do, as a sentence.
        remedy_key, remedy_values: key of the study file that helps, and its values; empty where none does.
        may_be_words: whether `data.words` helps in place of it, if what the column holds are words.
    """

    column: str
    problem: str
    remedy: str
    kind: FindingKind = "refused"
    remedy_key: str = ""
    remedy_values: tuple[str, ...] = ()
    may_be_words: bool = False

    def __str__(self) -> str:
        about = f"column {quoted(self.column)} " if self.column else ""
        return f"{about}{self.problem}. {self.remedy}".rstrip(" .")

    @property
    def remedy_text(self) -> str:
        """The key as it stands in a study file, or what to do where there is none."""
        return key_with_values(self.remedy_key, self.remedy_values) if self.remedy_key else self.remedy


def leave_out_finding(column: str, problem: str, kind: FindingKind = "refused", more: str = "") -> ColumnFinding:
    """Make a finding about a column that is best left out.

    Args:
        more: what else helps, as a sentence.
    """
    remedy = f"Leave it out by {key_with_values(LEFT_OUT_KEY, (column,))}{f', or {more}' if more else ''}"
    return ColumnFinding(column, problem, remedy, kind, LEFT_OUT_KEY, (column,))


def key_with_values(key: str, values: Sequence[str]) -> str:
    """Write a key with values, as in a study file."""
    plain = [
        value if key == TARGET_BINS_KEY or (key != MISSING_MARKS_KEY and _is_plain_yaml(value)) else _quote_text(value)
        for value in values
    ]
    return f"{key}: {plain[0]}" if key in SINGLE_VALUE_KEYS else f"{key}: [{', '.join(plain)}]"


SINGLE_VALUE_KEYS = ("data.bias", "data.decimal", "data.missing", "data.split", "data.group")
"""Keys that take one value."""


def _quote_text(text: str) -> str:
    return json.dumps(text, ensure_ascii=not text.isprintable())


def _is_plain_yaml(text: str) -> bool:
    """Tell whether YAML reads a text as that text without quotes."""
    return bool(re.fullmatch(r"[^\W\d][\w.-]*", text)) and text.lower() not in YAML_SPECIAL_WORDS


YAML_SPECIAL_WORDS = frozenset(["y", "n", "yes", "no", "on", "off", "true", "false", "null", "none", "nan"])
"""Words that YAML, in one of its versions, does not take for text."""


def remedy_values_by_key(findings: Iterable[ColumnFinding]) -> dict[str, tuple[str, ...]]:
    """Collect the keys that help with some findings, each with all its values; skip columns that no key mends."""
    found: dict[str, dict[str, None]] = {}
    for one in findings:
        if key := one.remedy_key or (LEFT_OUT_KEY if one.column else ""):
            found.setdefault(key, {}).update(dict.fromkeys(one.remedy_values or (one.column,)))
    return {key: tuple(values) for key, values in found.items()}


def format_findings(findings: Sequence[ColumnFinding]) -> list[str]:
    """Write a line for each finding, in columns: the name, the problem, what helps."""
    names = [one.column or "-" for one in findings]
    width = max(map(len, names), default=0)
    problems = max((len(one.problem) for one in findings if len(one.problem) <= MAX_PADDED_CHARACTERS), default=0)
    return [
        f"  {name:<{width}}  {one.problem:<{problems}}  {one.remedy_text}".rstrip()
        for name, one in zip(names, findings, strict=True)
    ]


def shortcut_sentences(column: str, share: float) -> str:
    """Say of an input that goes with the class what it may do to accuracy, and the key that helps."""
    return (
        f"Column {quoted(column)} goes with the class in {100 * share:.0f}% of the training rows, far more than any "
        "other column. On samples in which it does not, accuracy may be much lower. If the two will not go together in "
        f"use, the column is a bias: {key_with_values('data.bias', (column,))}."
    )


def findings_with_heading(findings: Sequence[ColumnFinding]) -> list[str]:
    """Write the table of findings below a line that says what they are; no lines where there are no findings."""
    return ["look at these columns:", *format_findings(findings)] if findings else []


MAX_PADDED_CHARACTERS = 90
"""Length of a problem, in characters, from which on shorter ones are not padded to it."""


def findings_message(path: Path, findings: Sequence[ColumnFinding]) -> str:
    """Write all findings as one message."""
    if len(findings) == 1:
        return f"{path}: {findings[0]}"
    together = "; ".join(key_with_values(key, values) for key, values in remedy_values_by_key(findings).items())
    end = [f"What helps with all of them, in one: {together}"] if together else []
    return "\n".join([f"{path}: {len(findings)} things are to be mended or decided:", *format_findings(findings), *end])


def raise_if_refused(path: Path, findings: Iterable[ColumnFinding]) -> None:
    """Raise a UserError with all findings that refuse the table, if there are any."""
    if refused := [one for one in findings if one.kind in ("refused", "no input")]:
        raise UserError(findings_message(path, refused))
