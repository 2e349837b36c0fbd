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


def escape_control(text: str) -> str:
    r"""Return the text with each character that a terminal might obey written as Python writes it, as `\x1b`.

    These are escapes, carriage returns, changes of direction and others; bytes that are no UTF-8 become `\xe9`, and
    lines stay lines. Names of files, classes, columns or studies may hold them.
    """
    if text.isprintable():
        return text
    return "".join(
        sign if sign.isprintable() or sign in KEPT_CONTROL_CHARACTERS else _escape_character(sign) for sign in text
    )


def _escape_character(sign: str) -> str:
    byte = ord(sign) - 0xDC00  # as Python reads bytes of file names and arguments
    return f"\\x{byte:02x}" if 0x80 <= byte <= 0xFF else repr(sign)[1:-1]


def is_utf8(name: str) -> bool:
    """Return whether a file's name is text in UTF-8; Python keeps the bytes of others as single surrogates."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def print_text(shown: object, to: TextIO | None = None, end: str = "\n") -> None:
    """Print a text or path for people at once, see `escape_control`; only JSON is printed otherwise.

    Args:
        to: standard output by default.
    """
    print(escape_control(str(shown)), end=end, file=to, flush=True)


MAX_SHOWN_VALUE_CHARACTERS = 60
"""Most characters of a parameter's value that a table or a sentence shows."""

AMBIGUOUS_TEXTS = ("true", "false", "null", "none", "-", "")
"""Texts that would read as another value, or as none."""


def shorten_text(text: str, max_characters: int = 200) -> str:
    """Return the text, or its beginning and end around a note of how many characters it has."""
    if len(text) <= max_characters:
        return text
    note = f" ...({len(text)} characters)... "
    kept = max(max_characters - len(note), 2)
    return f"{text[: (kept + 1) // 2]}{note}{text[-(kept // 2) :]}"


def format_parameter(value: Any, digits: int = 4) -> str:
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
        return ", ".join(format_parameter(item, digits) for item in value) or "none"
    text = str(value)
    if isinstance(value, str) and (text.lower() in AMBIGUOUS_TEXTS or _is_number(text)):
        return json.dumps(text)
    return shorten_text(text, MAX_SHOWN_VALUE_CHARACTERS)


def format_range_ends(low: Any, high: Any) -> str:
    """Return the ends of a range as text: whole numbers without a point, others with one or an exponent."""
    whole = isinstance(low, int) and isinstance(high, int)
    return " to ".join(str(end) if whole else repr(float(end)) for end in (low, high))


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


MAX_QUOTED_CHARACTERS = 320
"""Most characters of one text that a message shows: names of files are shorter."""

MAX_SHOWN_NAMES = 12
"""Most names that a message lists."""


def pluralise(number: int, singular: str, plural: str | None = None) -> str:
    """Return `1 trial`, `3 trials`."""
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"


def quoted(text: str) -> str:
    """Return the text in quotes, as in Python; shortened where it is long."""
    return shorten_text(repr(text), MAX_QUOTED_CHARACTERS)


def sentence_case(text: str) -> str:
    """Return a text with its first letter in upper case."""
    return f"{text[:1].upper()}{text[1:]}"


def list_few_names(names: Sequence[str], few: int = MAX_SHOWN_NAMES) -> str:
    """Return the first few of these names, and how many more there are, on one line."""
    more = f" and {len(names) - few} more" if len(names) > few else ""
    shown = (shorten_text(name, MAX_QUOTED_CHARACTERS) if name.isprintable() else quoted(name) for name in names[:few])
    return ", ".join(shown) + more


def study_command(*words: object) -> str:
    """Return a `study` command that can be typed: words with spaces or signs that a shell reads are quoted.

    >>> study_command("train", "my studies/best.yaml", "--seeds", "0,1")
    "study train 'my studies/best.yaml' --seeds 0,1"
    """
    return shlex.join(["study", *map(str, words)])


def format_time(seconds: Any, zone: tzinfo | None = None) -> str:
    """Return `2026-11-22 15:28:37 UTC`, or `-` for what is no number of seconds since the epoch.

    Args:
        zone: for files, which whoever reads them should find the same; None: the one of this machine.
    """
    if not isinstance(seconds, int | float):
        return "-"
    return datetime.fromtimestamp(seconds, zone).astimezone(zone).strftime("%Y-%m-%d %H:%M:%S %Z")


def align_columns(rows: Sequence[Sequence[str]], min_width: Sequence[int]) -> list[str]:
    """Return a line per row, each column as wide as its longest cell or its `min_width`; the last is not padded."""
    widths = [max(wide, *(len(row[place]) for row in rows)) for place, wide in enumerate(min_width)]
    return [" ".join([*(f"{cell:<{wide}}" for cell, wide in zip(row, widths, strict=False)), row[-1]]) for row in rows]


FORMULA_START_PATTERN = re.compile(r"'*[=+\-@\t\r]")
"""The beginning of a formula, after apostrophes, so that `escape_formula` can be undone."""

NUMBER_PATTERN = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def escape_formula(text: str) -> str:
    """Return the text, after an apostrophe where a spreadsheet would compute it; numbers such as -0.5 stay.

    Source: OWASP, CSV Injection.
    """
    return f"'{text}" if FORMULA_START_PATTERN.match(text) and not NUMBER_PATTERN.fullmatch(text) else text


def unescape_formula(cell: str) -> str:
    """Return the text that `escape_formula` was given."""
    return cell[1:] if cell.startswith("'") and FORMULA_START_PATTERN.match(cell) else cell


class Markdown(str):
    """Text that is Markdown already: `escape_markdown` leaves it as it is."""

    __slots__ = ()


def escape_markdown(text: str) -> Markdown:
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
    return "\n".join(f"| {' | '.join(map(escape_markdown, row))} |" for row in (header, rule, *rows))


def flatten_mapping(values: Mapping[str, Any], separator: str = ".", above: str = "") -> dict[str, Any]:
    """Return nested values by their keys, joined by `separator`."""
    found: dict[str, Any] = {}
    for key, value in values.items():
        is_nested = isinstance(value, Mapping) and value
        found |= (
            flatten_mapping(value, separator, f"{above}{key}{separator}") if is_nested else {f"{above}{key}": value}
        )
    return found


SECRET_URI_OPTIONS = ("password", "passwd", "user", "username", "sslpassword", "token")
"""Options of an address that are not shown."""


def redact_credentials(uri: str) -> str:
    """Return an address without user name and password, before its host or among its options."""
    parts = urlsplit(uri)
    shown = [option for option in parts.query.split("&") if option.partition("=")[0].lower() not in SECRET_URI_OPTIONS]
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2], query="&".join(shown)))
