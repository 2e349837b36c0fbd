"""Text of bounded length: what a user gave may be a megabyte, and a message about it is read by people."""


def shortened(text: str, most: int = 200) -> str:
    """The text, or its beginning and end around a note of how many characters are left out."""
    if len(text) <= most:
        return text
    note = f" ...({len(text)} characters)... "
    kept = max(most - len(note), 2)
    return f"{text[: (kept + 1) // 2]}{note}{text[-(kept // 2) :]}"
