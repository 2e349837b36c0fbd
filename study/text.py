"""Text for people: Markdown, moments, commands to type, and what a message can quote."""

import json
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, tzinfo
from typing import Any, TextIO

# Text with names in it that others gave, of files, classes, columns or studies, made safe to print: what a terminal
# would obey is shown, not obeyed.


KEPT_CONTROL_CHARACTERS = "\n\t"
"""Characters that cannot be printed and stay."""


def printed(text: str) -> str:
    """The text with each character that a terminal might obey (escapes, carriage returns, changes of direction) written
    as Python writes it, as `\\x1b`, and with bytes that are no UTF-8 as `\\xe9`; lines stay lines."""
    if text.isprintable():
        return text
    return "".join(sign if sign.isprintable() or sign in KEPT_CONTROL_CHARACTERS else _written(sign) for sign in text)


def _written(sign: str) -> str:
    byte = ord(sign) - 0xDC00  # as Python reads bytes of file names and arguments
    return f"\\x{byte:02x}" if 0x80 <= byte <= 0xFF else repr(sign)[1:-1]


def is_utf8(name: str) -> bool:
    """Return whether a file's name is text in UTF-8; Python keeps the bytes of others as single surrogates."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def tell(shown: object, to: TextIO | None = None, end: str = "\n") -> None:
    """Print a text or path for people, see `printed`, at once: nothing else prints, but for JSON.

    Args:
        to: standard output by default.
    """
    print(printed(str(shown)), end=end, file=to, flush=True)


# Text of bounded length: what a user gave may be a megabyte, and a message about it is read by people.


LONGEST_VALUE = 60
"""Letters of a parameter's value that a table or a sentence shows."""

OTHERS = ("true", "false", "null", "none", "-", "")
"""Texts that would read as another value, or as none."""


def shortened(text: str, most: int = 200) -> str:
    """The text, or its beginning and end around a note of how many characters are left out."""
    if len(text) <= most:
        return text
    note = f" ...({len(text)} characters)... "
    kept = max(most - len(note), 2)
    return f"{text[: (kept + 1) // 2]}{note}{text[-(kept // 2) :]}"


def parameter(value: Any, digits: int = 4) -> str:
    """A parameter's value as people read it, each kind told from the others: a float with so many significant digits
    and a point, `true`, `null`, and in quotes a text that would read as one of these or as a number."""
    if isinstance(value, bool) or value is None:
        return json.dumps(value)
    if isinstance(value, float):
        text = f"{value:.{digits}g}"
        return f"{text}.0" if text.lstrip("-").isdecimal() else text
    if isinstance(value, list | tuple):
        return ", ".join(parameter(item, digits) for item in value) or "none"
    text = str(value)
    if isinstance(value, str) and (text.lower() in OTHERS or _is_number(text)):
        return json.dumps(text)
    return shortened(text, LONGEST_VALUE)


def ends(low: Any, high: Any) -> str:
    """The ends of a range: those of whole numbers without a point, those of others with one or an exponent."""
    whole = isinstance(low, int) and isinstance(high, int)
    return " to ".join(str(end) if whole else repr(float(end)) for end in (low, high))


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


# Names and values from a user's file in a message: one line that can be read, whatever the file holds.


LONGEST_NAME = 320
"""Letters of one text that a message shows: names of files are shorter."""

SHOWN = 12
"""Names that a message lists."""


def quoted(text: str) -> str:
    """The text in quotes, as in Python; shortened where it is long."""
    return shortened(repr(text), LONGEST_NAME)


def sentence_case(text: str) -> str:
    """A text with its first letter as that of a sentence."""
    return f"{text[:1].upper()}{text[1:]}"


def some(names: Sequence[str], few: int = SHOWN) -> str:
    """The first few of these names, and how many more there are."""
    more = f" and {len(names) - few} more" if len(names) > few else ""
    shown = (shortened(name, LONGEST_NAME) if name.isprintable() else quoted(name) for name in names[:few])
    return ", ".join(shown) + more


# Commands that a message proposes, as a shell reads them back.


def typed(*words: object) -> str:
    """A `study` command that can be typed: words with spaces or signs that a shell reads are quoted.

    >>> typed("train", "my studies/best.yaml", "--seeds", "0,1")
    "study train 'my studies/best.yaml' --seeds 0,1"
    """
    return shlex.join(["study", *map(str, words)])


# Moments as people read them.


def moment(seconds: Any, zone: tzinfo | None = None) -> str:
    """`2026-11-22 15:28:37 UTC`, or `-` for what is no number of seconds since the epoch.

    Args:
        zone: for files, which whoever reads them should find the same; None: the one of this machine.
    """
    if not isinstance(seconds, int | float):
        return "-"
    return datetime.fromtimestamp(seconds, zone).astimezone(zone).strftime("%Y-%m-%d %H:%M:%S %Z")


# Rows as lines whose columns stand below each other.


def in_columns(rows: Sequence[Sequence[str]], least: Sequence[int]) -> list[str]:
    """A line per row. A column is as wide as its longest cell, and at least so many characters; the last one ends."""
    widths = [max(wide, *(len(row[place]) for row in rows)) for place, wide in enumerate(least)]
    return [" ".join([*(f"{cell:<{wide}}" for cell, wide in zip(row, widths, strict=False)), row[-1]]) for row in rows]


# Text in the cells of CSV files, which spreadsheets take for a formula where it begins like one.


FORMULA = re.compile(r"'*[=+\-@\t\r]")
"""The characters with which a formula begins; behind apostrophes so that `neutral` can be undone."""

NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def neutral_cell(text: str) -> str:
    """The text with an apostrophe before it where a spreadsheet would compute it; numbers such as -0.5 stay.

    Source: OWASP, CSV Injection.
    """
    return f"'{text}" if FORMULA.match(text) and not NUMBER.fullmatch(text) else text


def plain_cell(cell: str) -> str:
    """The text that `neutral` was given."""
    return cell[1:] if cell.startswith("'") and FORMULA.match(cell) else cell


# Markdown that prints text as it is.


class Markdown(str):
    """Text that is Markdown already: `escape` leaves it as it is."""

    __slots__ = ()


def escaped(text: str) -> Markdown:
    """Text as Markdown that prints it as it is, on one line."""
    if isinstance(text, Markdown):
        return text
    one_line = " ".join(text.split())
    return Markdown(re.sub(r"([\\`*<>\[\]|#&~]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9]))", r"\\\1", one_line))


def rows_as_markdown(header: Sequence[str], rows: Iterable[Sequence[str]], numeric: Sequence[bool] = ()) -> str:
    """A table; every cell that is not `Written` is escaped.

    Args:
        numeric: which columns are aligned to the right; empty: none.
    """
    rule = [Markdown("---:" if right else "---") for right in numeric or [False] * len(header)]
    return "\n".join(f"| {' | '.join(map(escaped, row))} |" for row in (header, rule, *rows))


def flat(values: Mapping[str, Any], between: str = ".", above: str = "") -> dict[str, Any]:
    """Nested values by their keys, joined."""
    found: dict[str, Any] = {}
    for key, value in values.items():
        is_nested = isinstance(value, Mapping) and value
        found |= flat(value, between, f"{above}{key}{between}") if is_nested else {f"{above}{key}": value}
    return found
