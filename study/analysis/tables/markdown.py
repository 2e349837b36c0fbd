"""Text as Markdown prints it."""

import re


def escape(text: str) -> str:
    """Text that Markdown prints as it is, on one line."""
    one_line = " ".join(text.split())
    return re.sub(r"([\\`*<>\[\]|#&~]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9]))", r"\\\1", one_line)
