"""Text for people: Markdown, moments, commands to type, and what a message can quote."""

import json
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, tzinfo
from typing import Any, TextIO
from urllib.parse import urlsplit, urlunsplit

KEPT_CONTROL_CHARACTERS = "\n\t"
"""Characters that are not printable, but stay as they are."""


def printed(text: str) -> str:
    r"""Return the text with each character that a terminal might obey written as Python writes it, as `\x1b`.

    These are escapes, carriage returns, changes of direction and others; bytes that are no UTF-8 become `\xe9`, and
    lines stay lines. Names of files, classes, columns or studies may hold them.
    """
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
    """Print a text or path for people at once, see `printed`; only JSON is printed otherwise.

    Args:
        to: standard output by default.
    """
    print(printed(str(shown)), end=end, file=to, flush=True)


LONGEST_VALUE = 60
"""Most characters of a parameter's value that a table or a sentence shows."""

OTHERS = ("true", "false", "null", "none", "-", "")
"""Texts that would read as another value, or as none."""


def shortened(text: str, most: int = 200) -> str:
    """Return the text, or its beginning and end around a note of how many characters it has."""
    if len(text) <= most:
        return text
    note = f" ...({len(text)} characters)... "
    kept = max(most - len(note), 2)
    return f"{text[: (kept + 1) // 2]}{note}{text[-(kept // 2) :]}"


def parameter(value: Any, digits: int = 4) -> str:
    """Return a parameter's value for people, so that kinds can be told apart.

    A float has so many significant digits and a point; `true` and `null` are written so; a text that would read as one
    of these or as a number is in quotes.
    """
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
    """Return the ends of a range as text: whole numbers without a point, others with one or an exponent."""
    whole = isinstance(low, int) and isinstance(high, int)
    return " to ".join(str(end) if whole else repr(float(end)) for end in (low, high))


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


LONGEST_NAME = 320
"""Most characters of one text that a message shows: names of files are shorter."""

SHOWN = 12
"""Most names that a message lists."""


def counted(number: int, singular: str, plural: str | None = None) -> str:
    """Return `1 trial`, `3 trials`."""
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"


def quoted(text: str) -> str:
    """Return the text in quotes, as in Python; shortened where it is long."""
    return shortened(repr(text), LONGEST_NAME)


def sentence_case(text: str) -> str:
    """Return a text with its first letter in upper case."""
    return f"{text[:1].upper()}{text[1:]}"


def few_names(names: Sequence[str], few: int = SHOWN) -> str:
    """Return the first few of these names, and how many more there are, on one line."""
    more = f" and {len(names) - few} more" if len(names) > few else ""
    shown = (shortened(name, LONGEST_NAME) if name.isprintable() else quoted(name) for name in names[:few])
    return ", ".join(shown) + more


def typed(*words: object) -> str:
    """Return a `study` command that can be typed: words with spaces or signs that a shell reads are quoted.

    >>> typed("train", "my studies/best.yaml", "--seeds", "0,1")
    "study train 'my studies/best.yaml' --seeds 0,1"
    """
    return shlex.join(["study", *map(str, words)])


def moment(seconds: Any, zone: tzinfo | None = None) -> str:
    """Return `2026-11-22 15:28:37 UTC`, or `-` for what is no number of seconds since the epoch.

    Args:
        zone: for files, which whoever reads them should find the same; None: the one of this machine.
    """
    if not isinstance(seconds, int | float):
        return "-"
    return datetime.fromtimestamp(seconds, zone).astimezone(zone).strftime("%Y-%m-%d %H:%M:%S %Z")


def in_columns(rows: Sequence[Sequence[str]], least: Sequence[int]) -> list[str]:
    """Return a line per row, each column as wide as its longest cell and at least `least`; the last is not padded."""
    widths = [max(wide, *(len(row[place]) for row in rows)) for place, wide in enumerate(least)]
    return [" ".join([*(f"{cell:<{wide}}" for cell, wide in zip(row, widths, strict=False)), row[-1]]) for row in rows]


FORMULA = re.compile(r"'*[=+\-@\t\r]")
"""The beginning of a formula, after apostrophes, so that `neutral_cell` can be undone."""

NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def neutral_cell(text: str) -> str:
    """Return the text, after an apostrophe where a spreadsheet would compute it; numbers such as -0.5 stay.

    Source: OWASP, CSV Injection.
    """
    return f"'{text}" if FORMULA.match(text) and not NUMBER.fullmatch(text) else text


def plain_cell(cell: str) -> str:
    """Return the text that `neutral_cell` was given."""
    return cell[1:] if cell.startswith("'") and FORMULA.match(cell) else cell


class Markdown(str):
    """Text that is Markdown already: `escaped` leaves it as it is."""

    __slots__ = ()


def escaped(text: str) -> Markdown:
    """Return Markdown that prints a text as it is, on one line."""
    if isinstance(text, Markdown):
        return text
    one_line = " ".join(text.split())
    return Markdown(re.sub(r"([\\`*<>\[\]|#&~]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9]))", r"\\\1", one_line))


def rows_as_markdown(header: Sequence[str], rows: Iterable[Sequence[str]], numeric: Sequence[bool] = ()) -> str:
    """Return a table in Markdown; every cell that is not `Markdown` is escaped.

    Args:
        numeric: which columns are aligned to the right; empty: none.
    """
    rule = [Markdown("---:" if right else "---") for right in numeric or [False] * len(header)]
    return "\n".join(f"| {' | '.join(map(escaped, row))} |" for row in (header, rule, *rows))


def flat(values: Mapping[str, Any], between: str = ".", above: str = "") -> dict[str, Any]:
    """Return nested values by their keys, joined by `between`."""
    found: dict[str, Any] = {}
    for key, value in values.items():
        is_nested = isinstance(value, Mapping) and value
        found |= flat(value, between, f"{above}{key}{between}") if is_nested else {f"{above}{key}": value}
    return found


SECRET = ("password", "passwd", "user", "username", "sslpassword", "token")
"""Options of an address that are not shown."""


def without_password(uri: str) -> str:
    """Return an address without user name and password, before its host or among its options."""
    parts = urlsplit(uri)
    shown = [option for option in parts.query.split("&") if option.partition("=")[0].lower() not in SECRET]
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2], query="&".join(shown)))
