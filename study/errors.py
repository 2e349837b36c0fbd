"""Errors that are shown as one message, without a traceback."""

from collections.abc import Iterable
from difflib import get_close_matches


class UserError(Exception):
    """Something given by the user cannot be used. The message says what was given, where and what is allowed. Exit
    status 2."""


class Stopped(Exception):
    """A study had to stop, through no fault of the user's; the message says why and how it goes on. Exit status 1."""


class Interrupted(Exception):
    """Ctrl-C or a signal came before a study ran; the message says what there is now. Exit status 130."""


def nearest(word: str, valid: Iterable[str]) -> str:
    """`Did you mean 'x'? ` for the closest valid spelling, or nothing where none is close."""
    matches = get_close_matches(word, list(valid), n=1, cutoff=0.6)
    return f"Did you mean {matches[0]!r}? " if matches else ""
