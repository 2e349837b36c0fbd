"""Text of bounded length: what a user gave may be a megabyte, and a message about it is read by people."""

import json
from typing import Any

LONGEST = 60
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
    return shortened(text, LONGEST)


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
