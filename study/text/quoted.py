"""Names and values from a user's file in a message: one line that can be read, whatever the file holds."""

from collections.abc import Sequence

from study.text.short import shortened

LONGEST = 320
"""Letters of one text that a message shows: names of files are shorter."""

SHOWN = 12
"""Names that a message lists."""


def quoted(text: str) -> str:
    """The text in quotes, as in Python; shortened where it is long."""
    return shortened(repr(text), LONGEST)


def some(names: Sequence[str]) -> str:
    """The first few of these names, and how many more there are."""
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    shown = (shortened(name, LONGEST) if name.isprintable() else quoted(name) for name in names[:SHOWN])
    return ", ".join(shown) + more
