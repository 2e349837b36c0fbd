"""Text of others, made safe to print: what a terminal would obey is shown, not obeyed."""

KEPT = "\n\t"
"""Characters that cannot be printed and stay."""


def printed(text: str) -> str:
    """The text with each character that a terminal might obey (escapes, carriage returns, changes of direction) written
    as Python writes it, as `\\x1b`; lines stay lines."""
    if text.isprintable():
        return text
    return "".join(sign if sign.isprintable() or sign in KEPT else repr(sign)[1:-1] for sign in text)
