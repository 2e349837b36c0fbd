"""Text with names in it that others gave, of files, classes, columns or studies, made safe to print: what a terminal
would obey is shown, not obeyed."""

from typing import TextIO

KEPT = "\n\t"
"""Characters that cannot be printed and stay."""


def printed(text: str) -> str:
    """The text with each character that a terminal might obey (escapes, carriage returns, changes of direction) written
    as Python writes it, as `\\x1b`, and with bytes that are no UTF-8 as `\\xe9`; lines stay lines."""
    if text.isprintable():
        return text
    return "".join(sign if sign.isprintable() or sign in KEPT else _written(sign) for sign in text)


def _written(sign: str) -> str:
    byte = ord(sign) - 0xDC00  # as Python reads bytes of file names and arguments
    return f"\\x{byte:02x}" if 0x80 <= byte <= 0xFF else repr(sign)[1:-1]


def tell(shown: object, to: TextIO | None = None, end: str = "\n") -> None:
    """Print a text or path for people, see `printed`, at once: nothing else prints, but for JSON.

    Args:
        to: standard output by default.
    """
    print(printed(str(shown)), end=end, file=to, flush=True)
