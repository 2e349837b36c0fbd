"""Markdown that prints text as it is."""

import re
from collections.abc import Iterable, Sequence


class Written(str):
    """Text that is Markdown already: `escape` leaves it as it is."""

    __slots__ = ()


def escape(text: str) -> Written:
    """Text as Markdown that prints it as it is, on one line."""
    if isinstance(text, Written):
        return text
    one_line = " ".join(text.split())
    return Written(re.sub(r"([\\`*<>\[\]|#&~]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9]))", r"\\\1", one_line))


def table(header: Sequence[str], rows: Iterable[Sequence[str]], numeric: Sequence[bool] = ()) -> str:
    """A table; every cell that is not `Written` is escaped.

    Args:
        numeric: which columns are aligned to the right; empty: none.
    """
    rule = [Written("---:" if right else "---") for right in numeric or [False] * len(header)]
    return "\n".join(f"| {' | '.join(map(escape, row))} |" for row in (header, rule, *rows))
