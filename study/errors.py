"""Errors that are the user's to mend: shown as one message, without a traceback, exit status 2."""

from collections.abc import Iterable
from difflib import get_close_matches


class UserError(Exception):
    """Something given by the user cannot be used. The message says what was given, where and what is allowed."""


def nearest(given: str, valid: Iterable[str]) -> str:
    """`Did you mean 'x'? ` for the closest valid spelling, or nothing where none is close."""
    matches = get_close_matches(given, list(valid), n=1, cutoff=0.6)
    return f"Did you mean {matches[0]!r}? " if matches else ""
