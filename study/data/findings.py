"""What is found about the columns of a user's table: what refuses them, what is doubtful, and the key that helps."""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from study.errors import UserError
from study.text import quoted

Kind = Literal["refused", "telling", "left out", "constant", "odd"]
"""`refused`: no input as it is; `telling`: tells the class alone, which the user decides on; `left out`: is no input,
which is said; `constant`: is the same in every row; `odd`: an input that may not be what it seems."""

WITHOUT, MARKS, BINS, WORDS = "data.without", "data.missing_marks", "data.target_bins", "data.words"


@dataclass(frozen=True)
class Finding:
    """One about a column.

    Attributes:
        column: its name; empty: it is about the table, and `problem` is a sentence.
        problem: what is so, after "column NAME".
        remedy: what to do, as a sentence.
        key, values: of the study file, which helps; empty where none does.
    """

    column: str
    problem: str
    remedy: str
    kind: Kind = "refused"
    key: str = ""
    values: tuple[str, ...] = ()

    def __str__(self) -> str:
        about = f"column {quoted(self.column)} " if self.column else ""
        return f"{about}{self.problem}. {self.remedy}".rstrip(" .")

    @property
    def helps(self) -> str:
        """The key as it stands in a study file, or what to do where there is none."""
        return setting(self.key, self.values) if self.key else self.remedy


def out(column: str, problem: str, kind: Kind = "refused", more: str = "") -> Finding:
    """A finding about a column that is best left out.

    Args:
        more: what else helps, as a sentence.
    """
    remedy = f"Leave it out by {setting(WITHOUT, (column,))}{f', or {more}' if more else ''}"
    return Finding(column, problem, remedy, kind, WITHOUT, (column,))


def setting(key: str, values: Sequence[str]) -> str:
    """A key with values, as in a study file."""
    plain = [value if key == BINS or (key != MARKS and _is_plain(value)) else _in_quotes(value) for value in values]
    return f"{key}: {plain[0]}" if key in SINGLE else f"{key}: [{', '.join(plain)}]"


SINGLE = ("data.decimal", "data.missing", "data.split", "data.group")
"""Keys that take one value."""


def _in_quotes(text: str) -> str:
    return json.dumps(text, ensure_ascii=not text.isprintable())


def _is_plain(text: str) -> bool:
    """Return whether YAML reads a text as that text without quotes."""
    return bool(re.fullmatch(r"[^\W\d][\w.-]*", text)) and text.lower() not in YAML_WORDS


YAML_WORDS = frozenset(["y", "n", "yes", "no", "on", "off", "true", "false", "null", "none", "nan"])
"""Words that YAML, in one of its versions, takes for something else than text."""


def keys(findings: Iterable[Finding]) -> dict[str, tuple[str, ...]]:
    """The keys that help with some findings, each with all its values; a column that no key mends is left out."""
    found: dict[str, dict[str, None]] = {}
    for one in findings:
        if key := one.key or (WITHOUT if one.column else ""):
            found.setdefault(key, {}).update(dict.fromkeys(one.values or (one.column,)))
    return {key: tuple(values) for key, values in found.items()}


def table(findings: Sequence[Finding]) -> list[str]:
    """A line for each, in columns: the name, what is so, what helps."""
    names = [one.column or "-" for one in findings]
    width = max(map(len, names), default=0)
    problems = max((len(one.problem) for one in findings if len(one.problem) <= LONG_PROBLEM_CHARACTERS), default=0)
    return [
        f"  {name:<{width}}  {one.problem:<{problems}}  {one.helps}".rstrip()
        for name, one in zip(names, findings, strict=True)
    ]


def listed(findings: Sequence[Finding]) -> list[str]:
    """The same below a line that says what they are; nothing where there are none."""
    return ["look at these columns:", *table(findings)] if findings else []


LONG_PROBLEM_CHARACTERS = 90
"""Characters of a problem from which on the others are not filled up to it."""


def message(path: Path, findings: Sequence[Finding]) -> str:
    """All that is found, in one message."""
    if len(findings) == 1:
        return f"{path}: {findings[0]}"
    together = "; ".join(setting(key, values) for key, values in keys(findings).items())
    end = [f"What helps with all of them, in one: {together}"] if together else []
    return "\n".join([f"{path}: {len(findings)} things are to be mended or decided:", *table(findings), *end])


def check(path: Path, findings: Iterable[Finding]) -> None:
    """Raise a UserError if something is refused: with all of it."""
    if refused := [one for one in findings if one.kind == "refused"]:
        raise UserError(message(path, refused))
