"""Text in the cells of CSV files, which spreadsheets take for a formula where it begins like one."""

import re

FORMULA = re.compile(r"'*[=+\-@\t\r]")
"""How a formula begins; behind apostrophes so that `neutral` can be undone."""

NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def neutral(text: str) -> str:
    """The text with an apostrophe before it where a spreadsheet would compute it; numbers such as -0.5 stay.

    Source: OWASP, CSV Injection.
    """
    return f"'{text}" if FORMULA.match(text) and not NUMBER.fullmatch(text) else text


def plain(cell: str) -> str:
    """The text that `neutral` was given."""
    return cell[1:] if cell.startswith("'") and FORMULA.match(cell) else cell
