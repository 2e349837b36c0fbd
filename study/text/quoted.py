"""Text of a user's in a message: in quotes, without line breaks and never long."""

from collections.abc import Sequence

LONGEST = 300
"""Letters of a text that a message shows."""

SHOWN = 12
"""Names that a message lists."""


def quoted(text: str) -> str:
    """The text in quotes, as in Python; of a long one its beginning."""
    return repr(text) if len(text) <= LONGEST else f"{text[:LONGEST]!r}..."


def some(names: Sequence[str]) -> str:
    """The first few of these names, and how many more there are."""
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    shown = (name if len(name) <= LONGEST and name.isprintable() else quoted(name) for name in names[:SHOWN])
    return ", ".join(shown) + more
